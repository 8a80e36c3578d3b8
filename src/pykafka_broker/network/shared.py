"""The shared state of one broker's connections: limits, memory and counters."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from pykafka_broker.network.connection_factory import OpenConnection
from pykafka_broker.network.counters import Counters
from pykafka_broker.network.faults import Faults
from pykafka_broker.network.limits import ConnectionLimits
from pykafka_broker.network.memory import RequestMemory, UnsentAnswers
from pykafka_broker.network.request_times import RequestTimes
from pykafka_broker.network.unanswered import NO_KNOWLEDGE
from pykafka_broker.protocol.frames import Landing
from pykafka_broker.system.ordered_set import OrderedSet
from pykafka_broker.system.repeated_lines import RepeatedLines

if TYPE_CHECKING:
    from pykafka_broker.machine.clock import Clock

logger = logging.getLogger("kafka.network.Processor")


class Shared:
    """The shared state of one broker's connections, on listeners of every kind."""

    def __init__(
        self,
        clock: Clock,
        limits: ConnectionLimits | None = None,
        request_memory: RequestMemory | None = None,
        unsent: UnsentAnswers | None = None,
        times: RequestTimes | None = None,
    ) -> None:
        self.clock = clock
        self.limits = limits if limits is not None else ConnectionLimits()
        self.request_memory = request_memory if request_memory is not None else RequestMemory()
        self.unsent = unsent if unsent is not None else UnsentAnswers()
        #: How long requests take; None without a metrics listener.
        self.times = times
        self.landing = Landing()
        self.counters = Counters()
        self.complaints = RepeatedLines(logger, clock.monotonic_ms)
        self.faults = Faults(self.counters, self.complaints, clock.monotonic_ms)
        #: Replaced when the parts of the node with this knowledge exist.
        self.knowledge = NO_KNOWLEDGE
        #: Of all listeners. A connection adds itself when its transport opens, and removes itself when lost.
        self.connections: OrderedSet[OpenConnection] = OrderedSet()
        #: Handlers that wait for something; asyncio itself keeps only weak references to tasks.
        self.handlers: OrderedSet[asyncio.Task[None]] = OrderedSet()

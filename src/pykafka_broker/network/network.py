"""What all connections of one broker share: limits, memory, counters, and the node that they serve."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple

from pykafka_broker.network.memory import RequestMemory, UnsentAnswers
from pykafka_broker.protocol.frames import Landing
from pykafka_broker.system.repeated_lines import RepeatedLines

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.node import NodePorts
    from pykafka_broker.machine.clock import Clock
    from pykafka_broker.network.connection import Connection

logger = logging.getLogger("kafka.network.Processor")


class ConnectionLimits(NamedTuple):
    """What one connection may take."""

    #: socket.request.max.bytes
    request_max_bytes: int = 100 * 1024 * 1024
    #: connections.max.idle.ms; negative: never.
    idle_ms: int = 600_000
    #: Answers that may be outstanding (`Later`) before the next request has to wait.
    outstanding_answers: int = 100
    #: Bytes kept for requests that may not start yet, before the connection stops reading.
    read_ahead_bytes: int = 64 * 1024
    #: Requests served in one turn of the event loop, so that nobody else waits longer for a flood of small
    #: ones.
    requests_per_round: int = 250
    #: A request must have arrived this long after its first byte was seen, plus a second per 16 KiB of it.
    request_arrival_ms: int = 30_000
    #: Unsent bytes above which no further request starts.
    unsent_high_water_bytes: int = 64 * 1024
    #: A peer that has not read a byte of its answers for this long is disconnected.
    stalled_ms: int = 60_000


class Counters:
    """What all connections of a broker did, for metrics."""

    __slots__ = (
        "bytes_received",
        "bytes_sent",
        "connections_closed_for_errors",
        "connections_closed_idle",
        "connections_opened",
        "connections_rejected",
        "handler_failures",
        "requests",
    )

    def __init__(self) -> None:
        self.requests = 0
        self.bytes_received = 0
        self.bytes_sent = 0
        self.handler_failures = 0
        self.connections_opened = 0
        self.connections_rejected = 0
        self.connections_closed_idle = 0
        self.connections_closed_for_errors = 0


class Network:
    """What all connections of one broker share.

    Attributes:
        node: what handlers may ask of the node; `Listeners.start` sets it before there is a connection.
    """

    node: NodePorts

    def __init__(
        self,
        clock: Clock,
        limits: ConnectionLimits | None = None,
        request_memory: RequestMemory | None = None,
        unsent: UnsentAnswers | None = None,
    ) -> None:
        self.clock = clock
        self.limits = limits if limits is not None else ConnectionLimits()
        self.request_memory = request_memory if request_memory is not None else RequestMemory()
        self.unsent = unsent if unsent is not None else UnsentAnswers()
        self.landing = Landing()
        self.counters = Counters()
        self.complaints = RepeatedLines(logger, clock.monotonic_ms)
        self.connections: set[Connection] = set()
        #: Handlers that wait for something; asyncio itself would forget them.
        self.handlers: set[asyncio.Task[None]] = set()

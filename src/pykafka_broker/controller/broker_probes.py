"""Tries to connect to the listeners of brokers that have lost their connections to the active controller.

Each turn tries all listeners of a broker, and tells whether every one of them has refused. Only a refused
connection counts: a timeout, a missing route or an unknown host says nothing about the process.
`controller/core/early_fencing.py` decides what follows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from pykafka_broker.client.aio import FrameQueue, open_stream
from pykafka_broker.client.core.addresses import Address
from pykafka_broker.controller.core.early_fencing import Suspect
from pykafka_broker.machine.scheduler import Handle, Scheduler
from pykafka_broker.system.ordered_set import OrderedSet
from pykafka_broker.system.repeated_lines import RepeatedLines

logger = logging.getLogger("org.apache.kafka.controller.QuorumController")

#: The pause between two turns.
PAUSE_MS = 100
#: The pause after a turn in which not every listener refused.
PAUSE_AFTER_ACCEPTED_MS = 500
CONNECT_TIMEOUT_MS = 500

#: Whether a connection to the address is refused.
Probe: TypeAlias = Callable[[Address], Awaitable[bool]]


async def is_refused(address: Address) -> bool:
    """Whether a connection to the address is refused."""
    try:
        stream = await open_stream(address, FrameQueue(), CONNECT_TIMEOUT_MS)
    except ConnectionRefusedError:
        return True
    except (OSError, UnicodeError):  # UnicodeError: the host is no name
        return False
    await stream.close()
    return False


class BrokerProbes:
    """Event loop only. `tell(suspect, is_refused)` is called once a turn."""

    def __init__(
        self,
        scheduler: Scheduler,
        tell: Callable[[Suspect, bool], None],
        probe: Probe = is_refused,
    ) -> None:
        self._scheduler = scheduler
        self._tell = tell
        self._probe = probe
        self._suspects: Mapping[int, Suspect] = {}
        #: By broker id, the timer of its next turn; a broker whose turn is under way has none.
        self._next: dict[int, Handle] = {}
        self._turns: OrderedSet[asyncio.Task[None]] = OrderedSet()
        self._under_way: set[int] = set()
        self._lines = RepeatedLines(logger, scheduler.now_ms)

    def watch(self, suspects: Mapping[int, Suspect]) -> None:
        """Probe these brokers from now on, and no others."""
        self._suspects = suspects
        for broker_id in self._next.keys() - suspects.keys():
            self._next.pop(broker_id).cancel()
        for broker_id in suspects.keys() - self._next.keys() - self._under_way:
            self._begin(broker_id)

    def close(self) -> None:
        """Probe no more brokers."""
        self.watch({})
        for turn in self._turns:
            turn.cancel()

    def _begin(self, broker_id: int) -> None:
        self._next.pop(broker_id, None)
        self._under_way.add(broker_id)
        turn = asyncio.get_running_loop().create_task(self._turn(self._suspects[broker_id]))
        self._turns.add(turn)
        turn.add_done_callback(self._turns.discard)

    async def _turn(self, suspect: Suspect) -> None:
        try:
            addresses = [Address(endpoint.host, endpoint.port) for endpoint in suspect.endpoints]
            found = await asyncio.gather(*(self._probe(address) for address in addresses))
        except Exception as error:  # the next turn may succeed
            text = f"Failed to probe broker {suspect.broker_id}"
            self._lines.log(logging.ERROR, type(error).__name__, str(suspect.broker_id), text, error)
            found = []
        finally:
            self._under_way.discard(suspect.broker_id)
        refused = bool(found) and all(found)
        pause_ms = PAUSE_MS if refused else PAUSE_AFTER_ACCEPTED_MS
        if suspect.broker_id in self._suspects:
            self._next[suspect.broker_id] = self._scheduler.call_at(
                self._scheduler.now_ms() + pause_ms, lambda: self._begin(suspect.broker_id)
            )
            self._tell(suspect, refused)

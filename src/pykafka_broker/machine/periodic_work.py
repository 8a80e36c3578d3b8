"""Work that is repeated by the server's clock: one round at a time, which a stop does not interrupt."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from pykafka_broker.machine.clock import Clock, Timer

logger = logging.getLogger("kafka.server.BrokerServer")


class PeriodicWork:
    """Calls `work` `every_ms` after its last round ended, even if the round failed."""

    def __init__(self, clock: Clock, every_ms: int, work: Callable[[], Awaitable[None]]) -> None:
        self._clock = clock
        self._every_ms = every_ms
        self._work = work
        self._timer: Timer | None = None
        self._round: asyncio.Task[None] | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether a round has begun and not ended."""
        return self._round is not None

    def start(self) -> None:
        """Do the first round after one pause."""
        self._timer = self._clock.call_at(self._clock.monotonic_ms() + self._every_ms, self._begin_round)

    async def stop(self) -> None:
        """Return when the round under way, if any, has ended; no other follows."""
        if self._round is not None:
            await asyncio.wait([self._round])
        if self._timer is not None:
            self._timer.cancel()

    def _begin_round(self) -> None:
        self._round = asyncio.get_running_loop().create_task(self._do_round())

    async def _do_round(self) -> None:
        try:
            await self._work()
        except Exception:
            logger.exception("Periodic work failed; it is tried again")
        finally:  # also if what it waited for was cancelled
            self._round = None
            self.start()

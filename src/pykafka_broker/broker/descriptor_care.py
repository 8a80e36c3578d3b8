"""The care for file descriptors where they are few: a reserve, filled by closing idle log files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.machine.clock import Clock
from pykafka_broker.system.descriptors import DescriptorReserve

#: For logs that roll a segment at the same time while there are no more descriptors.
RESERVED_DESCRIPTORS = 32
#: New logs may keep this part of all descriptors until they are found idle: most get records soon.
NEW_LOGS_SHARE = 8
#: The least time between two closings of all log files for want of descriptors.
RELEASE_INTERVAL_MS = 1_000


class OpenFiles(Protocol):
    """Files that can be closed and are opened again when they are needed."""

    def release_files(self) -> object: ...

    def keep_open(self, new_logs: int) -> object: ...


class DescriptorCare:
    """Keeps `reserve` filled, with the descriptors of idle log files if need be.

    `on_short` is called on the event loop whenever a descriptor of the reserve was needed.
    """

    def __init__(
        self,
        reserve: DescriptorReserve,
        logs: OpenFiles,
        clock: Clock,
        *,
        on_short: Callable[[], object],
    ) -> None:
        self.reserve = reserve
        self._logs = logs
        self._clock = clock
        self._on_short = on_short
        self._released_ms = -RELEASE_INTERVAL_MS

    def begin(self, files: OsFileSystem, limit: int) -> None:
        """Keep some of the process's `limit` descriptors for when there are no more. On the event loop."""
        loop = asyncio.get_running_loop()
        self.reserve.on_short = lambda: loop.call_soon_threadsafe(self._give_back)
        self.reserve.close_files = self._logs.release_files
        self.reserve.hold(min(RESERVED_DESCRIPTORS, limit // 8))
        files.reserve = self.reserve
        self._logs.keep_open(limit // NEW_LOGS_SHARE)

    def end(self) -> None:
        """Keep none any more."""
        self.reserve.hold(0)

    def _give_back(self) -> None:
        """Close the files of all logs, but not again and again while descriptors stay short."""
        self._on_short()
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._released_ms + RELEASE_INTERVAL_MS:
            self._released_ms = now_ms
            self._logs.release_files()
            self.reserve.refill()

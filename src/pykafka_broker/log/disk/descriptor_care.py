"""Saves file descriptors when they are short: keeps a reserve, and closes log files to fill it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.machine.clock import Clock
from pykafka_broker.system.descriptors import DescriptorReserve

#: For logs that roll segments while no descriptors are free.
RESERVED_DESCRIPTORS = 32
#: New logs may keep 1/8 of all descriptors until they are found idle, because most get records soon.
NEW_LOGS_SHARE = 8
#: The shortest interval at which all log files are closed for lack of descriptors.
RELEASE_INTERVAL_MS = 1_000


class OpenFiles(Protocol):
    """Files that can be closed, and are opened again on demand."""

    def release_files(self) -> object: ...

    def keep_open(self, new_logs: int) -> object: ...


class DescriptorCare:
    """Keeps `reserve` filled, if necessary with the descriptors of log files.

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
        """Reserve some of the process's `limit` descriptors. On the event loop."""
        loop = asyncio.get_running_loop()
        self.reserve.on_short = lambda: loop.call_soon_threadsafe(self._give_back)
        self.reserve.close_files = self._logs.release_files
        self.reserve.hold(min(RESERVED_DESCRIPTORS, limit // 8))
        files.reserve = self.reserve
        self._logs.keep_open(limit // NEW_LOGS_SHARE)

    def end(self) -> None:
        """Release the reserve."""
        self.reserve.hold(0)

    def _give_back(self) -> None:
        """Close the files of all logs, at most once in `RELEASE_INTERVAL_MS`."""
        self._on_short()
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._released_ms + RELEASE_INTERVAL_MS:
            self._released_ms = now_ms
            self._logs.release_files()
            self.reserve.refill()

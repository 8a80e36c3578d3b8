"""The logs of a node: the log manager, with this broker's threads, settings and worker processes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from pykafka_broker.broker.foundation import Foundation
from pykafka_broker.broker.settings import cleaner_settings, intervals, log_settings, scrub_settings
from pykafka_broker.broker.threads import run_in_own_thread
from pykafka_broker.config import BrokerConfig
from pykafka_broker.log.check.scrubber import ScrubWorker
from pykafka_broker.log.cleaner.cleaner import CleaningWorker
from pykafka_broker.log.disk.directories import LogDir, LogDirs
from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.log.manager.settings import LogThreads, LogWorkers

Result = TypeVar("Result")


def build_logs(foundation: Foundation, dirs: LogDirs, on_dir_failure: Callable[[LogDir], None]) -> LogManager:
    """A manager of the logs in `dirs`; it has not opened them yet.

    `on_dir_failure` is called when a directory has gone out of service.
    """
    threads = foundation.threads
    return LogManager(
        foundation.files,
        dirs,
        LogThreads(
            run_blocking=threads.run_blocking,
            run_on_disk=threads.upkeep.run_in,
            run_awaited=threads.sync.run_in,
            run_long=run_in_own_thread,
        ),
        clock=foundation.clock,
        settings=log_settings(foundation.config),
        workers=LogWorkers(_process(foundation, _cleaning_process), _process(foundation, _scrub_process)),
        on_dir_failure=on_dir_failure,
    )


def reconfigure_logs(logs: LogManager, config: BrokerConfig) -> None:
    """Apply changed settings."""
    logs.intervals = intervals(config)
    logs.cleaner.settings = cleaner_settings(config)
    logs.scrubber.settings = scrub_settings(config)


def _process(foundation: Foundation, new: Callable[[], Result]) -> Callable[[], Result] | None:
    """A function that starts a worker process, None without real files; a start needs a descriptor."""
    return partial(foundation.descriptors.use, new) if isinstance(foundation.files, OsFileSystem) else None


def _cleaning_process() -> CleaningWorker:
    from pykafka_broker.log.cleaner.process import CleaningProcess  # not needed at a start

    return CleaningProcess()


def _scrub_process() -> ScrubWorker:
    from pykafka_broker.log.check.scrub_process import ScrubProcess  # not needed at a start

    return ScrubProcess()

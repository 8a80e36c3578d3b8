"""Log directories that fail: the broker goes on with the others if they include the metadata directory."""

from __future__ import annotations

from collections.abc import Callable

from pykafka_broker.log.disk.directories import LogDir, LogDirs


class FailedDirectories:
    """Handles directories that go out of service. Event loop only.

    `on_fatal` is called with the error of a directory without which the broker cannot go on.
    """

    def __init__(self, dirs: LogDirs, on_fatal: Callable[[OSError], None]) -> None:
        self._dirs = dirs
        self._on_fatal = on_fatal
        self._subscribers: list[Callable[[LogDir], None]] = []

    def subscribe(self, subscriber: Callable[[LogDir], None]) -> None:
        """Call `subscriber` for every directory that fails from now on while the broker goes on.

        A directory that failed before the broker registered is not reported, because it is not registered.
        """
        self._subscribers.append(subscriber)

    def failed(self, log_dir: LogDir) -> None:
        """`log_dir` has gone out of service."""
        assert log_dir.error is not None
        if log_dir is self._dirs.metadata or not self._dirs.online:
            self._on_fatal(log_dir.error)
            return
        for subscriber in self._subscribers:
            subscriber(log_dir)

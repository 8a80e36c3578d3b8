"""The room on the volumes of log directories, as the volumes have said when they were last asked.

A volume is asked in a worker thread of its directory, and once at a time: one that does not answer keeps its
last answer, and delays nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pykafka_broker.log.disk.directories import LogDir
from pykafka_broker.log.disk.files import FileSystem


class Spaces:
    """Event loop only, but for what a worker thread stores."""

    def __init__(self, files: FileSystem, run_later: Callable[[str, Callable[[], object]], None]) -> None:
        self._files = files
        #: Runs a job in a worker thread of a log directory.
        self._run_later = run_later
        #: By path of a directory: total bytes, and bytes a process may still use.
        self._told: dict[str, tuple[int, int]] = {}
        self._asked: set[str] = set()

    def ask(self, log_dir: LogDir) -> None:
        """Ask the volume of a directory, unless it has still to answer."""
        if log_dir.is_online and log_dir.path not in self._asked:
            self._asked.add(log_dir.path)
            self._run_later(log_dir.path, partial(self._ask, log_dir.path))

    def _ask(self, path: str) -> None:
        """Worker thread."""
        try:
            self._told[path] = self._files.space(path)
        except OSError:
            self._told.pop(path, None)
        self._asked.discard(path)

    def of(self, log_dir: LogDir) -> tuple[int, int] | None:
        """(total bytes, usable bytes) of the volume; None if it has not answered, or is out of service.

        A directory that refuses writes has no usable bytes, whatever its volume says.
        """
        told = self._told.get(log_dir.path) if log_dir.is_online else None
        return told if told is None or log_dir.refusal is None else (told[0], 0)

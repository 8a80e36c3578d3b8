"""A file layer for a broker process that is tortured: it crashes, loses, fills up or dawdles as planned.

    Plan(crash=Crash("sync .log", 3))        SIGKILL before the third such operation; `when`: "after" it,
                                             or, for a write, "torn" in the middle
    Plan(volatile=True)                      what was not synced dies with the process, as in a power cut
    Plan(space_bytes=100_000)                then ENOSPC, until the file `<space_file>` is gone
    Plan(delays={"sync /slow/": 300})        syncs (or reads: `pread`) of such paths take so many milliseconds
    Plan(stuck=("sync /slow/",), stuck_file=file)  such operations wait while the file exists, and each that
                                             does adds a byte to it
    Plan(record="points.txt")                write down the name of every operation

Operations are named by what is done to which kind of file, like `rename leader-epoch-checkpoint.tmp`: that is
what a crash point is called. Nothing of this is in the broker: without a plan its file layer is its own.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from pykafka_broker.log.disk.files import File, OsFileSystem
from pykafka_broker.protocol.buffers import Buffer

T = TypeVar("T")


@dataclass(frozen=True)
class Crash:
    """Where the process dies: at the `occurrence`-th operation named `point`."""

    point: str
    occurrence: int = 1
    when: str = "before"


@dataclass(frozen=True)
class Plan:
    """What is done to a broker process; goes to it as JSON."""

    crash: Crash | None = None
    volatile: bool = False
    space_bytes: int | None = None
    space_file: str = ""
    delays: dict[str, int] = field(default_factory=dict)
    stuck: tuple[str, ...] = ()
    stuck_file: str = ""
    record: str = ""
    mutant: str = ""
    max_files: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Plan:
        crash = values.pop("crash", None)
        stuck = tuple(values.pop("stuck", ()))
        return cls(crash=Crash(**crash) if crash else None, stuck=stuck, **values)


def kind(path: str) -> str:
    """What kind of file or folder it is: `.log`, `metadata .log`, `quorum-state.tmp`, `partition folder`."""
    name = os.path.basename(path)
    inside = "metadata " if "__cluster_metadata" in path else ""
    if numbered := re.fullmatch(r"\d{20}(?:-\d{10})?((?:\.\w+)+)", name):
        return inside + numbered[1]
    if re.fullmatch(r".+-\d+", name):
        return inside + "partition folder"
    if re.fullmatch(r".+-\d+\.[0-9a-f]{32}-\w+", name):
        return f"{name.rpartition('-')[2]} folder"
    return inside + name if "." in name or "-" in name else "log directory"


def is_meant(rule: str, operation: str, path: str) -> bool:
    """Whether a rule like `sync /slow/` is about this operation."""
    what, _, part = rule.partition(" ")
    return what == operation and part in path


class TorturedFiles(OsFileSystem):
    """The operating system's files, used as planned."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._record = open(plan.record, "a") if plan.record else None  # noqa: SIM115 - open till the end
        self._space_bytes = plan.space_bytes
        self._volatile: dict[str, bytearray] = {}

    def during(
        self, operation: str, path: str, do: Callable[[], T], half: Callable[[], object] | None = None
    ) -> T:
        """Carry out a change; before, in the middle or afterwards the process may die."""
        point = f"{operation} {kind(path)}"
        crash = self.plan.crash
        if self._record is not None:
            self._record.write(point + "\n")
            self._record.flush()
        if crash is None or crash.point != point:
            return do()
        with self._lock:
            self._counts[point] += 1
            dies = self._counts[point] == crash.occurrence
        if dies and crash.when == "before":
            die()
        if dies and crash.when == "torn" and half is not None:
            half()
            die()
        result = do()
        if dies:
            die()
        return result

    def delay_ms(self, operation: str, path: str) -> int:
        for slow, delay_ms in self.plan.delays.items():
            if is_meant(slow, operation, path):
                return delay_ms
        return 0

    def is_stuck(self, operation: str, path: str) -> bool:
        plan = self.plan
        return any(is_meant(stuck, operation, path) for stuck in plan.stuck) and os.path.exists(
            plan.stuck_file
        )

    def delay(self, operation: str, path: str) -> None:
        if delay_ms := self.delay_ms(operation, path):
            time.sleep(delay_ms / 1000)
        if self.is_stuck(operation, path):
            with self._lock, open(self.plan.stuck_file, "a") as waiting:
                waiting.write(".")
        while self.is_stuck(operation, path):
            time.sleep(0.01)

    def take_space(self, wanted: int) -> int:
        """How many of so many new bytes fit."""
        if self._space_bytes is None or not os.path.exists(self.plan.space_file):
            return wanted
        with self._lock:
            taken = min(wanted, self._space_bytes)
            self._space_bytes -= taken
        if wanted and not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return taken

    # --- FileSystem -------------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        if create:
            file = self.during("create", path, lambda: OsFileSystem.open(self, path, create=True))
        else:
            file = super().open(path, writable=writable)
        return TorturedFile(self, path, file)

    def make_directory(self, path: str) -> None:
        self.during("make_directory", path, lambda: OsFileSystem.make_directory(self, path))

    def rename(self, old: str, new: str) -> None:
        self.during("rename", old, lambda: OsFileSystem.rename(self, old, new))

    def remove(self, path: str) -> None:
        self.during("remove", path, lambda: OsFileSystem.remove(self, path))

    def remove_tree(self, path: str) -> None:
        self.during("remove_tree", path, lambda: OsFileSystem.remove_tree(self, path))

    def write_file(self, path: str, data: Buffer, *, sync: bool) -> None:
        self.take_space(len(data))
        self.during(
            "write_file",
            path,
            lambda: OsFileSystem.write_file(self, path, data, sync=sync),
            lambda: OsFileSystem.write_file(self, path, bytes(data)[: len(data) // 2], sync=sync),
        )

    def replace_file(self, path: str, data: Buffer, *, sync: bool) -> None:
        temporary = path + ".tmp"
        self.write_file(temporary, data, sync=sync)
        self.rename(temporary, path)
        if sync:
            self.sync_directory(os.path.dirname(path))

    def sync_directory(self, path: str) -> None:
        self.delay("sync", path)
        self.during("sync_directory", path, lambda: OsFileSystem.sync_directory(self, path))


class TorturedFile:
    """An open file. A volatile one keeps what is written in the process until it is synced."""

    def __init__(self, files: TorturedFiles, path: str, file: File) -> None:
        self._files, self._path, self._file = files, path, file
        self._content: bytearray | None = None
        if files.plan.volatile and path.endswith(".log"):
            self._content = files._volatile.setdefault(path, bytearray(file.pread(file.size(), 0)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def pread(self, size: int, position: int) -> bytes:
        self._files.delay("pread", self._path)
        if self._content is not None:
            return bytes(self._content[position : position + size])
        return self._file.pread(size, position)

    def pread_cached(self, size: int, position: int) -> Buffer | None:
        files = self._files
        if files.delay_ms("pread", self._path) or files.is_stuck("pread", self._path):
            return None
        if self._content is not None:
            data = bytes(self._content[position : position + size])
            return data if len(data) == size else None
        return self._file.pread_cached(size, position)

    def size(self) -> int:
        return len(self._content) if self._content is not None else self._file.size()

    def pwrite(self, data: Buffer, position: int) -> int:
        files = self._files
        taken = files.take_space(len(data))
        data = memoryview(data)[:taken]
        half = data[: taken // 2]
        return files.during(
            "pwrite", self._path, lambda: self._write(data, position), lambda: self._write(half, position)
        )

    def _write(self, data: Buffer, position: int) -> int:
        if self._content is None:
            return self._file.pwrite(data, position)
        self._content[position : position + len(data)] = data
        return len(data)

    def truncate(self, size: int) -> None:
        def truncate() -> None:
            if self._content is not None:
                del self._content[size:]
            self._file.truncate(size)

        self._files.during("truncate", self._path, truncate)

    def sync(self) -> None:
        self._files.delay("sync", self._path)
        self._files.during("sync", self._path, self._sync)

    def _sync(self) -> None:
        content = self._content
        if content is not None:
            data = bytes(content)
            on_disk = self._file.size()
            if len(data) > on_disk:  # a truncation reaches the disk at once
                self._file.pwrite(data[on_disk:], on_disk)
        self._file.sync()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)

"""The files of one segment: they share a path and differ in their suffix.

All methods take a suffix of `names.py`. They are worker-safe and may wait for the disk.
"""

from __future__ import annotations

from pykafka_broker.log.disk.files import File, FileSystem, sync_file
from pykafka_broker.log.disk.names import SEGMENT_SUFFIXES
from pykafka_broker.protocol.buffers import Buffer


class SegmentFiles:
    """Opens, reads, writes, renames and removes the files of one segment."""

    __slots__ = ("path", "system")

    def __init__(self, files: FileSystem, path: str) -> None:
        self.system = files
        #: Path of the files without their suffix; changes when the partition's folder is renamed.
        self.path = path

    def open(self, suffix: str, *, create: bool = False, writable: bool = True) -> File:
        """Open a file; FileNotFoundError if there is none and `create` is false."""
        return self.system.open(self.path + suffix, create=create, writable=writable)

    def exists(self, suffix: str) -> bool:
        return self.system.exists(self.path + suffix)

    def read(self, suffix: str) -> bytes:
        """The content of a file; FileNotFoundError if there is none."""
        return self.system.read_file(self.path + suffix)

    def read_end(self, suffix: str, size: int) -> bytes:
        """The last `size` bytes of a file; fewer if it is shorter, none if it does not exist."""
        try:
            file = self.open(suffix, writable=False)
        except FileNotFoundError:
            return b""
        length = file.size()
        return file.pread(size, length - size) if length >= size else b""

    def write(self, suffix: str, data: Buffer) -> None:
        """Write a whole file without syncing it."""
        self.system.write_file(self.path + suffix, data, sync=False)

    def replace(self, suffix: str, data: Buffer) -> None:
        """Replace a file in one step, durably."""
        self.system.replace_file(self.path + suffix, data, sync=True)

    def sync(self, suffix: str) -> None:
        """Make the content of a file durable."""
        sync_file(self.system, self.path + suffix)

    def modified_ms(self, suffix: str) -> int:
        """When a file was last written."""
        return self.system.modified_ms(self.path + suffix)

    def remove(self, suffix: str) -> None:
        """Remove a file, if it exists."""
        self.system.remove(self.path + suffix)

    def set_all_aside(self, ending: str) -> None:
        """Rename every file so that it no longer counts: `ending` is appended, e.g. `.deleted`."""
        for suffix in SEGMENT_SUFFIXES:
            if self.exists(suffix):
                self.system.rename(self.path + suffix, self.path + suffix + ending)

    def remove_all(self, ending: str = "") -> None:
        """Remove every file; with `ending` those that `set_all_aside` has renamed."""
        for suffix in SEGMENT_SUFFIXES:
            self.remove(suffix + ending)

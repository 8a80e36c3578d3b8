"""The file system port: every operation the log does on disk, and nothing else; the only user of `os` for
data files.

`OsFileSystem` is the real one; `testing/memory_files.py` keeps files in memory and injects faults.
The port is deliberately small, so that a recorded list of its calls is a complete account of all changes that
a crash can tear apart:

* `File.pwrite` and `File.truncate` change bytes; they are durable only after `File.sync`.
* `create`, `rename`, `remove` change names; they are durable only after `sync_directory`.
* `replace_file` is the one compound: write `<path>.tmp`, sync it, rename over `path`, sync the directory
  (Kafka's order).

A `File` closes itself when its last holder lets go (a read plan may outlive the segment it reads): references
are not counted by hand. Linux is first: `pread_cached` uses `preadv2(RWF_NOWAIT)` to answer from the page
cache without ever waiting for a disk; where the platform lacks it the method says "not cached" and the
caller uses a worker thread. Windows has neither `pread` nor `fcntl`: both have a fallback here.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from contextlib import suppress
from typing import Protocol

from pykafka_broker.log.disk.buffers import ReadBuffers
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.system.descriptors import DescriptorReserve


class _OfThread(threading.local):
    """Each thread that runs an event loop has its own buffers."""

    def __init__(self) -> None:
        self.read_buffers = ReadBuffers()


_of_thread = _OfThread()
_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
_HAS_PREAD = hasattr(os, "pread") and hasattr(os, "pwrite")
_CREATE_MODE = 0o644
_FALLOC_FL_KEEP_SIZE = 1
#: A start reads thousands of files of a few bytes.
_SMALL_FILE_BYTES = 1 << 16
_BINARY: int = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class FileLockedError(Exception):
    """Another process holds the lock file."""

    def __init__(self, path: str, process_id: int = 0) -> None:
        super().__init__(path)
        #: The process that holds it; 0 if unknown.
        self.process_id = process_id


class File(Protocol):
    """One open file, addressed by position only; safe to read from several threads at once."""

    def pread(self, size: int, position: int) -> bytes:
        """Up to `size` bytes at `position`; short only at the end of the file. May wait for the disk."""

    def pread_cached(self, size: int, position: int) -> Buffer | None:
        """Exactly `size` bytes if the page cache has them all, else None. Never waits for the disk."""

    def forget(self, size: int, position: int) -> None:
        """These bytes are not going to be read soon: the page cache need not keep them."""

    def pwrite(self, data: Buffer, position: int) -> int:
        """Write `data` at `position`; returns the number of bytes written, which may be less than all."""

    def truncate(self, size: int) -> None:
        """Cut or extend the file to `size` bytes."""

    def reserve(self, size: int) -> None:
        """Reserve disk space up to `size`, if the system can do that without growing the file."""

    def size(self) -> int:
        """Length of the file in bytes."""

    def sync(self) -> None:
        """Return once the bytes are on stable storage. May take long: worker threads only."""

    def close(self) -> None:
        """Give the descriptor back; reading or writing afterwards is an error. Harmless when repeated."""


class Entry:
    """One name in a directory."""

    __slots__ = ("is_directory", "name", "size")

    def __init__(self, name: str, is_directory: bool, size: int) -> None:
        self.name = name
        self.is_directory = is_directory
        self.size = size


class Lock(Protocol):
    """A held lock; the process keeps it until `release` or death."""

    def release(self) -> None:
        """Release the lock, so that another process can take it."""


class FileSystem(Protocol):
    """The names and files below the log directories."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        """An existing file, or a new one with `create` (then FileExistsError if it is there already)."""

    def exists(self, path: str) -> bool: ...

    def entries(self, directory: str, *, sizes_of: tuple[str, ...] = ()) -> list[Entry]:
        """The entries of a directory, in no particular order. Names that end in one of `sizes_of` come with
        the size, for one system call each.
        """

    def make_directory(self, path: str) -> None:
        """Create `path` and its parents; nothing happens if it is there."""

    def rename(self, old: str, new: str) -> None:
        """Atomically rename `old` to `new`, replacing a file of that name."""

    def remove(self, path: str) -> None:
        """Unlink a file; nothing happens if it is gone."""

    def remove_tree(self, path: str) -> None:
        """Unlink a directory and everything in it. Slow: worker threads only."""

    def read_file(self, path: str) -> bytes:
        """The whole of a small file; FileNotFoundError if there is none."""

    def write_file(self, path: str, data: Buffer, *, sync: bool) -> None:
        """Create or overwrite a small file in place; not atomic."""

    def replace_file(self, path: str, data: Buffer, *, sync: bool) -> None:
        """Atomically replace a small file: readers and crashes see the old content or the new."""

    def sync_directory(self, path: str) -> None:
        """Make the names in `path` durable. May take long: worker threads only."""

    def modified_ms(self, path: str) -> int:
        """Wall clock of the file's last change."""

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Make a file as old as another."""

    def space(self, path: str) -> tuple[int, int]:
        """(total bytes, bytes a process may still use) of the volume that holds `path`."""

    def lock(self, path: str) -> Lock:
        """Take the lock file at `path`, creating it; FileLockedError if another process has it."""


class OsFile:
    """A descriptor, closed with the object."""

    __slots__ = ("_closing", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._closing = threading.Lock() if not _HAS_PREAD else None

    if _HAS_PREAD:

        def pread(self, size: int, position: int) -> bytes:
            data = os.pread(self.fd, size, position)
            if len(data) == size or not data:
                return data
            parts = [data]
            got = len(data)
            while got < size and (data := os.pread(self.fd, size - got, position + got)):
                parts.append(data)
                got += len(data)
            return b"".join(parts)

        def pwrite(self, data: Buffer, position: int) -> int:
            return os.pwrite(self.fd, data, position)

    else:  # Windows: seek and transfer under a lock

        def pread(self, size: int, position: int) -> bytes:
            assert self._closing is not None
            with self._closing:
                os.lseek(self.fd, position, os.SEEK_SET)
                parts = []
                while size > 0 and (data := os.read(self.fd, size)):
                    parts.append(data)
                    size -= len(data)
                return b"".join(parts)

        def pwrite(self, data: Buffer, position: int) -> int:
            assert self._closing is not None
            with self._closing:
                os.lseek(self.fd, position, os.SEEK_SET)
                return os.write(self.fd, data)

    def pread_cached(self, size: int, position: int) -> Buffer | None:
        """61 bytes take 1 us, 1 MiB no more than the copy itself (see buffers.py)."""
        if not _NOWAIT:
            return None
        buffer = _of_thread.read_buffers.take(size)
        try:
            got = os.preadv(self.fd, (buffer,), position, _NOWAIT)
        except (
            OSError
        ):  # EAGAIN: not cached; EOPNOTSUPP: this file system cannot tell; EIO: the thread will report it
            return None
        return buffer if got == size else None

    def forget(self, size: int, position: int) -> None:
        if sys.platform == "linux":
            os.posix_fadvise(self.fd, position, size, os.POSIX_FADV_DONTNEED)

    def truncate(self, size: int) -> None:
        os.ftruncate(self.fd, size)

    def reserve(self, size: int) -> None:
        if sys.platform != "linux":  # posix_fallocate grows the file: a crash would leave zeros to scan
            return
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        offsets = ctypes.c_int64(0), ctypes.c_int64(size)
        if libc.fallocate(self.fd, _FALLOC_FL_KEEP_SIZE, *offsets) == 0:
            return
        error = ctypes.get_errno()
        if error not in (errno.EOPNOTSUPP, errno.ENOSYS):
            raise OSError(error, os.strerror(error))

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    if hasattr(os, "fdatasync"):

        def sync(self) -> None:
            os.fdatasync(self.fd)

    else:

        def sync(self) -> None:
            if sys.platform == "darwin":  # fsync alone only reaches the drive's own cache there
                import fcntl

                fcntl.fcntl(self.fd, fcntl.F_FULLFSYNC)
            else:
                os.fsync(self.fd)

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


#: Lock files this process holds. A POSIX record lock (the kind a JVM takes, so the kind that keeps one out)
#: does not exclude its own process, and is lost when the process closes any other descriptor of the file.
_locked_here: set[str] = set()


class OsLock:
    """A record lock on an open descriptor: gone with the process, however it ends."""

    __slots__ = ("_fd", "_path")

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self._path = path
        _locked_here.add(path)

    def release(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
            _locked_here.discard(self._path)

    def __del__(self) -> None:
        self.release()


class OsFileSystem:
    """The operating system's files. `reserve` holds spare descriptors for a process that has run out of them;
    by default none.
    """

    reserve = DescriptorReserve()

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        flags = (os.O_RDWR if writable else os.O_RDONLY) | _BINARY
        if create:
            flags |= os.O_CREAT | os.O_EXCL
        return OsFile(self._descriptor(path, flags))

    def _descriptor(self, path: str, flags: int) -> int:
        return self.reserve.use(lambda: os.open(path, flags, _CREATE_MODE))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def entries(self, directory: str, *, sizes_of: tuple[str, ...] = ()) -> list[Entry]:
        found = []
        with self.reserve.use(lambda: os.scandir(directory)) as listing:
            for entry in listing:
                # Another process removed the file between the listing and the query of its size.
                with suppress(FileNotFoundError):
                    size = entry.stat().st_size if entry.name.endswith(sizes_of) else -1
                    found.append(Entry(entry.name, entry.is_dir(), size))
        return found

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(path)

    def remove_tree(self, path: str) -> None:
        for entry in self.entries(path):
            inner = os.path.join(path, entry.name)
            if entry.is_directory:
                self.remove_tree(inner)
            else:
                os.unlink(inner)
        os.rmdir(path)

    def read_file(self, path: str) -> bytes:
        fd = self._descriptor(path, os.O_RDONLY | _BINARY)
        try:
            data = os.read(fd, _SMALL_FILE_BYTES)
            if len(data) < _SMALL_FILE_BYTES:
                return data
            parts = [data]
            while data := os.read(fd, _SMALL_FILE_BYTES):
                parts.append(data)
            return b"".join(parts)
        finally:
            os.close(fd)

    def write_file(self, path: str, data: Buffer, *, sync: bool) -> None:
        fd = self._descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)

    def replace_file(self, path: str, data: Buffer, *, sync: bool) -> None:
        temporary = path + ".tmp"
        self.write_file(temporary, data, sync=sync)
        os.replace(temporary, path)
        if sync:
            self.sync_directory(os.path.dirname(path))

    def sync_directory(self, path: str) -> None:
        if sys.platform == "win32":  # directories cannot be opened there; NTFS journals the names
            return
        fd = self._descriptor(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def space(self, path: str) -> tuple[int, int]:
        if sys.platform == "win32":
            import shutil  # it loads four compression libraries

            usage = shutil.disk_usage(path)
            return usage.total, usage.free
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def lock(self, path: str) -> Lock:
        path = os.path.realpath(path)
        if path in _locked_here:
            raise FileLockedError(path, os.getpid())
        fd = os.open(path, os.O_RDWR | os.O_CREAT | _BINARY, _CREATE_MODE)
        try:
            if sys.platform == "win32":
                import msvcrt

                msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise FileLockedError(path, lock_holder(path) or 0) from error
        return OsLock(fd, path)


def lock_holder(path: str) -> int | None:
    """The process that holds a lock file, 0 if unknown; None if the file is not locked.

    Unlike an attempt to lock, this does not disturb a broker that is starting.
    """
    path = os.path.realpath(path)
    if path in _locked_here:
        return os.getpid()
    try:
        fd = os.open(path, os.O_RDONLY | _BINARY)
    except FileNotFoundError:
        return None
    try:
        if sys.platform == "win32":
            import msvcrt

            try:
                msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
                msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
            except OSError:
                return 0
            return None
        import fcntl
        import struct

        # struct flock: of Linux, and of macOS and the BSDs.
        form = "hhqqi" if sys.platform == "linux" else "qqihh"
        asked = (fcntl.F_WRLCK, 0, 0, 0, 0) if sys.platform == "linux" else (0, 0, 0, fcntl.F_WRLCK, 0)
        answer = struct.unpack_from(form, fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack(form + "0q", *asked)))
        kind, process_id = (answer[0], answer[4]) if sys.platform == "linux" else (answer[3], answer[2])
        return None if kind == fcntl.F_UNLCK else process_id
    finally:
        os.close(fd)


def write_fully(file: File, data: Buffer, position: int) -> None:
    """Write all of `data`, continuing after a short write until the system takes the rest or says why not."""
    written = file.pwrite(data, position)
    if written == len(data):
        return
    view = memoryview(data)
    while written < len(view):
        written += file.pwrite(view[written:], position + written)


def sync_file(files: FileSystem, path: str) -> None:
    """Make the content of a file that is not open durable. May take long: worker threads only."""
    file = files.open(path)
    try:
        file.sync()
    finally:
        file.close()


def join(*parts: str) -> str:
    """`os.path.join`, for modules that must not know `os`."""
    return os.path.join(*parts)


def absolute(path: str) -> str:
    """`path` from the root on, as clients are told it."""
    return os.path.abspath(path)


def directory_name(path: str) -> str:
    """The directory that holds `path`."""
    return os.path.dirname(path)


def random_id() -> str:
    """32 random hexadecimal digits, unique in practice."""
    return os.urandom(16).hex()

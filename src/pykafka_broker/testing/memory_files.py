"""Files in memory, with a disk that can be full, broken, slow to cache, or lose unsynced bytes.

    files = MemoryFiles()
    files.free_bytes = 100             writes past that are cut short, then fail with ENOSPC
    files.fail("pwrite", EIO)          the next pwrite fails; `path=` narrows it, `times=` repeats it
    files.is_cached = False            `pread_cached` never answers: readers must use a thread
    after = files.killed()             the files that the next process finds after kill -9: all
    after = files.power_cut()          synced contents (`sync`) and names (`sync_directory`)
    after = files.power_cut(dice)      the same, and a part of the rest that a disk may keep: some pages, and
                                       of each folder's names those up to some moment, as journals keep them,
                                       or renames in any order

The directories below the root are volumes: they are always there.

Threads may use them at once: each operation is one step, and so are `killed` and `power_cut`.

`calls` records every operation in order, so that a test can check their order, such as that of syncs.
"""

from __future__ import annotations

import errno
import os
import random
import threading
from collections.abc import Callable

from pykafka_broker.log.disk.files import Entry, FileLockedError
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.system.named_tuple import NamedTuple

#: A disk writes a page of this size as a whole, or not at all.
PAGE_BYTES = 512


class Inode:
    """A file's content: now, and as of its last sync. The first `kept_bytes` were not touched since."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.synced = b""
        self.kept_bytes = 0
        self.modified_ms = 0

    def sync(self) -> None:
        self.synced = bytes(self.data)
        self.kept_bytes = len(self.synced)


class _Naming(NamedTuple):
    """A file gets the name `path`, or loses it if `inode` is None; a rename also removes the name `old`."""

    path: str
    inode: Inode | None
    old: str | None = None


class MemoryFile:
    """An open file; its inode outlives the name."""

    def __init__(self, files: MemoryFiles, path: str, inode: Inode) -> None:
        self._files = files
        self._path = path
        self._inode = inode

    def pread(self, size: int, position: int) -> bytes:
        self._files._enter("pread", self._path)
        return bytes(self._inode.data[position : position + size])

    def pread_cached(self, size: int, position: int) -> Buffer | None:
        data = bytes(self._inode.data[position : position + size])
        is_cached = self._files.is_cached or self._files.is_cached_of(self._path)
        return data if is_cached and len(data) == size else None

    def forget(self, size: int, position: int) -> None:
        self._files.forgotten.append((self._path, position, size))

    def pwrite(self, data: Buffer, position: int) -> int:
        self._files._enter("pwrite", self._path)
        content = self._inode.data
        with self._files.step:
            taken = self._files._take_space(len(data), max(0, position + len(data) - len(content)))
            content.extend(bytes(max(0, position - len(content))))
            content[position : position + taken] = data[:taken]
            self._inode.kept_bytes = min(self._inode.kept_bytes, position)
            self._inode.modified_ms = self._files.now_ms
            return taken

    def truncate(self, size: int) -> None:
        self._files._enter("truncate", self._path)
        content = self._inode.data
        with self._files.step:
            del content[size:]
            content.extend(bytes(size - len(content)))
            self._inode.kept_bytes = min(self._inode.kept_bytes, size)

    def reserve(self, size: int) -> None:
        self._files._enter("reserve", self._path)

    def size(self) -> int:
        return len(self._inode.data)

    def sync(self) -> None:
        self._files._enter("sync", self._path)
        with self._files.step:
            self._inode.sync()

    def close(self) -> None:
        pass


class MemoryLock:
    def __init__(self, files: MemoryFiles, path: str) -> None:
        self._files = files
        self._path = path
        files.locked.add(path)

    def release(self) -> None:
        self._files.locked.discard(self._path)


class _Fault:
    def __init__(self, operation: str, code: int, path: str, times: int, skip: int) -> None:
        self.operation = operation
        self.code = code
        self.path = path
        self.times = times
        self.skip = skip

    def strikes(self, operation: str, path: str) -> bool:
        if operation != self.operation or self.path not in path or self.times == 0:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        return True


class MemoryFiles:
    """A `FileSystem` in memory."""

    def __init__(self) -> None:
        #: Held while something changes; a test that holds it sees all files as of one moment.
        self.step = threading.RLock()
        self.inodes: dict[str, Inode] = {}
        self.directories: set[str] = {"/"}
        #: Names that would survive a power cut.
        self.synced_names: dict[str, Inode] = {}
        self.synced_directories: set[str] = {"/"}
        #: Changes of names since their folder was synced.
        self._unsynced_names: list[_Naming] = []
        #: Renames of folders, (old, new), since the folder above was synced.
        self._unsynced_moves: list[tuple[str, str]] = []
        self.locked: set[str] = set()
        self.calls: list[tuple[str, str]] = []
        self.is_cached = True
        #: Whether the page cache holds a file completely although `is_cached` is false.
        self.is_cached_of: Callable[[str], bool] = lambda path: False
        #: (path, position, bytes) of each `forget`: the page cache need not keep them.
        self.forgotten: list[tuple[str, int, int]] = []
        self.free_bytes: int | None = None
        self.now_ms = 0
        #: Called with each operation and its path before it happens: a test can change something there.
        self.meanwhile: Callable[[str, str], object] | None = None
        self._faults: list[_Fault] = []

    # --- faults -----------------------------------------------------------------------------------

    def fail(self, operation: str, code: int, *, path: str = "", times: int = 1, skip: int = 0) -> None:
        """Let `operation` on paths that contain `path` fail with errno `code`, after `skip` good ones."""
        self._faults.append(_Fault(operation, code, path, times, skip))

    def heal(self) -> None:
        """End all faults, and give the disk room again."""
        self._faults.clear()
        self.free_bytes = None

    def killed(self) -> MemoryFiles:
        """The files that the next process finds after kill -9: all, because the page cache survives."""
        with self.step:
            return self._survivor(self.inodes, self.directories, lambda inode: bytes(inode.data))

    def power_cut(self, dice: random.Random | None = None) -> MemoryFiles:
        """The files that are on the disk after the power failed: those that were synced; with `dice`,
        chance decides about the rest.
        """
        with self.step:
            return self._power_cut(dice)

    def _power_cut(self, dice: random.Random | None) -> MemoryFiles:
        undone = self._undone_moves(dice)
        if dice is not None:
            kept = _moved_back(undone, *self._kept_by_chance(dice))
            return self._survivor(*kept, lambda inode: _torn(inode, dice))
        volumes = {path for path in self.directories if os.path.dirname(path) == "/"}
        directories = self.synced_directories | volumes
        reachable = {
            path: inode for path, inode in self.synced_names.items() if os.path.dirname(path) in directories
        }
        return self._survivor(*_moved_back(undone, reachable, directories), lambda inode: inode.synced)

    def _undone_moves(self, dice: random.Random | None) -> list[tuple[str, str]]:
        """The renames of folders that the disk has not kept: those of each folder past some moment."""
        share = 0.0 if dice is None else dice.choice((0.0, 0.3, 0.7, 1.0))
        ended: set[str] = set()
        undone = []
        for old, new in self._unsynced_moves:
            above = os.path.dirname(old)
            if above not in ended and (dice is None or dice.random() >= share):
                ended.add(above)
            if above in ended:
                undone.append((old, new))
        return undone

    def _kept_by_chance(self, dice: random.Random) -> tuple[dict[str, Inode], set[str]]:
        """Names and directories: of each folder the changes up to some moment; with an even chance, any
        renames, even where earlier ones are lost.
        """
        share = dice.choice((0.0, 0.3, 0.7, 1.0))
        in_order = dice.random() < 0.5
        names = dict(self.synced_names)
        ended: set[str] = set()
        for naming in self._unsynced_names:
            folder = os.path.dirname(naming.path)
            if folder not in ended and dice.random() >= share:
                ended.add(folder)
            is_free = naming.old is not None and not in_order
            if dice.random() < share if is_free else folder not in ended:
                if naming.old is not None:
                    names.pop(naming.old, None)
                if naming.inode is None:
                    names.pop(naming.path, None)
                else:
                    names[naming.path] = naming.inode
        directories = {
            path
            for path in sorted(self.directories | self.synced_directories)
            if path in self.synced_directories or os.path.dirname(path) == "/" or dice.random() < share
        }
        for path in sorted(directories):
            if os.path.dirname(path) not in directories:
                directories.discard(path)
        return {path: i for path, i in names.items() if os.path.dirname(path) in directories}, directories

    def _survivor(
        self, names: dict[str, Inode], directories: set[str], content: Callable[[Inode], bytes]
    ) -> MemoryFiles:
        after = MemoryFiles()
        for path, inode in names.items():
            survivor = Inode(content(inode))
            survivor.sync()
            after.inodes[path] = after.synced_names[path] = survivor
        after.directories, after.synced_directories = set(directories), set(directories)
        after.now_ms = self.now_ms
        return after

    def _enter(self, operation: str, path: str) -> None:
        self.calls.append((operation, path))
        if self.meanwhile is not None:
            self.meanwhile(operation, path)
        with self.step:
            for fault in self._faults:
                if fault.strikes(operation, path):
                    raise OSError(fault.code, os.strerror(fault.code), path)

    def _take_space(self, wanted: int, growth: int) -> int:
        """The bytes that the disk takes of a write of `wanted` bytes, `growth` of them new."""
        if self.free_bytes is None:
            return wanted
        if growth > 0 and self.free_bytes == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = wanted - max(0, growth - self.free_bytes)
        self.free_bytes = max(0, self.free_bytes - growth)
        return taken

    def _give_space(self, freed: int) -> None:
        if self.free_bytes is not None:
            self.free_bytes += freed

    # --- FileSystem -------------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> MemoryFile:
        if create:
            self._enter("create", path)
            with self.step:
                if path in self.inodes:
                    raise FileExistsError(errno.EEXIST, "File exists", path)
                self.inodes[path] = Inode()
                self._unsynced_names.append(_Naming(path, self.inodes[path]))
        return MemoryFile(self, path, self._inode(path))

    def _inode(self, path: str) -> Inode:
        try:
            return self.inodes[path]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path) from None

    def exists(self, path: str) -> bool:
        return path in self.inodes or path in self.directories

    def entries(self, directory: str, *, sizes_of: tuple[str, ...] = ()) -> list[Entry]:
        with self.step:
            found = [
                Entry(os.path.basename(path), False, len(inode.data) if path.endswith(sizes_of) else -1)
                for path, inode in self.inodes.items()
                if os.path.dirname(path) == directory
            ]
            found += [
                Entry(os.path.basename(path), True, -1)
                for path in sorted(self.directories)
                if path != directory and os.path.dirname(path) == directory
            ]
        return found

    def make_directory(self, path: str) -> None:
        self._enter("make_directory", path)
        with self.step:
            while path not in self.directories:
                self.directories.add(path)
                path = os.path.dirname(path)

    def rename(self, old: str, new: str) -> None:
        self._enter("rename", old)
        with self.step:
            self._rename(old, new)

    def _rename(self, old: str, new: str) -> None:
        if old in self.directories:
            for names in (self.inodes, self.synced_names):
                for path in [path for path in tuple(names) if path.startswith(old + "/")]:
                    names[new + path[len(old) :]] = names.pop(path)
            for directories in (self.directories, self.synced_directories):
                if old in directories:
                    directories.discard(old)
                    directories.add(new)
            self._unsynced_names = [_moved(naming, old, new) for naming in self._unsynced_names]
            self._unsynced_moves.append((old, new))
        else:
            if (replaced := self.inodes.get(new)) is not None:
                self._give_space(len(replaced.data))
            self.inodes[new] = self._inode(old)
            del self.inodes[old]
            self._unsynced_names.append(_Naming(new, self.inodes[new], old))

    def remove(self, path: str) -> None:
        self._enter("remove", path)
        with self.step:
            if (inode := self.inodes.pop(path, None)) is not None:
                self._give_space(len(inode.data))
                self._unsynced_names.append(_Naming(path, None))

    def remove_tree(self, path: str) -> None:
        self._enter("remove_tree", path)
        with self.step:
            for name in [name for name in self.inodes if name.startswith(path + "/")]:
                del self.inodes[name]
            self.directories.discard(path)

    def read_file(self, path: str) -> bytes:
        self._enter("read_file", path)
        return bytes(self._inode(path).data)

    def write_file(self, path: str, data: Buffer, *, sync: bool) -> None:
        self._enter("write_file", path)
        with self.step:
            if path not in self.inodes:
                self.inodes[path] = Inode()
                self._unsynced_names.append(_Naming(path, self.inodes[path]))
            inode = self.inodes[path]
            del inode.data[:]
            inode.kept_bytes = 0
            view = memoryview(data)
            while view:
                taken = self._take_space(len(view), len(view))
                inode.data += view[:taken]
                view = view[taken:]
            inode.modified_ms = self.now_ms
        if sync:
            self._enter("sync", path)
            with self.step:
                inode.sync()

    def replace_file(self, path: str, data: Buffer, *, sync: bool) -> None:
        temporary = path + ".tmp"
        self.inodes.pop(temporary, None)
        self.write_file(temporary, data, sync=sync)
        self.rename(temporary, path)
        if sync:
            self.sync_directory(os.path.dirname(path))

    def sync_directory(self, path: str) -> None:
        self._enter("sync_directory", path)
        with self.step:
            self._sync_directory(path)

    def _sync_directory(self, path: str) -> None:
        self._unsynced_names = [n for n in self._unsynced_names if os.path.dirname(n.path) != path]
        self._unsynced_moves = [move for move in self._unsynced_moves if os.path.dirname(move[0]) != path]
        for name in [name for name in self.synced_names if os.path.dirname(name) == path]:
            del self.synced_names[name]
        for name, inode in self.inodes.items():
            if os.path.dirname(name) == path:
                self.synced_names[name] = inode
        self.synced_directories |= {name for name in self.directories if os.path.dirname(name) == path}

    def modified_ms(self, path: str) -> int:
        return self._inode(path).modified_ms

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._inode(path).modified_ms = modified_ms

    def space(self, path: str) -> tuple[int, int]:
        return 1 << 40, (1 << 39) if self.free_bytes is None else self.free_bytes

    def lock(self, path: str) -> MemoryLock:
        if path in self.locked:
            raise FileLockedError(path)
        self.inodes.setdefault(path, Inode())
        return MemoryLock(self, path)


def _moved(naming: _Naming, old: str, new: str) -> _Naming:
    """The same change, in a folder that was renamed."""

    def moved(path: str) -> str:
        return new + path[len(old) :] if path.startswith(old + "/") else path

    return _Naming(moved(naming.path), naming.inode, None if naming.old is None else moved(naming.old))


def _moved_back(
    undone: list[tuple[str, str]], names: dict[str, Inode], directories: set[str]
) -> tuple[dict[str, Inode], set[str]]:
    """Names and directories as if these renames of folders had not happened; a folder that took an old name
    later is lost.
    """

    def under(path: str, folder: str) -> bool:
        return path == folder or path.startswith(folder + "/")

    for old, new in reversed(undone):
        names = {path: inode for path, inode in names.items() if not under(path, old)}
        directories = {path for path in directories if not under(path, old)}
        names = {old + p[len(new) :] if under(p, new) else p: inode for p, inode in names.items()}
        directories = {old + p[len(new) :] if under(p, new) else p for p in directories}
    return names, directories


def _torn(inode: Inode, dice: random.Random) -> bytes:
    """A content that a power cut may leave: the synced bytes, and some pages of those written since."""
    synced, now = inode.synced, bytes(inode.data)
    fate = dice.random()
    if fate < 0.3 or now == synced:
        return synced
    if fate < 0.5:
        return now
    if not now.startswith(synced):
        return dice.choice((synced, now, now[: inode.kept_bytes]))
    kept = bytearray(now[: dice.randint(len(synced), len(now))])
    if fate < 0.75:
        return bytes(kept)
    for start in range(len(synced), len(kept), PAGE_BYTES):
        if dice.random() < 0.3:
            end = min(start + PAGE_BYTES, len(kept))
            kept[start:end] = bytes(end - start)
    return bytes(kept)

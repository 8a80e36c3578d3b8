"""The operating system's files, and that the ones in memory behave like them."""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

import pytest

from pykafka_broker.log.disk.files import FileLockedError, FileSystem, OsFileSystem, write_fully
from pykafka_broker.testing.memory_files import MemoryFiles


@pytest.fixture(params=["os", "memory"])
def files(request: pytest.FixtureRequest) -> FileSystem:
    return OsFileSystem() if request.param == "os" else MemoryFiles()


@pytest.fixture
def folder(files: FileSystem, tmp_path: Path) -> str:
    path = str(tmp_path / "data")
    files.make_directory(path)
    return path


def test_a_file_is_written_and_read_at_positions(files: FileSystem, folder: str) -> None:
    file = files.open(f"{folder}/a", create=True)
    assert file.pwrite(b"hello", 0) == 5
    assert file.pwrite(memoryview(b"world"), 10) == 5

    assert (file.pread(100, 0), file.pread(3, 1), file.pread(5, 99)) == (b"hello\0\0\0\0\0world", b"ell", b"")
    assert file.size() == 15
    file.truncate(3)
    assert (file.pread(100, 0), file.size()) == (b"hel", 3)
    file.sync()


def test_room_can_be_reserved_without_growing_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    file = OsFileSystem().open(str(path), create=True)
    file.reserve(1 << 20)
    file.pwrite(b"x", 0)
    assert file.size() == 1
    if sys.platform == "linux":
        assert path.stat().st_blocks * 512 >= 1 << 20
        file.truncate(1)
        assert path.stat().st_blocks * 512 < 1 << 20


def test_a_cached_read_gives_all_or_nothing(files: FileSystem, folder: str) -> None:
    file = files.open(f"{folder}/a", create=True)
    file.pwrite(b"hello", 0)

    cached = file.pread_cached(5, 0)
    assert cached is None or bytes(cached) == b"hello"
    assert file.pread_cached(6, 0) is None


def test_creating_what_is_there_and_opening_what_is_not(files: FileSystem, folder: str) -> None:
    files.open(f"{folder}/a", create=True)
    with pytest.raises(FileExistsError):
        files.open(f"{folder}/a", create=True)
    with pytest.raises(FileNotFoundError):
        files.open(f"{folder}/b")
    with pytest.raises(FileNotFoundError):
        files.read_file(f"{folder}/b")


def test_an_open_file_outlives_its_name(files: FileSystem, folder: str) -> None:
    file = files.open(f"{folder}/a", create=True)
    file.pwrite(b"x", 0)
    files.remove(f"{folder}/a")
    files.remove(f"{folder}/a")

    assert file.pread(1, 0) == b"x"
    assert not files.exists(f"{folder}/a")


def test_small_files_are_replaced_as_a_whole(files: FileSystem, folder: str) -> None:
    path = f"{folder}/checkpoint"
    files.write_file(path, b"long content", sync=False)
    files.write_file(path, b"short", sync=True)
    assert files.read_file(path) == b"short"
    files.replace_file(path, b"new", sync=True)

    assert files.read_file(path) == b"new"
    files.write_file(f"{folder}/other", b"12345", sync=False)
    found = files.entries(folder, sizes_of=("point", ".log"))
    assert sorted((entry.name, entry.is_directory, entry.size) for entry in found) == [
        ("checkpoint", False, 3),
        ("other", False, -1),
    ]


def test_folders_are_listed_renamed_and_removed_with_all_that_is_in_them(
    files: FileSystem, folder: str
) -> None:
    files.make_directory(f"{folder}/a/b")
    files.write_file(f"{folder}/a/b/file", b"x", sync=False)
    files.rename(f"{folder}/a", f"{folder}/c")

    assert files.read_file(f"{folder}/c/b/file") == b"x"
    assert [(entry.name, entry.is_directory) for entry in files.entries(folder)] == [("c", True)]
    files.remove_tree(f"{folder}/c")
    assert files.entries(folder) == []
    files.sync_directory(folder)


def test_what_vanishes_between_the_listing_and_the_look_at_its_size_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "there.log").write_bytes(b"12")
    (tmp_path / "gone.log").symlink_to(tmp_path / "nowhere")
    [entry] = OsFileSystem().entries(str(tmp_path), sizes_of=(".log",))
    assert (entry.name, entry.is_directory, entry.size) == ("there.log", False, 2)


def test_a_lock_keeps_others_out_until_it_is_released(files: FileSystem, folder: str) -> None:
    lock = files.lock(f"{folder}/.lock")
    with pytest.raises(FileLockedError):
        files.lock(f"{folder}/.lock")
    lock.release()
    files.lock(f"{folder}/.lock").release()


def test_the_space_of_a_volume(files: FileSystem, folder: str) -> None:
    total, usable = files.space(folder)
    assert total >= usable > 0


def _try_lock(path: str) -> bool:
    try:
        OsFileSystem().lock(path)
    except FileLockedError:
        return False
    return True


def test_a_lock_keeps_another_process_out_even_after_a_refused_attempt_in_this_one(tmp_path: Path) -> None:
    """A refused attempt that opened and closed the file once dropped the lock that this process held."""
    path = str(tmp_path / ".lock")
    lock = OsFileSystem().lock(path)
    with pytest.raises(FileLockedError):
        OsFileSystem().lock(path)

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_try_lock, (path,)) is False
        lock.release()
        assert pool.apply(_try_lock, (path,)) is True


def test_descriptors_are_given_back_with_the_last_holder(tmp_path: Path) -> None:
    file = OsFileSystem().open(str(tmp_path / "a"), create=True)
    descriptor = file.fd  # type: ignore[attr-defined]
    held = file
    del file
    os.fstat(descriptor)
    del held
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


class Reluctant:
    """A file that takes a few bytes at a time."""

    def __init__(self) -> None:
        self.content = bytearray(20)

    def pwrite(self, data: bytes, position: int) -> int:
        taken = bytes(data[:3])
        self.content[position : position + len(taken)] = taken
        return len(taken)


def test_a_short_write_is_continued() -> None:
    file = Reluctant()
    write_fully(file, b"0123456789", 5)  # type: ignore[arg-type]
    assert bytes(file.content) == bytes(5) + b"0123456789" + bytes(5)

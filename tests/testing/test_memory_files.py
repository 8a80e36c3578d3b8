"""Files in memory, with a disk that fails as disks do."""

from __future__ import annotations

import errno
import random

import pytest

from pykafka_broker.testing.memory_files import MemoryFiles


def written(files: MemoryFiles, path: str, data: bytes) -> None:
    file = files.open(path, create=True)
    assert file.pwrite(data, 0) == len(data)


def test_a_power_cut_takes_what_was_not_synced_and_a_kill_takes_nothing() -> None:
    files = MemoryFiles()
    files.make_directory("/data")
    written(files, "/data/unsynced", b"name and content are lost")
    synced = files.open("/data/synced", create=True)
    synced.pwrite(b"kept", 0)
    synced.sync()
    files.sync_directory("/data")
    synced.pwrite(b"lost", 4)
    written(files, "/data/new", b"its name is lost")

    killed, cut = files.killed(), files.power_cut()

    assert killed.read_file("/data/synced") == b"keptlost"
    assert killed.read_file("/data/new") == b"its name is lost"
    assert cut.read_file("/data/synced") == b"kept"
    assert cut.read_file("/data/unsynced") == b""  # its name was synced with the folder, its content never
    assert not cut.exists("/data/new")


def test_chance_keeps_what_was_synced_and_at_most_what_was_written() -> None:
    files = MemoryFiles()
    files.make_directory("/data")
    file = files.open("/data/log", create=True)
    file.pwrite(b"a" * 1_000, 0)
    file.sync()
    files.sync_directory("/data")
    file.pwrite(b"b" * 2_000, 1_000)

    contents = {files.power_cut(random.Random(seed)).read_file("/data/log") for seed in range(100)}

    assert all(1_000 <= len(content) <= 3_000 and content.startswith(b"a" * 1_000) for content in contents)
    assert len(contents) > 10


def test_a_full_disk_takes_a_part_and_then_refuses() -> None:
    files = MemoryFiles()
    files.make_directory("/data")
    file = files.open("/data/log", create=True)
    files.free_bytes = 4

    assert file.pwrite(b"sixsix", 0) == 4
    with pytest.raises(OSError, match="No space left") as refused:
        file.pwrite(b"more", 4)
    assert refused.value.errno == errno.ENOSPC

    files.heal()
    assert file.pwrite(b"more", 4) == 4


def test_a_fault_strikes_the_named_operation_on_the_named_path_as_often_as_told() -> None:
    files = MemoryFiles()
    files.make_directory("/data")
    bad, good = (files.open(f"/data/{name}", create=True) for name in ("bad", "good"))
    files.fail("sync", errno.EIO, path="bad", times=2, skip=1)

    outcomes = []
    for file in (bad, good, bad, bad, bad):
        try:
            file.sync()
            outcomes.append("synced")
        except OSError as error:
            outcomes.append(errno.errorcode[error.errno or 0])

    assert outcomes == ["synced", "synced", "EIO", "EIO", "synced"]


def test_calls_are_recorded_in_order() -> None:
    files = MemoryFiles()
    files.make_directory("/data")
    files.replace_file("/data/meta", b"content", sync=True)

    assert files.calls == [
        ("make_directory", "/data"),
        ("write_file", "/data/meta.tmp"),
        ("sync", "/data/meta.tmp"),
        ("rename", "/data/meta.tmp"),
        ("sync_directory", "/data"),
    ]


def test_folders_are_listed_in_the_same_order_by_every_process() -> None:
    files, names = MemoryFiles(), [f"events-{partition}" for partition in range(10)]
    for name in reversed(names):
        files.make_directory(f"/data/{name}")
    assert [entry.name for entry in files.entries("/data")] == names

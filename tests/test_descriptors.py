"""Descriptors in reserve: lent when the process has no other, and taken back."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pykafka_broker.descriptors import DescriptorReserve
from pykafka_broker.log.files import OsFileSystem, write_fully


@pytest.fixture
def exhaust() -> Iterator[Callable[[], None]]:
    """Lower the limit of this process so that it can open nothing more."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)

    def lower() -> None:
        free = os.open(os.devnull, os.O_RDONLY)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, limit[1]))

    yield lower
    resource.setrlimit(resource.RLIMIT_NOFILE, limit)


def test_files_are_opened_with_the_reserve_when_there_is_nothing_else(
    exhaust: Callable[[], None], tmp_path: Path
) -> None:
    calls: list[str] = []
    files = OsFileSystem()
    files.reserve = DescriptorReserve(lambda: calls.append("short"))
    files.reserve.hold(2)
    exhaust()

    first = files.open(str(tmp_path / "first"), create=True)
    write_fully(first, b"one", 0)
    files.replace_file(str(tmp_path / "second"), b"two", sync=True)
    assert files.read_file(str(tmp_path / "second")) == b"two"
    assert sorted(entry.name for entry in files.entries(str(tmp_path))) == ["first", "second"]
    assert calls == ["short"] * 2, "a short use gives its descriptor back, and the next one has that"

    second = files.open(str(tmp_path / "second"))
    with pytest.raises(OSError) as refused:
        files.read_file(str(tmp_path / "first"))
    assert refused.value.errno == errno.EMFILE
    first.close()
    second.close()
    files.reserve.refill()
    assert [files.reserve.lend() for _ in range(3)] == [True, True, False]
    files.reserve.hold(0)


def test_what_is_held_is_given_back() -> None:
    before = len(os.listdir("/dev/fd"))
    reserve = DescriptorReserve()
    reserve.hold(5)
    assert len(os.listdir("/dev/fd")) == before + 5
    reserve.hold(0)
    assert len(os.listdir("/dev/fd")) == before
    assert not reserve.lend()


def test_other_errors_are_not_helped_by_descriptors() -> None:
    reserve = DescriptorReserve()
    reserve.hold(1)
    with pytest.raises(FileNotFoundError):
        reserve.use(lambda: os.open("/no such file", os.O_RDONLY))
    assert reserve.lend()

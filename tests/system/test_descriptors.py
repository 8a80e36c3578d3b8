"""Descriptors in reserve: lent when the process has no other, and taken back."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pykafka_broker.log.disk.files import File, OsFileSystem, write_fully
from pykafka_broker.system.descriptors import MAX_RECLAIMS, DescriptorReserve
from tests.support.descriptors import descriptors_left


@pytest.fixture
def exhaust() -> Iterator[Callable[[], None]]:
    """Lower the limit of this process so that it can open nothing more."""
    with ExitStack() as undo:
        yield lambda: undo.enter_context(descriptors_left(0))


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


def test_files_are_closed_for_others_that_are_to_be_opened_as_long_as_there_are_any(
    exhaust: Callable[[], None], tmp_path: Path
) -> None:
    files = OsFileSystem()
    idle = [files.open(str(tmp_path / f"{number}"), create=True) for number in range(3)]

    def close_one() -> None:
        if idle:
            idle.pop().close()

    reserve = files.reserve = DescriptorReserve(close_files=close_one)
    reserve.hold(1)
    exhaust()

    opened: list[File] = [files.open(str(tmp_path / "0")) for _ in range(4)]
    assert idle == []
    with pytest.raises(OSError) as refused:
        files.open(str(tmp_path / "0"))
    assert refused.value.errno == errno.EMFILE
    for file in opened:
        file.close()
    reserve.hold(0)


def test_what_takes_more_descriptors_than_can_be_freed_is_given_up() -> None:
    closings: list[str] = []
    reserve = DescriptorReserve(close_files=lambda: closings.append("closed"))
    reserve.hold(2)

    def open_() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with pytest.raises(OSError, match="Too many open files"):
        reserve.use(open_)
    assert closings == ["closed"] * MAX_RECLAIMS
    reserve.hold(0)


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

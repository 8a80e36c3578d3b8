"""Large answers leave their bytes in the file until they are sent, piece by piece."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.segment.stored_records import LEAST_BYTES, PIECE_BYTES, StoredRecords
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import append, new_log, read_here

ALL = 100_000_000


def log_of(files: MemoryFiles, size_bytes: int) -> PartitionLog:
    """A log of at least so many bytes."""
    log = new_log(files, max_message_bytes=10_000_000)
    while log.state.size_bytes < size_bytes:
        append(log, b"x" * 50_000)
    return log


def stored(log: PartitionLog, max_bytes: int = ALL) -> StoredRecords:
    """What a fetch from the start is answered with."""
    answer = log.reader.plan_read(0, max_bytes).answer_cached(read_here)
    assert isinstance(answer, StoredRecords)
    return answer


async def test_an_answer_is_taken_in_pieces_and_its_length_is_what_is_left() -> None:
    log = log_of(MemoryFiles(), 2 * PIECE_BYTES + 1)
    whole = log.reader.plan_read(0, ALL).read()
    answer = stored(log)

    assert len(answer) == len(whole)
    first = answer.take_cached()
    assert first is not None
    assert (len(first), len(answer)) == (PIECE_BYTES, len(whole) - PIECE_BYTES)
    second, third = await answer.take(), answer.take_cached()
    assert third is not None
    assert b"".join([first, second, third]) == whole
    assert len(answer) == 0


def test_a_small_answer_is_read_at_once() -> None:
    log = log_of(MemoryFiles(), 100)
    append(log, b"x" * (LEAST_BYTES // 2))

    plan = log.reader.plan_read(1, LEAST_BYTES - 1)

    assert plan.answer_cached(read_here) == plan.read()
    assert plan.answer(read_here) == plan.read()


async def test_what_the_page_cache_lacks_is_read_through_before_it_is_answered() -> None:
    files = MemoryFiles()
    log = log_of(files, PIECE_BYTES + 1)
    files.is_cached = False
    plan = log.reader.plan_read(0, ALL)
    assert plan.answer_cached(read_here) is None

    answer = plan.answer(read_here)

    assert isinstance(answer, StoredRecords)
    assert answer.take_cached() is None
    assert b"".join([await answer.take(), await answer.take()]) == plan.read()


def test_a_disk_that_fails_is_told_to_who_has_no_answer_yet() -> None:
    files = MemoryFiles()
    log = log_of(files, 2 * PIECE_BYTES)
    files.fail("pread", errno.EIO, skip=1)

    with pytest.raises(KafkaError) as refused:
        log.reader.plan_read(0, ALL).answer(read_here)

    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def failing(files: MemoryFiles, log: PartitionLog) -> None:
    files.fail("pread", errno.EIO)


def ending_early(files: MemoryFiles, log: PartitionLog) -> None:
    log.state.segments[0].file.truncate(1000)


@pytest.mark.parametrize("goes_wrong", [failing, ending_early])
async def test_after_a_piece_that_cannot_be_had_the_segment_is_read_before_it_is_answered(
    goes_wrong: Callable[[MemoryFiles, PartitionLog], None],
) -> None:
    files = MemoryFiles()
    log = log_of(files, PIECE_BYTES)
    content = log.state.segments[0].file.pread(ALL, 0)
    answer = stored(log)
    goes_wrong(files, log)

    with pytest.raises(OSError):
        await answer.take()
    assert log.reader.plan_read(0, ALL).answer_cached(read_here) is None

    log.state.segments[0].file.pwrite(content, 0)
    assert isinstance(log.reader.plan_read(0, ALL).answer(read_here), StoredRecords)
    assert len(stored(log)) == len(content), "the disk is well again"


async def test_an_answer_keeps_its_bytes_when_retention_takes_the_segment_away() -> None:
    log = log_of(MemoryFiles(), PIECE_BYTES + 1)
    whole = log.reader.plan_read(0, ALL).read()
    answer = stored(log)
    log.roller.roll()
    append(log, b"newer")

    log.trimmer.delete_records(log.state.log_end_offset - 1)
    log.trimmer.apply_retention(0)

    assert log.state.segments[0].base_offset > 0
    pieces: list[Any] = [answer.take_cached(), answer.take_cached()]
    assert b"".join(pieces) == whole

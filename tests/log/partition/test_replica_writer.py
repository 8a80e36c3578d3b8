"""A log as the copy of a leader's: the same bytes in the same files, and what cannot be the leader's is
refused.
"""

from __future__ import annotations

import errno
import random
from typing import Any

import pytest

from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.rolling import NamesDue
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import (
    FOLDER,
    NOW,
    append,
    batch,
    end_transaction,
    new_log,
    produce,
    records,
    reopened,
    served,
    values,
)

ANY_EPOCH = 1000


def sent(leader: PartitionLog, offset: int, max_bytes: int = 1 << 20) -> bytes:
    """The batches of a leader from `offset` on."""
    return bytes(leader.reader.plan_read(offset, max_bytes, limit="log_end").read())


def copy(leader: PartitionLog, follower: PartitionLog, max_bytes: int = 1 << 20) -> None:
    """Bring the follower to the leader's end, in answers of about `max_bytes`."""
    while follower.state.log_end_offset < leader.state.log_end_offset:
        data = sent(leader, follower.state.log_end_offset, max_bytes)
        follower.replica_writer.append(data, leader_epoch=ANY_EPOCH, now_ms=NOW)
    follower.state.advance_high_watermark(leader.state.high_watermark)


def filled(dice: random.Random, files: MemoryFiles, **settings: Any) -> PartitionLog:
    """A leader's log of plain, idempotent and transactional batches, over several epochs."""
    log, epoch, sequence = new_log(files, **settings), 0, 0
    for number in range(60):
        kind = dice.randrange(8)
        if kind == 0:
            epoch += 1
        value = bytes([number]) * dice.randrange(1, 300)
        if kind < 4:
            append(log, value, b"more", epoch=epoch, timestamp=NOW + number * 1000)
        elif kind < 6:
            produce(log, 7, sequence, value, epoch=epoch)
            sequence += 1
        else:
            produce(log, 100 + number, 0, value, epoch=epoch, transactional=True)
            end_transaction(log, 100 + number, commit=kind == 6, epoch=epoch)
    log.state.advance_high_watermark(log.state.log_end_offset)
    return log


def contents(files: MemoryFiles) -> dict[str, bytes]:
    return {path: bytes(inode.data) for path, inode in files.inodes.items() if path.startswith(FOLDER)}


@pytest.mark.parametrize("seed", range(40))
def test_all_files_of_the_copy_are_those_of_the_leader(seed: int) -> None:
    dice = random.Random(seed)
    settings: dict[str, Any] = {"segment_bytes": 4000, "index_interval_bytes": dice.choice([1, 300, 4096])}
    if dice.random() < 0.3:
        settings["segment_index_bytes"] = 36
    if dice.random() < 0.3:
        settings["segment_ms"] = 9000
    at_leader, here = MemoryFiles(), MemoryFiles()
    leader = filled(dice, at_leader, **settings)
    follower = new_log(here, **settings)

    copy(leader, follower, dice.choice([1, 1000, 6000, 1 << 20]))

    assert follower.state.epochs.entries == leader.state.epochs.entries
    assert follower.state.last_stable_offset == leader.state.last_stable_offset
    assert leader.close() and follower.close()
    assert contents(here) == contents(at_leader)


def test_the_batches_of_an_answer_are_written_at_once() -> None:
    leader, files = new_log(MemoryFiles()), MemoryFiles()
    for number in range(100):
        append(leader, b"%d" % number)
    follower = new_log(files)
    copied = sent(leader, 0)
    first = follower.replica_writer.append(copied[: len(copied) // 2], leader_epoch=0, now_ms=NOW)
    assert first.names_due is None
    rest = sent(leader, follower.state.log_end_offset)
    files.calls.clear()

    follower.replica_writer.append(rest, leader_epoch=0, now_ms=NOW)

    assert [operation for operation, *_ in files.calls if operation == "pwrite"] == ["pwrite"]
    assert values(follower) == values(leader)


def damaged() -> bytearray:
    made = batch(b"abc", base_offset=1, leader_epoch=3)
    made[-2] ^= 1
    return made


@pytest.mark.parametrize(
    "second, code",
    [
        (damaged(), ErrorCode.CORRUPT_MESSAGE),
        (batch(b"b", base_offset=0, leader_epoch=3), ErrorCode.INVALID_RECORD),
        (batch(b"b", base_offset=1, leader_epoch=2), ErrorCode.INVALID_RECORD),
    ],
    ids=["damaged", "offset again", "earlier epoch"],
)
def test_nothing_is_written_of_an_answer_with_a_batch_that_cannot_be_the_leaders(
    second: bytearray, code: ErrorCode
) -> None:
    log = new_log(MemoryFiles())

    with pytest.raises(KafkaError) as refused:
        log.replica_writer.append(
            batch(b"a", base_offset=0, leader_epoch=3) + second, leader_epoch=3, now_ms=NOW
        )

    assert (refused.value.code, log.state.log_end_offset, values(log)) == (code, 0, [])


def test_batches_of_a_later_epoch_than_the_leaders_are_left_out_with_all_that_follow() -> None:
    log = new_log(MemoryFiles())
    answer = (
        batch(b"a", base_offset=0, leader_epoch=3)
        + batch(b"b", base_offset=1, leader_epoch=4)
        + batch(b"c", base_offset=2, leader_epoch=4)
    )

    log.replica_writer.append(answer, leader_epoch=3, now_ms=NOW)

    assert values(log) == [b"a"]


def test_half_a_batch_at_the_end_is_passed_over() -> None:
    log = new_log(MemoryFiles())
    answer = batch(b"a", base_offset=0) + batch(b"b", base_offset=1)[:-3]

    copied = log.replica_writer.append(answer, leader_epoch=0, now_ms=NOW)

    assert (copied.size_bytes, values(log)) == (len(answer), [b"a"])


def test_batches_below_the_log_end_are_refused() -> None:
    log = new_log(MemoryFiles())
    append(log, b"a", b"b")

    with pytest.raises(KafkaError, match="First offset 1 is less than the next offset 2") as refused:
        again = batch(b"b", b"c", base_offset=1, leader_epoch=0)
        log.replica_writer.append(again, leader_epoch=0, now_ms=NOW)

    assert (refused.value.code, values(log)) == (ErrorCode.OFFSET_OUT_OF_RANGE, [b"a", b"b"])


def test_an_empty_log_that_starts_inside_the_first_batch_begins_with_that_batch() -> None:
    log = new_log(MemoryFiles())
    log.trimmer.reset_to(12)

    log.replica_writer.append(batch(*[b"v"] * 5, base_offset=10), leader_epoch=0, now_ms=NOW)

    assert [offset for offset, _ in records(log)] == [10, 11, 12, 13, 14]
    assert [segment.base_offset for segment in log.state.segments] == [10]


def test_an_append_that_needs_a_file_goes_on_when_it_is_there() -> None:
    leader, log = new_log(MemoryFiles()), new_log(MemoryFiles(), segment_bytes=200)
    for number in range(10):
        append(leader, b"%d" % number)
    left, rounds = memoryview(sent(leader, 0)), 0
    while True:
        copied = log.replica_writer.append(left, leader_epoch=0, now_ms=NOW, defers_names=True)
        due = copied.names_due
        if due is None:
            break
        assert isinstance(due, NamesDue)
        left, rounds = left[copied.size_bytes :], rounds + 1
        new = due.roller.make_names(due.base_offset)
        if new is not None:
            due.roller.adopt(new)

    assert (values(log), rounds > 2) == (values(leader), True)


def test_an_epoch_begins_before_its_first_batch_where_that_is_sound_and_comes_next() -> None:
    log = new_log(MemoryFiles())
    append(log, b"copied before", epoch=1)

    def begins(records: bytearray) -> NamesDue | None:
        return log.replica_writer.begin_epoch(records, leader_epoch=3)

    next_one = batch(b"v", base_offset=1, leader_epoch=3)

    assert begins(batch(b"v", base_offset=1, leader_epoch=1)) is None
    assert begins(batch(b"v", base_offset=1, leader_epoch=4)) is None
    assert begins(batch(b"v", base_offset=2, leader_epoch=3)) is None
    assert begins(next_one[:-1]) is None
    assert begins(next_one[:20]) is None
    assert begins(next_one[:-1] + b"?") is None
    assert list(log.state.epochs.entries) == [(1, 0)]

    due = begins(next_one)
    assert due is not None and not log.epoch_file.is_saved
    due.roller.make_names(due.base_offset)
    assert begins(next_one) is None
    copied = log.replica_writer.append(next_one, leader_epoch=3, now_ms=NOW, defers_names=True)
    assert copied.names_due is None
    assert log.state.epochs.entries == ((1, 0), (3, 1))


def test_a_disk_error_leaves_whole_batches_and_the_next_append_goes_on() -> None:
    leader, files = new_log(MemoryFiles()), MemoryFiles()
    for number in range(6):
        append(leader, b"%d" % number)
    log = new_log(files, segment_bytes=300)
    files.free_bytes = 400

    with pytest.raises(KafkaError) as failed:
        log.replica_writer.append(sent(leader, 0), leader_epoch=0, now_ms=NOW)
    assert failed.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    files.free_bytes = None
    copy(leader, log)

    assert values(log) == values(leader)


def test_flush_messages_asks_for_a_flush() -> None:
    log = new_log(MemoryFiles(), flush_messages=2)

    first = log.replica_writer.append(batch(b"a", base_offset=0), leader_epoch=0, now_ms=NOW)
    second = log.replica_writer.append(batch(b"b", base_offset=1), leader_epoch=0, now_ms=NOW)

    assert (first.flush_due, second.flush_due) == (False, True)


@pytest.mark.parametrize("seed", range(30))
def test_a_torn_append_is_cut_off_at_the_next_start(seed: int) -> None:
    dice = random.Random(seed)
    leader = filled(dice, MemoryFiles(), segment_bytes=4000)
    files = MemoryFiles()
    follower = new_log(files, segment_bytes=4000)
    while follower.state.log_end_offset < leader.state.log_end_offset // 2:
        data = sent(leader, follower.state.log_end_offset, 1000)
        follower.replica_writer.append(data, leader_epoch=ANY_EPOCH, now_ms=NOW)
    flushed = follower.flusher.flush()
    copy(leader, follower, 1500)

    again = reopened(files.power_cut(dice), segment_bytes=4000, recovery_point=flushed)

    end = again.state.log_end_offset
    assert end >= flushed
    found, refused = served(again)  # damage inside the log, behind the flush, is fenced
    written, _ = served(leader)
    assert [offset for offset in refused if offset < flushed] == []
    assert found == {o: r for o, r in written.items() if o < end and o not in refused}
    copy(leader, again, 1500)
    found, refused = served(again)
    assert found == {o: r for o, r in written.items() if o not in refused}
    assert again.state.epochs.entries == leader.state.epochs.entries


# --- truncation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_a_truncation_that_a_power_cut_interrupts_leaves_no_hole(seed: int) -> None:
    dice = random.Random(seed)
    files = MemoryFiles()
    log = filled(dice, files, segment_bytes=3000)
    before = records(log)
    log.flusher.flush()
    boundaries = [offset for offset, _ in before]
    offset = dice.choice(boundaries)
    states: list[MemoryFiles] = []
    enter = files._enter

    def recording(operation: str, path: str) -> None:
        enter(operation, path)
        if operation not in ("pread", "read_file"):
            states.append(files.power_cut(dice))

    files._enter = recording  # type: ignore[method-assign]
    log.trimmer.truncate_to(offset)
    states.append(files.power_cut(dice))

    for state in states:
        again = reopened(state, segment_bytes=3000, recovery_point=boundaries[-1] + 1)
        left = records(again)
        assert left == before[: len(left)]
        assert len(left) >= len([one for one in before if one[0] < again.state.log_end_offset])


def test_a_truncation_at_the_end_forgets_an_epoch_that_was_led_without_a_record() -> None:
    log = new_log(MemoryFiles())
    append(log, b"a", epoch=2)
    log.epoch_file.begin(5)

    log.trimmer.truncate_to(1)

    assert [tuple(entry) for entry in log.state.epochs.entries] == [(2, 0)]


def test_a_failed_truncation_says_so() -> None:
    files = MemoryFiles()
    log = new_log(files, environment=Environment(files))
    append(log, b"a")
    append(log, b"b")
    files.fail("truncate", errno.EIO)

    with pytest.raises(OSError):
        log.trimmer.truncate_to(1)

"""What was written before this process began is checked before it is served for the first time.

A clean stop vouches for the order in which files were left, not for the disk: whatever bit has flipped since,
readers get what was written, or CORRUPT_MESSAGE for the batch that holds it.
"""

from __future__ import annotations

import logging
import random
from typing import Any

import pytest

from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.segment.damage import Damage
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import ATTRIBUTES_OFFSET, build_batch, iter_batches, read_records
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import FOLDER, NOW, append, new_log, reopened

SETTINGS: dict[str, Any] = {"segment_bytes": 700, "index_interval_bytes": 150}
BATCHES = 24
END = 48
FIRST = f"{FOLDER}/{0:020d}"
#: Fields of a batch header that its checksum does not cover: (first byte, bytes).
UNCOVERED = [(0, 8), (8, 4), (12, 4), (16, 1), (17, 4)]


def stopped(**settings: int) -> MemoryFiles:
    """A log of several closed segments and an active one with index entries, after a clean stop."""
    files = MemoryFiles()
    log = new_log(files, **(SETTINGS | settings))
    for n in range(BATCHES):
        append(log, *[b"%d.%d" % (n, i) for i in range(n % 3 + 1)], epoch=n // 7)
    assert log.close()
    return files


def started(files: MemoryFiles, **settings: int) -> PartitionLog:
    return reopened(files, clean=True, recovery_point=END, **(SETTINGS | settings))


def served(log: PartitionLog, max_bytes: int) -> tuple[dict[int, bytes | None], list[int]]:
    """Values by offset as a consumer gets them, and the offsets that were answered CORRUPT_MESSAGE."""
    found: dict[int, bytes | None] = {}
    refused = []
    offset = 0
    while offset < log.state.log_end_offset:
        try:
            plan = log.reader.plan_read(offset, max_bytes, limit="log_end")
            data = plan.read_cached()
            data = plan.read() if data is None else data
        except KafkaError as error:
            assert error.code is ErrorCode.CORRUPT_MESSAGE
            refused.append(offset)
            offset += 1
            continue
        batches = list(iter_batches(data))
        assert batches, f"nothing at {offset}"
        for at, header in batches:
            found |= {r.offset: r.value for r in read_records(data[at : at + header.size_in_bytes])}
            offset = header.next_offset
    return found, refused


def batches_of(files: MemoryFiles, path: str) -> list[tuple[int, int, set[int]]]:
    """(start, end, offsets) of the batches of a file."""
    return [
        (at, at + header.size_in_bytes, set(range(header.base_offset, header.next_offset)))
        for at, header in iter_batches(files.read_file(path))
    ]


def flips(files: MemoryFiles, path: str) -> list[tuple[int, int]]:
    """(position, bit): of the first, last and two other batches every bit that no checksum covers, and of
    every batch a bit of some other bytes.
    """
    dice = random.Random(5)
    found = []
    batches = batches_of(files, path)
    for start, _, _ in (batches[0], batches[1], batches[-2], batches[-1]):
        for first, size in UNCOVERED:
            found += [(start + first + at, bit) for at in range(size) for bit in range(8)]
    for start, end, _ in batches:
        found += [(dice.randrange(start + ATTRIBUTES_OFFSET, end), dice.randrange(8)) for _ in range(5)]
    return found


def flipped(files: MemoryFiles, path: str, position: int, bit: int = 0) -> MemoryFiles:
    after = files.killed()
    after.inodes[path].data[position] ^= 1 << bit
    return after


@pytest.mark.parametrize("segment_bytes", [700, 10_000], ids=["closed", "active"])
@pytest.mark.parametrize("max_bytes", [1, 400, 100_000])
def test_whatever_bit_flips_after_a_clean_stop_only_its_batch_is_refused(
    segment_bytes: int, max_bytes: int
) -> None:
    files = stopped(segment_bytes=segment_bytes)
    whole, _ = served(started(files.killed(), segment_bytes=segment_bytes), max_bytes)
    path = f"{FOLDER}/{0 if segment_bytes > 700 else 15:020d}.log"
    batches = batches_of(files, path)
    for position, bit in flips(files, path):
        log = started(flipped(files, path, position, bit), segment_bytes=segment_bytes)

        found, refused = served(log, max_bytes)

        [hit] = [offsets for start, end, offsets in batches if start <= position < end]
        assert (set(refused), found) == (hit, {o: v for o, v in whole.items() if o not in hit}), (
            position,
            bit,
        )


def test_a_flip_is_found_also_where_the_index_is_lost_and_made_from_the_flipped_header() -> None:
    files = stopped()
    whole, _ = served(started(files.killed()), 1)
    path = f"{FOLDER}/{15:020d}"
    for position, bit in flips(files, path + ".log"):
        damaged = flipped(files, path + ".log", position, bit)
        damaged.remove(path + ".index")
        damaged.remove(path + ".timeindex")
        found, refused = served(started(damaged), 1)
        assert found.items() <= whole.items()
        assert set(refused) | found.keys() == whole.keys()
        assert len(refused) <= 3


def test_damage_is_told_of_once_and_known_to_the_next_start(caplog: pytest.LogCaptureFixture) -> None:
    files = stopped()
    start, end, offsets = batches_of(files, FIRST + ".log")[2]
    files.inodes[FIRST + ".log"].data[end - 1] ^= 1
    log = started(files)
    with caplog.at_level(logging.INFO):
        served(log, 1)
        assert log.close()
        again = started(files)
        assert again.state.segments[0].trust.damages == (Damage(start, end, min(offsets), max(offsets) + 1),)
        assert served(again, 1)[1] == sorted(offsets)
    lines = [record.getMessage() for record in caplog.records if "damaged" in record.getMessage()]
    assert lines == [
        f"orders-0: offsets {min(offsets)} to {max(offsets)} are damaged (segment 0, bytes {start} to {end}) "
        "and will not be served"
    ]


def test_what_was_checked_once_and_what_this_process_wrote_is_read_without_a_thread() -> None:
    files = stopped()
    log = started(files)
    plan = log.reader.plan_read(0, 10_000, limit="log_end")
    assert plan.read_cached() is None
    plan.read()
    assert log.reader.plan_read(0, 10_000, limit="log_end").read_cached() is not None
    assert log.reader.plan_read(1, 1, limit="log_end").read_cached() is not None

    first = append(log, b"new", epoch=9).first_offset
    assert log.reader.plan_read(first, 1000).read_cached() is not None


def test_a_reader_in_the_middle_has_only_what_he_needs_checked() -> None:
    files = MemoryFiles()
    log = new_log(files)
    for n in range(40):
        append(log, b"%d" % n + bytes(100_000))
    log.close()
    log = reopened(files, clean=True)
    log.reader.plan_read(20, 1, limit="log_end").read()
    [segment] = log.state.segments
    [(start, end)] = segment.trust.verified_spans
    assert start <= segment.index.position_before(20)
    assert 1 << 20 <= end - start < (1 << 20) + 200_000

    for offset in (39, 30, *range(40)):
        log.reader.plan_read(offset, 1, limit="log_end").read()
    assert (segment.trust.unverified_end, segment.trust.verified_spans) == (0, ())


def test_searches_by_time_give_no_record_of_a_damaged_batch() -> None:
    files = MemoryFiles()
    log = new_log(files, **SETTINGS)
    for n in range(BATCHES):
        append(log, b"%d" % n, timestamp=NOW + n)
    log.close()
    start, _, offsets = batches_of(files, FIRST + ".log")[3]
    assert offsets == {3}
    for position in (start + 5, start + 30, start + 60):
        found = started(flipped(files, FIRST + ".log", position)).reader.search_timestamp(NOW + 3)()
        assert found is not None
        assert found.offset == 4


def test_compacted_logs_may_have_gaps_and_are_checked_all_the_same() -> None:
    files = MemoryFiles()
    log = new_log(files, cleanup_policy=frozenset({"compact"}), **SETTINGS)
    for n in range(BATCHES):
        record = build_batch([(NOW, b"key", b"v%d" % n, ())])
        log.writer.append(bytearray(record), leader_epoch=0, now_ms=NOW)
    log.close()
    _, end, offsets = batches_of(files, FIRST + ".log")[2]
    damaged = flipped(files, FIRST + ".log", end - 2)
    log = reopened(damaged, clean=True, cleanup_policy=frozenset({"compact"}), **SETTINGS)
    found, refused = served(log, 1)
    assert refused == sorted(offsets)
    assert len(found) == BATCHES - 1


def test_a_truncation_below_what_is_not_checked_leaves_nothing_behind_it_unchecked() -> None:
    files = stopped(segment_bytes=10_000)
    log = started(files, segment_bytes=10_000)
    log.trimmer.truncate_to(10)
    offset = append(log, b"other", epoch=9).first_offset
    assert log.reader.plan_read(offset, 1, limit="log_end").read_cached() is not None
    assert served(log, 1)[1] == []


@pytest.mark.parametrize("position", [None, 70, 2_000_000, 3_000_100])
def test_batches_larger_than_what_is_checked_at_a_time_are_checked(position: int | None) -> None:
    files = MemoryFiles()
    log = new_log(files, max_message_bytes=1 << 22)
    sizes = [3_000_000, 10, 1_048_576 - 69, 1_048_576, 10]
    for size in sizes:
        append(log, bytes(size))
    log.roller.roll()
    append(log, b"last")
    log.close()
    if position is not None:
        files.inodes[FIRST + ".log"].data[position] ^= 1
    found, refused = served(reopened(files, clean=True, recovery_point=6), 1)
    assert refused == {None: [], 70: [0], 2_000_000: [0], 3_000_100: [1]}[position]
    assert {offset: len(value or b"") for offset, value in found.items()} == {
        offset: size for offset, size in enumerate([*sizes, 4]) if offset not in refused
    }


@pytest.mark.parametrize(
    "wrong", [b"0\n1\n7 0\n", b"0\n2\n0 0\n1 9\n", b"0\n3\n0 0\n1 3\n2 6\n", b"0\n1\n0 0\n"]
)
def test_leader_epochs_that_are_well_formed_and_wrong_make_no_batch_a_damaged_one(wrong: bytes) -> None:
    files = stopped()
    whole, _ = served(started(files.killed()), 1)
    files.write_file(f"{FOLDER}/leader-epoch-checkpoint", wrong, sync=False)
    assert served(started(files), 1) == (whole, [])


def test_damage_of_a_segment_that_retention_took_meanwhile_leaves_no_file_behind() -> None:
    files = stopped()
    files.inodes[FIRST + ".log"].data[100] ^= 1
    log = started(files)
    [gone, *rest] = log.state.segments
    assert gone.file.size() == gone.size
    log.state.segments = tuple(rest)
    gone.files.remove_all()
    log.reader.checks.check_again(gone)
    assert len(gone.trust.damages) == 1
    assert not files.exists(FIRST + ".damaged")

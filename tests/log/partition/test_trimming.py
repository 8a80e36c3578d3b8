"""What goes away: retention by time and size, DeleteRecords, truncation, and files removed later."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.environment import DiskEvents, Environment, FileJobs
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.read_plan import FoundOffset
from pykafka_broker.log.partition.retention import Expired, SegmentFacts, expired_segments
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import BatchFields, build_batch
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import (
    FOLDER,
    NOW,
    TOPIC_ID,
    append,
    batch,
    names,
    new_log,
    produce,
    records,
    reopened,
    values,
)


def filled(files: MemoryFiles, count: int = 10, **settings: Any) -> PartitionLog:
    """Two records to a segment, a second between records."""
    log = new_log(files, segment_bytes=150, **settings)
    for n in range(count):
        append(log, b"%d" % n, timestamp=NOW + 1000 * n)
    return log


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.state.segments]


def test_segments_whose_newest_record_is_too_old_are_deleted() -> None:
    log = filled(MemoryFiles(), retention_ms=4000)
    assert bases(log) == [0, 2, 4, 6, 8]

    assert log.trimmer.apply_retention(NOW + 8000) == 2

    assert (bases(log), log.state.log_start_offset) == ([4, 6, 8], 4)
    assert [offset for offset, _ in records(log)] == [4, 5, 6, 7, 8, 9]


class Threads:
    """Worker threads that begin their jobs when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], object]] = []

    def take(self, job: Callable[[], object]) -> None:
        self.jobs.append(job)

    def rename_deleted(self) -> None:
        """Do what retention has left to a thread."""
        next(job for job in self.jobs if getattr(job, "__name__", "") == "set_aside")()


def expiring(files: MemoryFiles, threads: Threads, failures: list[OSError]) -> PartitionLog:
    """A log whose only segment, not synced yet, is too old: retention rolls it and deletes it."""
    jobs = FileJobs(threads.take, threads.take, lambda job, delay_ms: None)
    environment = Environment(files, jobs, DiskEvents(on_failure=failures.append))
    identity = LogIdentity(FOLDER, "orders", 0, TOPIC_ID)
    log = create_log(environment, identity, LogConfig(retention_ms=4000))
    append(log, b"old", timestamp=NOW - 10_000)
    log.reader.release_files()  # a file that is not open is looked for by its name
    threads.jobs.clear()
    return log


def test_retention_begins_no_segment_while_a_thread_makes_one() -> None:
    """Before, retention after a compaction found the files of the segment that an append waited for: the log
    directory was taken for broken, and the broker stopped.
    """
    files, failures = MemoryFiles(), list[OSError]()
    log = expiring(files, Threads(), failures)
    log.roller.makes_names = True
    made = log.roller.make_names(log.state.log_end_offset)
    assert made is not None

    assert (log.trimmer.apply_retention(NOW), failures) == (0, [])

    log.roller.makes_names = False
    log.roller.adopt(made)
    assert log.trimmer.apply_retention(NOW) == 1


class Lock:
    """The lock of a flush; whatever was to happen `before` it is taken for the first time happens."""

    def __init__(self, before: Callable[[], object]) -> None:
        self.before: Callable[[], object] | None = before
        self.lock = threading.Lock()

    def __enter__(self) -> None:
        before, self.before = self.before, None
        if before is not None:
            before()
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def test_a_segment_that_expires_before_its_sync_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, the sync of the segment that retention had just rolled found no file where retention had been
    quicker: the log directory was taken for broken, and the broker stopped.
    """
    files, threads = MemoryFiles(), Threads()
    failures: list[OSError] = []
    log = expiring(files, threads, failures)

    def expire() -> None:
        """The sync has read which segments there are, and waits for the lock."""
        assert log.trimmer.apply_retention(NOW) == 1
        threads.rename_deleted()

    monkeypatch.setattr(log.flusher, "lock", Lock(expire))
    log.flusher.flush()

    assert failures == []
    assert log.state.recovery_point == 1
    assert "00000000000000000000.log.deleted" in names(files)
    append(log, b"new", timestamp=NOW)
    log.flusher.flush()
    assert values(reopened(files.power_cut(), recovery_point=2)) == [b"new"]


def test_a_flush_that_waited_for_a_truncation_takes_nothing_for_synced_that_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before, the flush took the segment in which the log goes on for closed, and no later one synced it."""
    files = MemoryFiles()
    log = filled(files, 3)
    assert bases(log) == [0, 2]
    monkeypatch.setattr(log.flusher, "lock", Lock(lambda: log.trimmer.truncate_to(1)))

    log.flusher.flush()

    assert log.state.recovery_point == 1
    append(log, b"new")
    log.roller.roll()
    assert log.state.recovery_point == 2
    assert values(reopened(files.power_cut(), recovery_point=2)) == [b"0", b"new"]


def test_a_segment_that_expires_during_its_sync_keeps_its_name_until_the_sync_has_ended() -> None:
    files, threads = MemoryFiles(), Threads()
    failures: list[OSError] = []
    log = expiring(files, threads, failures)
    assert log.trimmer.apply_retention(NOW) == 1
    with log.flusher.lock:
        renaming = threading.Thread(target=threads.rename_deleted)
        renaming.start()
        renaming.join(0.05)
        assert renaming.is_alive()
        assert "00000000000000000000.log" in names(files)
    renaming.join()
    assert "00000000000000000000.log.deleted" in names(files)
    assert failures == []


DAY = 86_400_000


def test_a_fresh_record_is_kept_and_found_whatever_its_producer_says_of_the_latest_time() -> None:
    """kafkajs says that the latest record is the one with an explicit timestamp, two days old. Before, the
    fresh one went with it, and look-ups by time did not find it.
    """
    files = MemoryFiles()
    log = new_log(files, retention_ms=DAY)
    mixed = [(NOW - 2 * DAY, None, b"of two days ago", ()), (NOW, None, b"fresh", ())]
    log.writer.append(
        bytearray(build_batch(mixed, BatchFields(max_timestamp=NOW - 2 * DAY))), leader_epoch=0, now_ms=NOW
    )
    log.state.advance_high_watermark(log.state.log_end_offset)

    for kept in (log, reopened(files, high_watermark=2, retention_ms=DAY)):
        assert kept.trimmer.apply_retention(NOW + DAY // 2) == 0
        assert values(kept) == [b"of two days ago", b"fresh"]
        assert kept.reader.search_max_timestamp()() == FoundOffset(1, NOW, 0)
        assert kept.reader.search_timestamp(NOW - DAY)() == FoundOffset(1, NOW, 0)

    assert log.trimmer.apply_retention(NOW + DAY + 1) == 1


def test_segments_over_the_size_limit_are_deleted_from_the_front() -> None:
    log = filled(MemoryFiles(), retention_bytes=300, retention_ms=-1)
    assert log.state.size_bytes == 5 * 138

    assert log.trimmer.apply_retention(NOW) == 2

    assert (bases(log), log.state.log_start_offset, log.state.size_bytes) == ([4, 6, 8], 4, 3 * 138)


def test_when_even_the_active_segment_is_too_old_a_new_one_is_begun() -> None:
    files = MemoryFiles()
    log = filled(files, retention_ms=1000)

    log.trimmer.apply_retention(NOW + 60_000)

    assert (bases(log), log.state.log_start_offset, log.state.log_end_offset) == ([10], 10, 10)
    assert append(log, b"next").first_offset == 10
    assert values(reopened(files.killed())) == [b"next"]


def test_nothing_past_the_high_watermark_is_deleted() -> None:
    log = new_log(MemoryFiles(), segment_bytes=150, retention_ms=0)
    for n in range(10):
        log.writer.append(batch(b"%d" % n), leader_epoch=0, now_ms=NOW)
    log.state.advance_high_watermark(5)

    log.trimmer.apply_retention(NOW + 10_000)

    assert log.state.log_start_offset == 4


@pytest.mark.parametrize("policy", [frozenset(), frozenset({"compact"})], ids=["keep for ever", "compact"])
def test_without_the_delete_policy_only_the_log_start_offset_deletes(policy: frozenset[str]) -> None:
    log = filled(MemoryFiles(), retention_ms=0, retention_bytes=0)
    log.state.reconfigure(LogConfig(retention_ms=0, retention_bytes=0, cleanup_policy=policy))
    assert log.trimmer.apply_retention(NOW + 60_000) == 0

    log.trimmer.advance_log_start_offset(5)
    assert log.trimmer.apply_retention(NOW + 60_000) == 2
    assert (log.state.log_start_offset, bases(log)[0]) == (5, 4)


def test_a_changed_retention_counts_at_the_next_check() -> None:
    log = filled(MemoryFiles(), retention_ms=-1)
    assert log.trimmer.apply_retention(NOW + 60_000) == 0

    log.state.reconfigure(LogConfig(retention_ms=1000))
    assert log.trimmer.apply_retention(NOW + 60_000) == 5


def test_records_without_timestamps_age_by_their_file() -> None:
    files = MemoryFiles()
    files.now_ms = NOW
    log = new_log(files, segment_bytes=150, retention_ms=1000)
    for n in range(4):
        append(log, b"%d" % n, timestamp=-1)

    assert log.trimmer.apply_retention(NOW + 1000) == 0
    assert log.trimmer.apply_retention(NOW + 1001) == 2


def test_a_record_from_the_future_keeps_its_segment_and_those_behind_it() -> None:
    log = new_log(MemoryFiles(), segment_bytes=150, retention_ms=1000)
    for timestamp in (NOW, NOW, NOW + 3_600_000, NOW, NOW, NOW):
        append(log, b"x", timestamp=timestamp)
    assert bases(log) == [0, 2, 4]

    assert log.trimmer.apply_retention(NOW + 60_000) == 1
    assert log.trimmer.apply_retention(NOW + 3_600_000) == 0
    assert log.trimmer.apply_retention(NOW + 3_601_001) == 2


def test_old_segments_go_even_if_there_is_no_room_to_begin_a_new_one() -> None:
    files = MemoryFiles()
    log = filled(files, retention_ms=1000)
    files.fail("create", errno.ENOSPC, times=-1)

    assert log.trimmer.apply_retention(NOW + 60_000) == 4
    assert (bases(log), log.state.log_start_offset) == ([8], 8)

    with pytest.raises(KafkaError):
        log.trimmer.apply_retention(NOW + 60_000)
    files.heal()
    assert log.trimmer.apply_retention(NOW + 60_000) == 1
    assert append(log, b"next").first_offset == 10


def test_waiting_readers_are_told_when_the_log_start_moves() -> None:
    log = filled(MemoryFiles())
    seen: list[int] = []
    log.on_advance.append(lambda moved: seen.append(moved.log_start_offset))

    log.trimmer.delete_records(3)

    assert seen == [3]


def test_delete_records_hides_at_once_what_it_deletes_and_keeps_it_hidden_over_a_restart() -> None:
    files = MemoryFiles()
    log = filled(files)

    assert log.trimmer.delete_records(3) == 3

    assert [offset for offset, _ in records(log)] == [3, 4, 5, 6, 7, 8, 9]
    with pytest.raises(KafkaError) as refused:
        log.reader.plan_read(2, 1000)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    log.close()
    assert reopened(files, clean=True, log_start_offset=3).state.log_start_offset == 3


def test_delete_records_to_the_high_watermark_empties_the_log() -> None:
    log = filled(MemoryFiles())

    assert log.trimmer.delete_records(-1) == 10
    log.trimmer.apply_retention(NOW)
    assert (values(log), log.state.log_end_offset) == ([], 10)
    assert bases(log) == [8], "the active segment stays until retention finds it due"


@pytest.mark.parametrize("offset", [11, -2])
def test_delete_records_past_the_high_watermark_is_out_of_range(offset: int) -> None:
    log = filled(MemoryFiles())

    with pytest.raises(KafkaError) as refused:
        log.trimmer.delete_records(offset)

    assert (refused.value.code, log.state.log_start_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, 0)


def test_delete_records_below_the_log_start_changes_nothing() -> None:
    log = filled(MemoryFiles())
    log.trimmer.delete_records(5)

    assert log.trimmer.delete_records(2) == 5


def test_leader_epochs_before_the_log_start_are_forgotten() -> None:
    files = MemoryFiles()
    log = new_log(files)
    for n in range(6):
        append(log, b"%d" % n, epoch=n // 2)

    log.trimmer.delete_records(3)

    assert log.state.epochs.entries == ((1, 3), (2, 4))
    assert files.read_file(f"{FOLDER}/leader-epoch-checkpoint") == b"0\n2\n1 3\n2 4\n"
    assert reopened(files, log_start_offset=3).state.epochs.entries == log.state.epochs.entries


def test_files_are_set_aside_in_a_worker_and_unlinked_after_the_delay() -> None:
    files = MemoryFiles()
    later: list[Callable[[], object]] = []
    buried: list[tuple[Callable[[], object], int]] = []
    environment = Environment(
        files,
        FileJobs(
            later.append, run_in_turn=later.append, bury=lambda job, delay_ms: buried.append((job, delay_ms))
        ),
    )
    config = LogConfig(segment_bytes=150, retention_ms=1000, file_delete_delay_ms=5000)
    log = create_log(environment, LogIdentity(FOLDER, "orders", 0, TOPIC_ID), config)
    for n in range(4):
        append(log, b"%d" % n)
    later.clear()

    log.trimmer.apply_retention(NOW + 10_000)
    assert "00000000000000000000.log" in names(files)
    assert buried == []  # the delay begins when the files have their new names

    for job in later:
        job()
    gone = [name for name in names(files) if name.endswith(".deleted")]
    assert "00000000000000000000.log.deleted" in gone
    [(unlink, delay_ms)] = buried
    unlink()
    assert delay_ms == 5000
    assert not [name for name in names(files) if name.startswith("00000000000000000000.")]


def test_the_side_files_of_a_segment_go_with_it() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=150)
    for n in range(8):
        produce(log, 1, n)
    log.state.reconfigure(LogConfig(retention_bytes=0))
    log.trimmer.apply_retention(NOW)

    assert {name.split(".")[0] for name in names(files)} == {
        "00000000000000000008",
        "leader-epoch-checkpoint",
        "partition",
    }


# --- truncation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", range(11))
def test_truncation_keeps_what_is_below_and_appends_go_on_there(offset: int) -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=150)
    for n in range(10):
        produce(log, 1, n, b"%d" % n, epoch=n // 4)

    log.trimmer.truncate_to(offset)

    assert (log.state.log_end_offset, log.state.high_watermark) == (offset, offset)
    assert values(log) == [b"%d" % n for n in range(offset)]
    assert log.state.latest_epoch == ((offset - 1) // 4 if offset else -1)
    result = produce(log, 1, offset, b"new", epoch=5)
    assert (result.first_offset, result.duplicate) == (offset, False)
    assert values(reopened(files.killed(), segment_bytes=150)) == values(log)


def test_truncation_past_the_end_changes_nothing() -> None:
    log = filled(MemoryFiles())
    log.trimmer.truncate_to(99)
    assert log.state.log_end_offset == 10


def test_a_log_can_start_over_at_any_offset() -> None:
    files = MemoryFiles()
    log = filled(files)

    log.trimmer.reset_to(1000)

    assert (log.state.log_start_offset, log.state.high_watermark, log.state.log_end_offset) == (
        1000,
        1000,
        1000,
    )
    assert append(log, b"a").first_offset == 1000
    assert records(reopened(files.killed(), log_start_offset=1000)) == [(1000, b"a")]


def test_what_is_appended_after_a_truncation_and_synced_survives_a_power_cut() -> None:
    for offset in range(11):
        files = MemoryFiles()
        log = filled(files)
        log.flusher.flush()
        log.trimmer.truncate_to(offset)
        for n in range(4):
            append(log, b"new %d" % n, epoch=1)
        log.flusher.flush()

        again = reopened(files.power_cut(), segment_bytes=150)

        assert values(again) == values(log), "no segment that was cut off is back, and none has its old end"


def test_what_is_appended_after_a_new_beginning_and_synced_survives_a_power_cut() -> None:
    files = MemoryFiles()
    log = filled(files)
    log.flusher.flush()

    log.trimmer.reset_to(1000)
    append(log, b"a")
    log.flusher.flush()

    assert records(reopened(files.power_cut(), log_start_offset=1000)) == [(1000, b"a")]


def test_a_truncation_to_an_offset_that_was_damaged_takes_the_damage_away() -> None:
    files = MemoryFiles()
    log = new_log(files)
    for n in range(4):
        append(log, b"%d" % n)
    size = log.state.active.size // 4
    files.inodes[FOLDER + "/00000000000000000000.log"].data[size : 2 * size] = bytes(size)
    files = files.killed()
    damaged = reopened(files)
    assert [(d.first_offset, d.next_offset) for d in damaged.state.active.trust.damages] == [(1, 2)]

    damaged.trimmer.truncate_to(1)
    append(damaged, b"new")

    assert values(damaged) == [b"0", b"new"]
    assert damaged.flusher.close_in_order()
    assert values(reopened(files, clean=True)) == [b"0", b"new"]


def test_a_truncation_before_a_damage_forgets_the_timestamps_of_what_it_removes() -> None:
    """Before, those between the new end and the damage counted: retention kept the segment for longer, and
    ListOffsets found no record with the greatest timestamp.
    """
    files = MemoryFiles()
    log = new_log(files)
    for n in range(4):
        append(log, b"%d" % n, timestamp=NOW + n)
    size = log.state.active.size // 4
    files.inodes[FOLDER + "/00000000000000000000.log"].data[2 * size : 3 * size] = bytes(size)
    damaged = reopened(files.killed())

    damaged.trimmer.truncate_to(1)

    assert damaged.state.active.max_timestamp == NOW
    assert damaged.reader.search_max_timestamp()() == FoundOffset(0, NOW, 0)


# --- the decision alone ---------------------------------------------------------------------------


#: Its base offset, its end offset, its size and its age.
Segment = tuple[int, int, int, int]


def facts(*segments: Segment) -> list[SegmentFacts]:
    def of(base: int, end: int, size: int, age: int) -> SegmentFacts:
        return SegmentFacts(base, end, size, lambda: age)

    return [of(*segment) for segment in segments]


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({"retention_ms": 50}, ("retention.ms", "retention.ms")),
        ({"retention_ms": -1, "retention_bytes": 25}, ("retention.bytes",)),
        ({"retention_ms": -1, "retention_bytes": 31}, ()),
        ({"retention_ms": -1, "retention_bytes": 0}, ("retention.bytes",) * 4),
        ({"retention_ms": -1}, ()),
        (
            {"retention_ms": 65, "retention_bytes": 30},
            ("retention.bytes", "retention.ms"),
        ),
    ],
)
def test_the_rules_of_retention(settings: dict[str, Any], expected: tuple[str, ...]) -> None:
    segments = facts((0, 10, 10, 20), (10, 20, 10, 30), (20, 30, 10, 60), (30, 40, 10, 90))

    decided = expired_segments(
        segments, LogConfig(**settings), now_ms=100, log_start_offset=0, high_watermark=40
    )

    assert decided == Expired(len(expected), expected)


SEGMENT = st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(60, 140))


@given(
    sizes=st.lists(SEGMENT, min_size=1, max_size=7),
    retention_ms=st.integers(-1, 40),
    retention_bytes=st.integers(-1, 70),
    start=st.integers(0, 20),
    unreplicated=st.integers(0, 5),
    policy=st.sampled_from(
        [frozenset(), frozenset({"delete"}), frozenset({"compact"}), frozenset({"compact", "delete"})]
    ),
)
def test_the_rules_are_those_of_three_passes_as_kafka_makes_them(
    sizes: list[tuple[int, int, int]],
    retention_ms: int,
    retention_bytes: int,
    start: int,
    unreplicated: int,
    policy: frozenset[str],
) -> None:
    segments, base = [], 0
    for number, (asked, size, age) in enumerate(sizes):
        count = max(asked, number < len(sizes) - 1)  # only the active segment may be empty
        segments.append((base, base + count, size * count, age))
        base += count
    start, high_watermark = min(start, base), max(min(start, base), base - unreplicated)
    config = LogConfig(retention_ms=retention_ms, retention_bytes=retention_bytes, cleanup_policy=policy)

    decided = expired_segments(
        facts(*segments), config, now_ms=100, log_start_offset=start, high_watermark=high_watermark
    )

    left = three_passes(segments, config, start, high_watermark)
    assert decided.segments == len(segments) - len(left)


def three_passes(
    segments: list[Segment], config: LogConfig, start: int, high_watermark: int
) -> list[Segment]:
    """What is left after start offset, size and time have each gone through the log from its front."""

    def passed(left: list[Segment], is_due: Callable[[Segment, bool], bool]) -> list[Segment]:
        while left:
            (_, end, size, _), is_last = left[0], len(left) == 1
            if end > high_watermark or (is_last and size == 0) or not is_due(left[0], is_last):
                break
            left = left[1:]
        return left

    left = passed(segments, lambda segment, is_last: not is_last and segment[1] <= start)
    if "delete" not in config.cleanup_policy:
        return left
    excess = sum(segment[2] for segment in left) - config.retention_bytes

    def is_too_much(segment: Segment, is_last: bool) -> bool:
        nonlocal excess
        if config.retention_bytes < 0 or excess < segment[2]:
            return False
        excess -= segment[2]
        return True

    left = passed(left, is_too_much)
    return passed(left, lambda segment, _: 0 <= config.retention_ms < 100 - segment[3])


def test_an_empty_active_segment_is_never_due() -> None:
    decided = expired_segments(
        facts((5, 5, 0, 0)), LogConfig(retention_ms=0), now_ms=100, log_start_offset=5, high_watermark=5
    )
    assert decided == Expired(0, ())

"""A partition's log: appended records are read back, and the offsets that bound reads and writes."""

from __future__ import annotations

import errno

import pytest

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producers import AppendOrigin
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.partition.writer import AppendResult
from pykafka_broker.log.recovery.load_partition import open_log
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import build_batch, iter_batches, read_header
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import (
    FOLDER,
    NOW,
    TOPIC_ID,
    append,
    batch,
    names,
    new_log,
    read_here,
    records,
    reopened,
    values,
)


def offsets_of(data: bytes | bytearray | memoryview) -> list[int]:
    return [header.base_offset for _, header in iter_batches(data)]


def test_a_batch_gets_the_next_offsets_and_the_leader_epoch_in_place() -> None:
    log = new_log(MemoryFiles())
    append(log, b"a", b"b")
    sent = batch(b"c")

    result = log.writer.append(sent, leader_epoch=7, now_ms=NOW)

    assert result == AppendResult(2, 2, -1, 0)
    assert (read_header(sent).base_offset, read_header(sent).partition_leader_epoch) == (2, 7)
    assert records(log) == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_consumers_see_nothing_past_the_high_watermark() -> None:
    log = new_log(MemoryFiles())
    log.writer.append(batch(b"a"), leader_epoch=0, now_ms=NOW)

    assert (log.state.log_end_offset, log.state.high_watermark) == (1, 0)
    assert values(log, limit="high_watermark") == []
    log.state.advance_high_watermark(1)
    assert values(log, limit="high_watermark") == [b"a"]


def test_the_high_watermark_never_goes_back_nor_past_the_end() -> None:
    log = new_log(MemoryFiles())
    append(log, b"a", b"b")

    log.state.advance_high_watermark(1)
    assert log.state.high_watermark == 2
    log.state.advance_high_watermark(99)
    assert log.state.high_watermark == 2


def test_waiting_readers_are_told_when_the_high_watermark_moves() -> None:
    log = new_log(MemoryFiles())
    seen: list[int] = []
    log.on_advance.append(lambda moved: seen.append(moved.high_watermark))

    log.writer.append(batch(b"a"), leader_epoch=0, now_ms=NOW)
    assert seen == []
    log.state.advance_high_watermark(1)
    log.state.advance_high_watermark(1)
    assert seen == [1]


@pytest.mark.parametrize("offset", [-1, 4, 100])
def test_an_offset_outside_the_log_is_out_of_range(offset: int) -> None:
    log = new_log(MemoryFiles())
    append(log, b"a", b"b", b"c")

    with pytest.raises(KafkaError) as refused:
        log.reader.plan_read(offset, 100)

    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_reading_at_the_end_finds_nothing_and_is_no_error() -> None:
    log = new_log(MemoryFiles())
    append(log, b"a")

    plan = log.reader.plan_read(1, 100)

    assert (plan.size_bytes, plan.read(), plan.answer_cached(read_here)) == (0, b"", b"")


def test_a_read_starts_with_the_batch_that_holds_the_offset() -> None:
    log = new_log(MemoryFiles())
    append(log, b"a", b"b", b"c")
    append(log, b"d", b"e", b"f")

    assert offsets_of(log.reader.plan_read(4, 1000).read()) == [3]
    assert offsets_of(log.reader.plan_read(2, 1000).read()) == [0, 3]


@pytest.mark.parametrize("in_tail", [True, False], ids=["just written", "reopened"])
def test_a_read_returns_whole_batches_up_to_the_bytes_allowed(in_tail: bool) -> None:
    files = MemoryFiles()
    log = new_log(files, index_interval_bytes=0)
    for n in range(50):
        append(log, b"%04d" % n)
    size = len(batch(b"0000"))
    if not in_tail:
        log.close()
        log = reopened(files, clean=True, index_interval_bytes=0)
        log.state.advance_high_watermark(50)

    assert offsets_of(log.reader.plan_read(10, size * 3 + 5).read()) == [10, 11, 12]
    assert log.reader.plan_read(10, size * 3 + 5).size_bytes == size * 3


def test_the_first_batch_comes_whole_however_few_bytes_are_allowed_if_one_must_come() -> None:
    log = new_log(MemoryFiles())
    append(log, b"a" * 500)
    append(log, b"b")

    assert offsets_of(log.reader.plan_read(0, 10, minimum_one_batch=True).read()) == [0]
    assert log.reader.plan_read(0, 10, minimum_one_batch=False).size_bytes == 0


def test_data_that_is_not_cached_is_left_to_a_worker_thread() -> None:
    files = MemoryFiles()
    log = new_log(files)
    append(log, b"a")
    files.is_cached = False

    plan = log.reader.plan_read(0, 1000)

    assert plan.answer_cached(read_here) is None
    assert offsets_of(plan.read()) == [0]


def test_a_cold_index_is_left_to_a_worker_thread_too() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=1000)
    for n in range(60):
        append(log, b"%02d" % n)
    log.close()
    log = reopened(files, clean=True, segment_bytes=1000, high_watermark=60)

    plan = log.reader.plan_read(3, 200)

    assert plan.answer_cached(read_here) is None
    assert offsets_of(plan.read()) == [3, 4]
    assert len(plan.read()) <= plan.size_bytes <= 200
    assert values(log) == [b"%02d" % n for n in range(60)]


def test_an_idle_log_releases_its_descriptors_and_indexes_and_gets_them_again() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=1000)
    for n in range(60):
        append(log, b"%02d" % n)
    assert log.reader.plan_read(3, 100).answer_cached(read_here) is not None

    log.reader.release_idle()
    assert log.reader.plan_read(3, 100).answer_cached(read_here) is not None
    log.reader.release_idle()
    log.reader.release_idle()

    assert [segment.holds_resources for segment in log.state.segments] == [False] * len(log.state.segments)
    assert values(log) == [b"%02d" % n for n in range(60)]
    assert append(log, b"next").first_offset == 60


@pytest.mark.parametrize("garbage", [b"\0\0\0\5\0\0\0\x55", b"\0\0\0\1\0\0\2\x28", b"\0\0\0\1\0\0\0\7" * 2])
def test_an_index_that_leads_astray_is_noticed_and_made_again(garbage: bytes) -> None:
    """Lookups that find nothing, or only something past the offset, do not trust the file a second time."""
    files = MemoryFiles()
    log = new_log(files, segment_bytes=1000)
    for n in range(30):
        append(log, b"%02d" % n)
    log.close()
    files.write_file(f"{FOLDER}/00000000000000000000.index", garbage, sync=False)

    log = reopened(files, clean=True, segment_bytes=1000)

    assert [offset for offset, _ in records(log)] == list(range(30))


def test_a_disk_that_cannot_be_read_is_a_storage_error() -> None:
    files = MemoryFiles()
    log = new_log(files)
    append(log, b"a")
    files.fail("pread", errno.EIO)

    with pytest.raises(KafkaError) as failed:
        log.reader.plan_read(0, 100).read()

    assert failed.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert values(log) == [b"a"]


def test_a_plan_still_reads_after_its_segment_was_deleted() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=500, file_delete_delay_ms=0)
    for n in range(20):
        append(log, b"%02d" % n)
    plan = log.reader.plan_read(0, 1000)

    log.trimmer.delete_records(15)
    log.trimmer.apply_retention(NOW)

    assert log.state.log_start_offset == 15
    assert offsets_of(plan.read())[0] == 0


def test_every_offset_is_readable_across_segments_with_and_without_restart() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=1000, index_interval_bytes=200)
    for n in range(300):
        append(log, *[b"%03d" % (n + i) for i in range(n % 3 + 1)])
    expected = records(log)
    assert [offset for offset, _ in expected] == list(range(log.state.log_end_offset))

    log.close()
    for clean in (True, False):
        log = reopened(files, clean=clean, segment_bytes=1000, index_interval_bytes=200)
        for offset in range(0, log.state.log_end_offset, 7):
            assert records(log, offset) == expected[offset:]


def test_available_bytes_counts_what_a_reader_could_get() -> None:
    log = new_log(MemoryFiles(), segment_bytes=1000)
    for n in range(30):
        append(log, b"%02d" % n)
    size = len(batch(b"00"))

    assert log.reader.available_bytes(30) == 0
    assert log.reader.available_bytes(29) == size
    assert log.reader.available_bytes(0) == log.state.size_bytes == 30 * size


def test_available_bytes_counts_no_batches_that_are_not_committed_yet() -> None:
    log = new_log(MemoryFiles(), segment_bytes=1000)
    for n in range(30):
        log.writer.append(batch(b"%02d" % n), leader_epoch=0, now_ms=NOW)
    size = len(batch(b"00"))
    log.state.advance_high_watermark(20)

    assert log.reader.available_bytes(0) == 20 * size
    assert log.reader.available_bytes(19) == size
    assert log.reader.available_bytes(20) == 0
    assert log.reader.available_bytes(20, "log_end") == 10 * size


def test_a_duplicate_in_log_append_time_gets_the_time_of_the_first_append() -> None:
    log = new_log(MemoryFiles(), message_timestamp_type="LogAppendTime")
    first = log.writer.append(
        batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0), leader_epoch=0, now_ms=NOW + 5
    )
    again = log.writer.append(
        batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0), leader_epoch=0, now_ms=NOW + 9
    )

    assert first == AppendResult(0, 0, NOW + 5, 0)
    assert again == AppendResult(0, 0, NOW + 5, 0, duplicate=True)


def test_a_settings_change_counts_from_the_next_batch_on() -> None:
    log = new_log(MemoryFiles())
    append(log, b"a" * 200)
    log.state.reconfigure(LogConfig(max_message_bytes=100))

    with pytest.raises(KafkaError) as refused:
        append(log, b"a" * 200)

    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert log.state.log_end_offset == 1


def test_a_batch_larger_than_a_segment_is_refused() -> None:
    log = new_log(MemoryFiles(), segment_bytes=200)

    with pytest.raises(KafkaError) as refused:
        append(log, b"a" * 300)

    assert refused.value.code is ErrorCode.RECORD_LIST_TOO_LARGE


def test_flush_messages_asks_the_caller_to_flush_before_the_acknowledgement() -> None:
    files = MemoryFiles()
    log = new_log(files, flush_messages=2)

    assert append(log, b"a").flush_due is False
    assert append(log, b"b").flush_due is True
    assert (log.state.unflushed_messages, log.flusher.flush(), log.state.unflushed_messages) == (2, 2, 0)
    assert append(log, b"c").flush_due is False
    assert values(reopened(files.power_cut())) == [b"a", b"b"]


# --- other origins --------------------------------------------------------------------------------


def test_what_a_coordinator_made_gets_its_offset_and_epoch_in_the_log_and_stays_as_it_was() -> None:
    log = new_log(MemoryFiles())
    append(log, b"a")
    made = bytes(batch(b"b", b"c"))

    results = [
        log.writer.append(made, leader_epoch=3, now_ms=NOW, origin=AppendOrigin.COORDINATOR) for _ in range(2)
    ]

    assert [(result.first_offset, result.last_offset) for result in results] == [(1, 2), (3, 4)]
    assert (log.state.latest_epoch, log.state.log_end_offset, made) == (3, 5, bytes(batch(b"b", b"c")))
    assert values(log) == [b"a", b"b", b"c", b"b", b"c"]


def test_a_coordinator_that_hands_over_two_batches_at_once_writes_neither() -> None:
    log = new_log(MemoryFiles())

    with pytest.raises(IllegalState, match="one by one"):
        log.writer.append(
            bytes(batch(b"a") + batch(b"b")), leader_epoch=0, now_ms=NOW, origin=AppendOrigin.COORDINATOR
        )

    assert (log.state.log_end_offset, values(log)) == (0, [])


def test_the_raft_leader_brings_offsets_and_epoch_along() -> None:
    log = new_log(MemoryFiles())

    log.writer.append(
        batch(b"a", base_offset=0, leader_epoch=2),
        leader_epoch=2,
        now_ms=NOW,
        origin=AppendOrigin.RAFT_LEADER,
    )
    with pytest.raises(KafkaError):
        log.writer.append(
            batch(b"b", base_offset=1, leader_epoch=1),
            leader_epoch=2,
            now_ms=NOW,
            origin=AppendOrigin.RAFT_LEADER,
        )

    assert (log.state.log_end_offset, log.state.latest_epoch) == (1, 2)


def test_a_follower_takes_the_leaders_batches_as_they_are_gaps_included() -> None:
    log = new_log(MemoryFiles())
    copied = batch(b"a", base_offset=3, leader_epoch=1) + batch(b"b", base_offset=9, leader_epoch=2)

    log.writer.append(copied, leader_epoch=-1, now_ms=NOW, origin=AppendOrigin.REPLICATION)

    assert records(log) == [(3, b"a"), (9, b"b")]
    assert (log.state.latest_epoch, log.state.log_end_offset) == (2, 10)
    with pytest.raises(KafkaError):
        log.writer.append(
            batch(b"c", base_offset=5), leader_epoch=-1, now_ms=NOW, origin=AppendOrigin.REPLICATION
        )


def test_a_follower_refuses_damaged_batches() -> None:
    log = new_log(MemoryFiles())
    damaged = batch(b"abc", base_offset=0)
    damaged[-2] ^= 1

    with pytest.raises(KafkaError) as refused:
        log.writer.append(damaged, leader_epoch=-1, now_ms=NOW, origin=AppendOrigin.REPLICATION)

    assert (refused.value.code, log.state.log_end_offset) == (ErrorCode.CORRUPT_MESSAGE, 0)


# --- rolling --------------------------------------------------------------------------------------


def test_a_segment_is_rolled_before_it_outgrows_segment_bytes() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=400)
    for n in range(8):
        append(log, b"%02d" % n)

    assert [segment.base_offset for segment in log.state.segments] == [0, 5]
    assert all(segment.size <= 400 for segment in log.state.segments)
    assert names(files) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000005.index",
        "00000000000000000005.log",
        "00000000000000000005.snapshot",
        "00000000000000000005.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]


def test_a_segment_is_rolled_when_record_time_has_moved_on_by_segment_ms() -> None:
    log = new_log(MemoryFiles(), segment_ms=1000)
    append(log, b"a", timestamp=NOW)
    append(log, b"b", timestamp=NOW + 1000)
    assert len(log.state.segments) == 1

    append(log, b"c", timestamp=NOW + 1001)

    assert [segment.base_offset for segment in log.state.segments] == [0, 2]


def test_segments_of_many_logs_roll_at_different_times_the_first_one_too() -> None:
    def rolls_after_600_ms(log: PartitionLog) -> bool:
        count = len(log.state.segments)
        append(log, b"a", timestamp=NOW)
        append(log, b"b", timestamp=NOW + 600)
        return len(log.state.segments) > count

    config = LogConfig(segment_ms=1000, segment_jitter_ms=900)
    environment = Environment(MemoryFiles())
    identities = [LogIdentity(f"/logs/orders-{n}", "orders", n, TOPIC_ID) for n in range(20)]
    made = [create_log(environment, identity, config) for identity in identities]
    assert {rolls_after_600_ms(log) for log in made} == {True, False}
    for log in made:
        append(log, b"c", timestamp=NOW + 2000)
        log.close()
    found = [open_log(environment, identity, config, clean=True) for identity in identities]
    assert {log.state.segments[-1].jitter_ms > 400 for log in found} == {True, False}


def test_a_jitter_above_segment_ms_does_not_roll_at_each_record() -> None:
    log = new_log(MemoryFiles(), segment_ms=1000, segment_jitter_ms=1_000_000)
    for _ in range(50):
        append(log, b"a", timestamp=NOW)
    log.roller.roll()
    for _ in range(50):
        append(log, b"a", timestamp=NOW)

    assert [segment.base_offset for segment in log.state.segments] == [0, 50]


def test_records_without_timestamps_age_by_the_brokers_clock() -> None:
    log = new_log(MemoryFiles(), segment_ms=1000)

    def append_at(now_ms: int) -> None:
        log.writer.append(batch(b"x", timestamp=-1), leader_epoch=0, now_ms=now_ms)

    for moment in (0, 1000, 1001, 1500, 2002):
        append_at(NOW + moment)
    assert [segment.base_offset for segment in log.state.segments] == [0, 2, 4]


def test_room_for_a_whole_segment_is_kept_while_it_is_written_if_preallocate_asks_for_it() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=200, preallocate=True)
    for _ in range(3):
        append(log, bytes(60))
    log.close()
    paths = [segment.path + ".log" for segment in log.state.segments]
    assert len(paths) == 3
    assert [call for call in files.calls if call[0] in ("reserve", "truncate")] == [
        ("reserve", paths[0]),
        ("reserve", paths[1]),
        ("truncate", paths[0]),
        ("reserve", paths[2]),
        ("truncate", paths[1]),
        ("truncate", paths[2]),
    ]
    assert values(reopened(files, clean=True)) == [bytes(60)] * 3


def test_a_compacted_log_is_rolled_before_max_compaction_lag_ms_has_passed() -> None:
    log = new_log(MemoryFiles(), cleanup_policy=frozenset({"compact"}), max_compaction_lag_ms=500)
    for n in range(3):
        keyed = bytearray(build_batch([(NOW + 400 * n, b"k", b"v", ())]))
        log.writer.append(keyed, leader_epoch=0, now_ms=NOW)

    assert [segment.base_offset for segment in log.state.segments] == [0, 2]


def test_a_segment_is_rolled_when_its_index_is_full() -> None:
    log = new_log(MemoryFiles(), index_interval_bytes=0, segment_index_bytes=40)
    for n in range(10):
        append(log, b"%d" % n, timestamp=NOW + n)

    assert len(log.state.segments) > 1
    assert all(len(segment.index) <= 5 for segment in log.state.segments)


def test_a_segment_is_rolled_when_offsets_no_longer_fit_its_index() -> None:
    log = new_log(MemoryFiles())
    append(log, b"a")
    far = (1 << 31) + 5

    log.writer.append(
        batch(b"b", base_offset=far, leader_epoch=0),
        leader_epoch=0,
        now_ms=NOW,
        origin=AppendOrigin.REPLICATION,
    )

    assert [segment.base_offset for segment in log.state.segments] == [0, far]
    assert records(log) == [(0, b"a"), (far, b"b")]


def test_rolling_an_empty_segment_does_nothing() -> None:
    files = MemoryFiles()
    log = new_log(files)
    log.roller.roll()
    append(log, b"a")
    log.roller.roll()
    log.roller.roll()

    assert [segment.base_offset for segment in log.state.segments] == [0, 1]
    assert f"{FOLDER}/00000000000000000001.log" in files.inodes


# --- lookups --------------------------------------------------------------------------------------


def test_the_first_record_of_a_time_is_found_across_batches_and_segments() -> None:
    log = new_log(MemoryFiles(), segment_bytes=1000, index_interval_bytes=150)
    for n in range(100):
        append(log, b"%02d" % n, timestamp=NOW + 10 * n)

    assert log.reader.search_timestamp(NOW, "high_watermark")() == (0, NOW, 0)
    assert log.reader.search_timestamp(NOW + 511, "high_watermark")() == (52, NOW + 520, 0)
    assert log.reader.search_timestamp(NOW + 990, "high_watermark")() == (99, NOW + 990, 0)
    assert log.reader.search_timestamp(NOW + 991, "high_watermark")() is None


def test_a_lookup_by_time_stops_at_the_limit_and_starts_at_the_log_start() -> None:
    log = new_log(MemoryFiles())
    for n in range(4):
        log.writer.append(batch(b"%d" % n, timestamp=NOW + n), leader_epoch=0, now_ms=NOW)
    log.state.advance_high_watermark(3)
    log.trimmer.advance_log_start_offset(1)

    assert log.reader.search_timestamp(0, "high_watermark")() == (1, NOW + 1, 0)
    assert log.reader.search_timestamp(NOW + 3, "high_watermark")() is None
    assert log.reader.search_timestamp(NOW + 3)() == (3, NOW + 3, 0)


def test_the_record_with_the_greatest_timestamp_is_found_wherever_it_is() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=500)
    assert log.reader.search_max_timestamp()() is None
    for n, timestamp in enumerate([3, 1, 9, 4, 9, 2, 1, 1, 1, 1, 1, 1]):
        append(log, b"%d" % n, timestamp=NOW + timestamp)

    assert log.reader.search_max_timestamp()() == (2, NOW + 9, 0)
    log.close()
    assert reopened(files, clean=True, segment_bytes=500).reader.search_max_timestamp()() == (2, NOW + 9, 0)


def test_the_greatest_timestamp_of_records_without_any_is_none_at_all() -> None:
    log = new_log(MemoryFiles())
    append(log, b"timeless", timestamp=-1)

    assert log.reader.search_max_timestamp()() == (0, -1, 0)


def test_a_search_by_time_sees_the_log_as_it_was_when_it_was_asked() -> None:
    log = new_log(MemoryFiles())
    append(log, b"a", timestamp=NOW)
    search = log.reader.search_timestamp(NOW + 1)
    append(log, b"b", timestamp=NOW + 1)

    assert search() is None
    assert log.reader.search_timestamp(NOW + 1)() == (1, NOW + 1, 0)


def test_leader_epochs_are_noted_as_they_begin() -> None:
    files = MemoryFiles()
    log = new_log(files)
    append(log, b"a", epoch=2)
    append(log, b"b", epoch=2)
    append(log, b"c", epoch=5)

    assert log.reader.end_offset_for_epoch(2) == (2, 2)
    assert log.reader.end_offset_for_epoch(4) == (2, 2)
    assert log.reader.end_offset_for_epoch(5) == (5, 3)
    assert log.reader.end_offset_for_epoch(9) == (-1, -1)
    assert (log.reader.epoch_for_offset(1), log.reader.epoch_for_offset(2)) == (2, 5)
    assert files.read_file(f"{FOLDER}/leader-epoch-checkpoint") == b"0\n2\n2 0\n5 2\n"


def test_an_append_under_an_older_epoch_is_fenced() -> None:
    """Recovery takes epochs that go back for damage, so none may be written."""
    log = new_log(MemoryFiles())
    append(log, b"a", epoch=3)

    with pytest.raises(KafkaError) as refused:
        append(log, b"b", epoch=2)

    assert refused.value.code is ErrorCode.FENCED_LEADER_EPOCH
    assert (log.state.latest_epoch, values(log)) == (3, [b"a"])

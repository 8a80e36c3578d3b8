"""The log side of transactions: the last stable offset, aborted ranges, and fencing by markers."""

from __future__ import annotations

import errno

import pytest

from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producers import AppendOrigin
from pykafka_broker.log.segment.aborted_txns import AbortedTxn
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import check_batch, read_header, read_records
from pykafka_broker.protocol.records.control import EndTransactionMarker, build_marker_batch
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import (
    FOLDER,
    NOW,
    append,
    batch,
    end_transaction,
    names,
    new_log,
    produce,
    reopened,
    values,
)


def write(log: PartitionLog, producer_id: int, sequence: int, *data: bytes) -> None:
    produce(log, producer_id, sequence, *data, transactional=True)


def finish(log: PartitionLog, producer_id: int, *, commit: bool) -> None:
    end_transaction(log, producer_id, commit=commit)
    log.state.advance_high_watermark(log.state.log_end_offset)


def test_an_open_transaction_holds_the_last_stable_offset_back() -> None:
    log = new_log(MemoryFiles())
    append(log, b"a")
    write(log, 1, 0, b"b")
    append(log, b"c")

    assert (log.state.last_stable_offset, log.state.high_watermark) == (1, 3)
    assert values(log, limit="last_stable") == [b"a"]

    finish(log, 1, commit=True)
    assert log.state.last_stable_offset == 4
    assert values(log, limit="last_stable") == [b"a", b"b", b"c"]


def test_a_marker_counts_only_once_it_is_below_the_high_watermark() -> None:
    log = new_log(MemoryFiles())
    write(log, 1, 0, b"a")
    end_transaction(log, 1, commit=True)

    assert log.state.last_stable_offset == 0
    log.state.advance_high_watermark(2)
    assert log.state.last_stable_offset == 2


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_has_the_time_of_its_append_where_the_topic_says_so(commit: bool) -> None:
    """Before, it kept the time at which the coordinator had made it, and was no LogAppendTime batch."""
    log = new_log(MemoryFiles(), message_timestamp_type="LogAppendTime")
    write(log, 1, 0, b"a")
    marker = build_marker_batch(
        EndTransactionMarker(commit, 7), producer_id=1, producer_epoch=0, timestamp_ms=NOW - 5000
    )
    result = log.writer.append(marker, leader_epoch=3, now_ms=NOW + 20, origin=AppendOrigin.COORDINATOR)

    stored = bytes(log.reader.plan_read(1, 1000, limit="log_end").read())
    header = check_batch(stored)
    assert header == read_header(marker)._replace(
        base_offset=1, partition_leader_epoch=3, crc=header.crc, attributes=0x38, max_timestamp=NOW + 20
    )
    [record] = read_records(stored)
    assert (record.timestamp, record.offset) == (NOW + 20, result.first_offset)
    assert log.state.producers.producers[1].last_timestamp == NOW + 20


def test_a_marker_keeps_the_time_of_its_making_elsewhere() -> None:
    log = new_log(MemoryFiles())
    write(log, 1, 0, b"a")
    end_transaction(log, 1, commit=True)

    header = check_batch(bytes(log.reader.plan_read(1, 1000, limit="log_end").read()))
    assert (header.attributes, header.base_timestamp, header.max_timestamp) == (0x30, NOW, NOW)


def test_the_oldest_of_several_open_transactions_decides() -> None:
    log = new_log(MemoryFiles())
    write(log, 1, 0, b"a")
    write(log, 2, 0, b"b")
    finish(log, 2, commit=True)
    assert log.state.last_stable_offset == 0

    finish(log, 1, commit=True)
    assert log.state.last_stable_offset == log.state.high_watermark == 4


def test_waiting_readers_are_told_when_the_last_stable_offset_moves() -> None:
    log = new_log(MemoryFiles())
    write(log, 1, 0, b"a")
    seen: list[int] = []
    log.on_advance.append(lambda moved: seen.append(moved.last_stable_offset))

    finish(log, 1, commit=False)

    assert seen == [2]


def test_read_committed_is_told_which_transactions_were_aborted_sorted_by_first_offset() -> None:
    """Apache Kafka has the order of their markers, and old clients that do not sort stumble over it."""
    log = new_log(MemoryFiles())
    write(log, 1, 0, b"1")  # 0
    write(log, 2, 0, b"2")  # 1
    write(log, 3, 0, b"3")  # 2
    finish(log, 2, commit=False)  # 3
    finish(log, 3, commit=True)  # 4
    finish(log, 1, commit=False)  # 5

    assert log.reader.plan_read(0, 1000, limit="last_stable").aborted_transactions() == [
        AbortedTxn(1, 0, 5, 6),
        AbortedTxn(2, 1, 3, 0),
    ]
    assert log.reader.plan_read(4, 1000, limit="last_stable").aborted_transactions() == [
        AbortedTxn(1, 0, 5, 6)
    ]
    assert log.reader.plan_read(0, 1000, limit="high_watermark").aborted_transactions() == []


@pytest.mark.parametrize("segment_bytes", [1 << 30, 250], ids=["one segment", "many segments"])
def test_a_reader_is_not_told_of_transactions_far_behind_what_it_reads(segment_bytes: int) -> None:
    """Once every read named all aborted transactions up to the end of the log."""
    log = new_log(MemoryFiles(), segment_bytes=segment_bytes, index_interval_bytes=1)
    for n in range(20):
        write(log, 1, n, b"%d" % n)
        finish(log, 1, commit=False)

    plan = log.reader.plan_read(0, 1, limit="last_stable")

    assert [txn.first_offset for txn in plan.aborted_transactions()] == [0]


def test_the_transaction_index_has_apaches_bytes() -> None:
    files = MemoryFiles()
    log = new_log(files)
    write(log, 1, 0, b"a")
    assert "00000000000000000000.txnindex" not in names(files)

    finish(log, 1, commit=False)

    assert files.read_file(f"{FOLDER}/00000000000000000000.txnindex") == bytes.fromhex(
        "0000 0000000000000001 0000000000000000 0000000000000001 0000000000000002"
    )


@pytest.mark.parametrize("clean", [True, False], ids=["clean stop", "kill -9"])
@pytest.mark.parametrize("segment_bytes", [1 << 30, 250], ids=["one segment", "many segments"])
def test_open_and_aborted_transactions_survive_a_restart(clean: bool, segment_bytes: int) -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=segment_bytes)
    write(log, 1, 0, b"a")
    write(log, 2, 0, b"b")
    finish(log, 1, commit=False)
    write(log, 1, 1, b"c")
    for n in range(5):
        append(log, b"%d" % n)
    aborted = log.reader.plan_read(0, 1, limit="last_stable").aborted_transactions()
    stable = log.state.last_stable_offset
    if clean:
        log.close()

    log = reopened(files.killed(), clean=clean, segment_bytes=segment_bytes)
    log.state.advance_high_watermark(log.state.log_end_offset)

    assert log.state.last_stable_offset == stable == 1
    assert log.reader.plan_read(0, 1, limit="last_stable").aborted_transactions() == aborted
    finish(log, 2, commit=True)
    finish(log, 1, commit=False)
    assert log.state.last_stable_offset == log.state.log_end_offset


def test_aborted_transactions_are_found_again_when_the_crash_came_after_a_clean_restart() -> None:
    files = MemoryFiles()
    log = new_log(files)
    write(log, 1, 0, b"a")
    finish(log, 1, commit=False)
    log.close()
    log = reopened(files, clean=True)
    append(log, b"b")

    log = reopened(files.killed(), clean=False)
    log.state.advance_high_watermark(3)

    assert log.reader.plan_read(0, 1, limit="last_stable").aborted_transactions() == [AbortedTxn(1, 0, 1, 2)]


def test_ended_transactions_below_the_known_high_watermark_hold_nothing_back_after_a_restart() -> None:
    """Once the last stable offset stayed at the first of them until the high watermark moved again."""
    files = MemoryFiles()
    log = new_log(files)
    write(log, 1, 0, b"a")
    finish(log, 1, commit=True)

    assert reopened(files.killed(), high_watermark=2).state.last_stable_offset == 2
    assert reopened(files.killed(), high_watermark=1).state.last_stable_offset == 0


def test_plain_records_of_a_producer_with_an_open_transaction_are_refused() -> None:
    log = new_log(MemoryFiles())
    write(log, 1, 0, b"a")

    with pytest.raises(KafkaError) as refused:
        produce(log, 1, 1)

    assert refused.value.code is ErrorCode.INVALID_TXN_STATE


def test_a_marker_with_a_newer_epoch_fences_the_producer() -> None:
    log = new_log(MemoryFiles())
    write(log, 1, 0, b"a")
    end_transaction(log, 1, commit=False, producer_epoch=1)

    with pytest.raises(KafkaError) as refused:
        write(log, 1, 1, b"late")

    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_marker_of_a_deposed_coordinator_is_refused() -> None:
    log = new_log(MemoryFiles())
    end_transaction(log, 1, commit=True, coordinator_epoch=5)

    with pytest.raises(KafkaError) as refused:
        end_transaction(log, 1, commit=True, coordinator_epoch=4)

    assert refused.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_marker_without_a_transaction_leaves_no_trace_for_readers() -> None:
    log = new_log(MemoryFiles())
    append(log, b"a")
    finish(log, 1, commit=False)

    assert log.state.last_stable_offset == 2
    assert log.reader.plan_read(0, 1000, limit="last_stable").aborted_transactions() == []


def test_sequences_go_on_after_a_transaction_and_retries_before_the_marker_are_still_known() -> None:
    log = new_log(MemoryFiles())
    write(log, 1, 0, b"a")
    finish(log, 1, commit=True)

    assert log.writer.append(
        batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True),
        leader_epoch=0,
        now_ms=NOW,
    ).duplicate
    write(log, 1, 1, b"b")
    assert log.state.last_stable_offset == 2


def test_a_followers_copy_has_the_same_stable_offset_and_index() -> None:
    leader, follower = new_log(MemoryFiles()), new_log(MemoryFiles())
    write(leader, 1, 0, b"a")
    write(leader, 2, 0, b"b")
    finish(leader, 1, commit=False)

    copied = leader.reader.plan_read(0, 10_000, limit="log_end").read()
    follower.writer.append(copied, leader_epoch=-1, now_ms=NOW, origin=AppendOrigin.REPLICATION)
    follower.state.advance_high_watermark(3)

    assert follower.state.last_stable_offset == leader.state.last_stable_offset == 1
    assert (
        follower.reader.plan_read(0, 1, limit="last_stable").aborted_transactions()
        == leader.reader.plan_read(0, 1, limit="last_stable").aborted_transactions()
    )


def test_truncation_takes_transactions_back() -> None:
    log = new_log(MemoryFiles())
    write(log, 1, 0, b"a")
    write(log, 2, 0, b"b")
    end_transaction(log, 1, commit=False)

    log.trimmer.truncate_to(2)
    log.state.advance_high_watermark(2)
    assert log.state.last_stable_offset == 0
    log.trimmer.truncate_to(0)
    append(log, b"c")
    assert log.state.last_stable_offset == 1


def test_a_transaction_that_only_the_newest_snapshot_of_apache_kafka_knows_can_be_ended() -> None:
    """Its records were deleted, and the older snapshots are lost. Before, the marker was written, and the log
    failed on it: nothing more could be appended.
    """
    files = MemoryFiles()
    log = new_log(files, segment_bytes=200)
    write(log, 1, 0, b"a")
    for _ in range(3):
        append(log, b"b")
    log.trimmer.delete_records(2)
    assert log.trimmer.apply_retention(NOW) == 1
    assert log.close()
    newest = max(name for name in names(files) if name.endswith(".snapshot"))
    for name in names(files):
        if name.endswith((".window", ".snapshot")) and name != newest:
            files.remove(f"{FOLDER}/{name}")
    log = reopened(files, clean=True, segment_bytes=200)
    log.state.advance_high_watermark(log.state.log_end_offset)
    assert log.state.last_stable_offset == log.state.log_start_offset

    finish(log, 1, commit=False)

    assert log.state.last_stable_offset == log.state.log_end_offset


def aborted_index(files: MemoryFiles) -> bytes:
    return bytes(files.inodes[f"{FOLDER}/{0:020d}.txnindex"].data)


def abort_one(log: PartitionLog, producer_id: int) -> bytes:
    """Begin and abort a transaction; its entry in the `.txnindex`."""
    first = produce(log, producer_id, 0, transactional=True).first_offset
    last = end_transaction(log, producer_id, commit=False).first_offset
    return AbortedTxn(producer_id, first, last, last + 1).to_bytes()


def test_ended_transactions_below_the_high_watermark_hold_nothing_back_after_a_truncation() -> None:
    """Before, a follower that cut its end off and then led the partition gave read-committed consumers no
    record of the last segment until the next append.
    """
    log = new_log(MemoryFiles())
    write(log, 1, 0, b"a")
    finish(log, 1, commit=True)
    append(log, b"not the leader's")

    log.trimmer.truncate_to(2)

    assert (log.state.last_stable_offset, log.state.high_watermark) == (2, 2)


def test_a_log_that_starts_over_knows_no_transaction_that_was_open_before() -> None:
    """Before, the snapshot of the last clean stop brought it back, and its marker had gone by: the last
    stable offset stayed at the log start offset.
    """
    files = MemoryFiles()
    log = new_log(files)
    write(log, 1, 0, b"a")
    assert log.flusher.close_in_order()
    log = reopened(files, clean=True)

    log.trimmer.reset_to(100)
    append(log, b"b")

    assert (log.state.last_stable_offset, log.state.high_watermark) == (101, 101)
    log.flusher.flush()
    again = reopened(
        files.killed(), clean=False, recovery_point=101, log_start_offset=100, high_watermark=101
    )
    assert (again.state.last_stable_offset, again.state.high_watermark) == (101, 101)


def test_an_abort_adds_to_the_index_and_leaves_alone_what_is_in_it() -> None:
    files = MemoryFiles()
    log = new_log(files)
    entries = [abort_one(log, producer_id) for producer_id in range(3)]

    assert aborted_index(files) == b"".join(entries)
    assert [call for call in files.calls if call[1].endswith(".txnindex")] == [
        ("create", f"{FOLDER}/{0:020d}.txnindex"),
        *[("pwrite", f"{FOLDER}/{0:020d}.txnindex")] * 3,
    ]


def test_aborts_that_a_full_disk_did_not_take_are_in_the_index_after_the_next() -> None:
    files = MemoryFiles()
    log = new_log(files)
    entries = [abort_one(log, 0)]
    end = log.state.log_end_offset
    files.fail("pwrite", errno.ENOSPC, path=".txnindex", times=2)
    entries += [abort_one(log, 1), abort_one(log, 2)]
    assert aborted_index(files) == entries[0]

    entries.append(abort_one(log, 3))
    assert aborted_index(files) == b"".join(entries)
    files.fail("pwrite", errno.ENOSPC, path=".txnindex")
    entries.append(abort_one(log, 4))
    log.flusher.flush()
    assert aborted_index(files) == b"".join(entries)

    log.trimmer.truncate_to(end)
    assert aborted_index(files) == entries[0]
    entries[1:] = [abort_one(log, 5)]
    assert aborted_index(files) == b"".join(entries)

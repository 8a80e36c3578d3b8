"""Idempotent producers: retries are recognised, gaps and zombies refused, across any restart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producers import (
    BatchSummary,
    CorruptSnapshotError,
    ProducerState,
    read_snapshot,
    restore_windows,
    snapshot_bytes,
    window_bytes,
)
from pykafka_broker.log.partition.writer import AppendResult
from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records.producer_snapshot import ProducerSnapshot
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import FOLDER, NOW, append, new_log, produce, reopened, values

MAX_SEQUENCE = (1 << 31) - 1


def refused(log: PartitionLog, producer_id: int, sequence: int, *values: bytes, **header: int) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        produce(log, producer_id, sequence, *values, **header)
    return error.value.code


def test_any_of_the_last_five_batches_may_be_retried_and_is_answered_with_its_own_offsets() -> None:
    log = new_log(MemoryFiles())
    first = [produce(log, 7, 2 * n, b"a", b"b") for n in range(6)]

    again = [produce(log, 7, 2 * n, b"a", b"b") for n in range(1, 6)]

    assert again == [
        AppendResult(result.first_offset, result.last_offset, NOW, 0, duplicate=True) for result in first[1:]
    ]
    assert log.state.log_end_offset == 12


def test_a_retry_older_than_the_window_is_out_of_order() -> None:
    log = new_log(MemoryFiles())
    for n in range(6):
        produce(log, 7, n)

    assert refused(log, 7, 0) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_and_an_overlap_that_is_no_exact_retry_are_out_of_order() -> None:
    log = new_log(MemoryFiles())
    produce(log, 7, 0, b"a", b"b")

    assert refused(log, 7, 3) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(log, 7, 1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(log, 7, 0, b"a") is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.state.log_end_offset == 2


def test_an_unknown_producer_may_begin_anywhere() -> None:
    log = new_log(MemoryFiles())

    assert produce(log, 7, 41).first_offset == 0
    assert produce(log, 7, 42).first_offset == 1


def test_a_new_epoch_begins_at_zero_and_fences_the_old_one() -> None:
    log = new_log(MemoryFiles())
    produce(log, 7, 0)

    assert refused(log, 7, 1, producer_epoch=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    produce(log, 7, 0, producer_epoch=1)
    assert refused(log, 7, 1, producer_epoch=0) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(log, 7, 0, producer_epoch=0) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_sequences_wrap_to_zero_after_the_largest() -> None:
    log = new_log(MemoryFiles())
    produce(log, 7, MAX_SEQUENCE - 1, b"a", b"b")
    produce(log, 7, 0, b"c")

    assert produce(log, 7, MAX_SEQUENCE - 1, b"a", b"b").duplicate


def test_a_batch_may_lie_across_the_wrap() -> None:
    log = new_log(MemoryFiles())
    produce(log, 7, MAX_SEQUENCE, b"a", b"b", b"c")

    assert produce(log, 7, MAX_SEQUENCE, b"a", b"b", b"c").duplicate
    assert produce(log, 7, 2).first_offset == 3


def test_producers_do_not_disturb_each_other_nor_plain_batches() -> None:
    log = new_log(MemoryFiles())
    produce(log, 1, 0)
    append(log, b"plain")
    produce(log, 2, 0)
    append(log, b"plain")

    assert produce(log, 1, 1).first_offset == 4
    assert produce(log, 2, 0).duplicate


def test_a_refused_batch_leaves_no_trace_in_the_window() -> None:
    log = new_log(MemoryFiles())
    produce(log, 7, 0)
    before = repr(log.state.active_producers())

    refused(log, 7, 5)
    refused(log, 7, 9, producer_epoch=3)

    assert repr(log.state.active_producers()) == before


@pytest.mark.parametrize("clean", [True, False], ids=["clean stop", "kill -9"])
@pytest.mark.parametrize("segment_bytes", [1 << 30, 300], ids=["one segment", "many segments"])
def test_all_five_batches_are_known_after_a_restart(clean: bool, segment_bytes: int) -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=segment_bytes)
    for n in range(9):
        for producer in (1, 2, 3):
            produce(log, producer, 2 * n, b"a", b"b")
    known = log.state.active_producers()
    if clean:
        assert log.close()

    log = reopened(files.killed(), clean=clean, segment_bytes=segment_bytes)

    assert log.state.active_producers() == known
    for n in range(4, 9):
        assert produce(log, 2, 2 * n, b"a", b"b").duplicate
    assert produce(log, 2, 18).first_offset == 54


def test_a_folder_that_apache_kafka_stopped_has_no_windows_and_they_are_read_from_the_log() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=400)
    for n in range(12):
        produce(log, 1, n)
    known = log.state.active_producers()
    log.close()
    for path in [path for path in files.inodes if path.endswith(".window")]:
        files.remove(path)

    log = reopened(files, clean=True, segment_bytes=400)

    [state], [before] = log.state.active_producers(), known
    assert state.window[-1] == before.window[-1]
    assert len(state.window) == min(5, log.state.log_end_offset - log.state.segments[-1].base_offset + 1)


def test_a_producer_silent_since_before_the_last_segment_is_remembered_by_its_last_batch() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=300)
    produce(log, 1, 0)
    produce(log, 1, 1)
    for n in range(20):
        produce(log, 2, n)
    log.close()

    log = reopened(files, clean=True, segment_bytes=300)

    assert produce(log, 1, 0).duplicate
    assert produce(log, 1, 2).first_offset == 22


@pytest.mark.parametrize("damage", ["", "x", "0" * 60])
def test_a_garbled_snapshot_is_dropped_and_the_log_read_instead(damage: str) -> None:
    files = MemoryFiles()
    log = new_log(files)
    for n in range(7):
        produce(log, 1, n)
    known = log.state.active_producers()
    log.close()
    files.write_file(f"{FOLDER}/00000000000000000007.snapshot", damage.encode(), sync=False)

    assert reopened(files, clean=True).state.active_producers() == known


def test_lost_snapshots_are_taken_again_on_the_way() -> None:
    files = MemoryFiles()
    log = new_log(files, segment_bytes=300)
    for n in range(12):
        produce(log, n % 2, n // 2)
    taken = {path: files.read_file(path) for path in files.inodes if path.endswith((".snapshot", ".window"))}
    for path in taken:
        files.remove(path)

    reopened(files, segment_bytes=300)

    assert len(taken) > 2
    assert {path: files.read_file(path) for path in taken} == taken


def test_producers_are_forgotten_when_idle_for_their_expiration_but_not_inside_a_transaction() -> None:
    log = new_log(MemoryFiles(), producer_id_expiration_ms=1000)
    for producer in (1, 2):
        produce(log, producer, 0)
    produce(log, 3, 0, transactional=True)
    assert log.state.expire_producers(NOW) == 0
    produce(log, 2, 1)

    assert log.state.expire_producers(NOW + 999) == 0
    assert log.state.expire_producers(NOW + 1000) == 1

    assert [state.producer_id for state in log.state.active_producers()] == [2, 3]
    assert produce(log, 1, 77).first_offset == 4


def test_a_producer_who_writes_old_records_is_remembered_like_any_other() -> None:
    """Idleness was once told from record timestamps: a backfill lost its retries at every restart."""
    files = MemoryFiles()
    log = new_log(files)
    produce(log, 1, 0, timestamp=1000)
    log.state.expire_producers(NOW)
    log.close()

    assert produce(reopened(files, clean=True), 1, 0, timestamp=1000).duplicate


def test_retention_does_not_forget_producers() -> None:
    log = new_log(MemoryFiles(), segment_bytes=200)
    for n in range(10):
        produce(log, 1, n)
    log.trimmer.delete_records(10)
    log.trimmer.apply_retention(NOW)

    assert values(log) == []
    assert produce(log, 1, 9).duplicate
    assert produce(log, 1, 10).first_offset == 10


# --- snapshot bytes -------------------------------------------------------------------------------


def test_a_snapshot_has_the_bytes_that_apache_kafka_4_3_wrote() -> None:
    one = ProducerState(
        1,
        producer_epoch=0,
        coordinator_epoch=0,
        last_timestamp=0x1A1FB4378C2,
        window=(BatchSummary(0x63, 0x64, 0x31, 0x1A1FB4378C2),),
    )
    apache = bytes.fromhex(
        "00012e2af03a00000001"
        "0000000000000001 0000 00000063 0000000000000064 00000031 000001a1fb4378c2 00000000 ffffffffffffffff"
    )

    assert snapshot_bytes([one]) == apache
    declared, _ = decode(ProducerSnapshot, 1, apache, 2)
    assert encode(declared, 1) == apache[2:]
    assert declared.producer_entries[0].last_offset == one.window[-1].last_offset
    assert read_snapshot(apache) == [one]
    assert len(snapshot_bytes([])) == 10


batches = st.builds(
    BatchSummary,
    st.integers(0, MAX_SEQUENCE),
    st.integers(0, 1 << 60),
    st.integers(0, MAX_SEQUENCE),
    st.integers(-1, 1 << 60),
)
producers = st.builds(
    ProducerState,
    st.integers(0, 1 << 60),
    st.integers(0, 32767),
    st.integers(-1, 100),
    st.integers(-1, 1 << 60),
    st.integers(-1, 1 << 60),
    st.lists(batches, min_size=0, max_size=5).map(tuple),
)


@given(st.lists(producers, max_size=4, unique_by=lambda state: state.producer_id))
def test_snapshot_and_window_together_keep_everything(states: list[ProducerState]) -> None:
    for state in states:
        if state.window:
            state.last_timestamp = state.window[-1].timestamp
    read = read_snapshot(snapshot_bytes(states))

    assert restore_windows(read, window_bytes(states))
    assert read == states


def test_a_window_file_of_another_snapshot_is_not_used() -> None:
    def state(*sequences: int) -> ProducerState:
        window = tuple(BatchSummary(n, n, 0, 0) for n in sequences)
        return ProducerState(1, 0, -1, 0, -1, window)

    read = read_snapshot(snapshot_bytes([state(1, 2, 3)]))

    assert not restore_windows(read, window_bytes([state(1, 2)]))
    assert not restore_windows([], window_bytes([state(1, 2)]))
    assert read == [state(3)]


def test_every_flipped_byte_of_a_snapshot_is_noticed() -> None:
    good = snapshot_bytes([ProducerState(1, 0, 0, 5, -1, (BatchSummary(3, 4, 0, 5),))])
    for position in range(len(good)):
        bad = bytearray(good)
        bad[position] ^= 0x10
        with pytest.raises(CorruptSnapshotError):
            read_snapshot(bytes(bad))
    for size in range(len(good)):
        with pytest.raises(CorruptSnapshotError):
            read_snapshot(good[:size])

"""What remains of a batch: keys, tombstones, transactions, producers."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import pytest

from pykafka_broker.log.cleaner.filtering import Rules, remains
from pykafka_broker.log.cleaner.key_map import KeyMap
from pykafka_broker.log.cleaner.transactions import CleanedTransactions
from pykafka_broker.log.partition.cleaning_job import LastRecord
from pykafka_broker.log.segment.aborted_txns import AbortedTxn
from pykafka_broker.protocol.records.batch import (
    BASE_TIMESTAMP_OFFSET,
    BatchFields,
    BatchHeader,
    Codec,
    CorruptRecord,
    build_batch,
    read_header,
    read_records,
    restamp,
)
from pykafka_broker.protocol.records.control import EndTransactionMarker, build_marker_batch

NOW = 5_000_000
RETENTION = 86_400_000
NO_TRANSACTIONS: tuple[AbortedTxn, ...] = ()


def batch(
    *records: tuple[bytes | None, bytes | None],
    base_offset: int = 0,
    first_timestamp: int = 1000,
    **header: Any,
) -> bytes:
    timed = [(first_timestamp + 10 * n, key, value, [("h", b"x")]) for n, (key, value) in enumerate(records)]
    return build_batch(timed, BatchFields(base_offset=base_offset, leader_epoch=3, **header))


def keys(newest: dict[bytes, int], latest: int) -> KeyMap:
    found = KeyMap(1 << 20)
    for key, offset in newest.items():
        found.put(key, offset)
    found.latest_offset = latest
    return found


def cleaned(
    data: bytes,
    newest: dict[bytes, int] | None = None,
    *,
    latest: int = 99,
    aborted: Iterable[AbortedTxn] = NO_TRANSACTIONS,
    transactions: CleanedTransactions | None = None,
    **rules: Any,
) -> bytes | None:
    """The bytes that remain; every rule can be named."""
    details: dict[str, Any] = {
        "now_ms": NOW,
        "delete_retention_ms": RETENTION,
        "upper_bound_offset": 1000,
        "last_records": {},
    }
    left = remains(
        memoryview(data),
        read_header(data),
        keys(newest or {}, latest),
        transactions or CleanedTransactions(aborted),
        Rules(**{**details, **rules}),
    )
    if left is None:
        return None
    assert left.max_timestamp == read_header(left.batch).max_timestamp
    return bytes(left.batch)


def content(data: bytes | None) -> list[tuple[int, int, bytes | None, bytes | None]]:
    assert data is not None
    return [(r.offset, r.timestamp, r.key, r.value) for r in read_records(data)]


A1, B1, A2 = (b"a", b"1"), (b"b", b"1"), (b"a", b"2")


def test_a_batch_of_which_everything_stays_is_the_same_bytes() -> None:
    data = batch(A1, B1, base_offset=10, codec=Codec.GZIP)
    assert cleaned(data, {b"a": 10, b"b": 11}) == data


def test_only_the_newest_record_of_a_key_stays_where_it_was() -> None:
    data = batch(A1, B1, A2, base_offset=10, producer_id=7, producer_epoch=1, base_sequence=5)
    left = cleaned(data, {b"a": 12, b"b": 11})
    assert content(left) == [(11, 1010, b"b", b"1"), (12, 1020, b"a", b"2")]
    header, before = read_header(left or b""), read_header(data)
    assert header._replace(crc=0, batch_length=0, base_timestamp=0, records_count=3) == before._replace(
        crc=0, batch_length=0, base_timestamp=0
    )
    assert next(iter(read_records(left or b""))).headers == (("h", b"x"),)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_compressed_batch_is_compressed_again(codec: Codec) -> None:
    left = cleaned(batch(A1, B1, A2, codec=codec), {b"a": 2, b"b": 1})
    assert content(left) == [(1, 1010, b"b", b"1"), (2, 1020, b"a", b"2")]
    assert read_header(left or b"").codec == codec


def test_times_beyond_64_bits_wrap_around_and_can_be_cleaned() -> None:
    """Before, the header of what remained could not be written, and the partition was never cleaned again."""
    data = bytearray(batch(A1, B1, (b"c", b"1")))
    struct.pack_into(">q", data, BASE_TIMESTAMP_OFFSET, 2**63 - 1)
    restamp(data, 0, 2**63 - 1)

    left = cleaned(bytes(data), {b"a": 50, b"b": 1, b"c": 2})

    assert content(left) == content(bytes(data))[1:]
    assert content(left)[0] == (1, -(2**63) + 9, b"b", b"1")


def test_a_batch_of_which_nothing_stays_goes() -> None:
    assert cleaned(batch(A1), {b"a": 50}) is None


def test_what_is_past_the_key_map_stays_whatever_its_key() -> None:
    data = batch((None, b"x"), A1, base_offset=60)
    assert cleaned(data, {b"a": 50}, latest=59) == data


def test_records_without_a_key_go() -> None:
    assert content(cleaned(batch((None, b"x"), A1), {b"a": 1})) == [(1, 1010, b"a", b"1")]


def test_an_append_time_batch_keeps_its_time() -> None:
    data = batch(A1, B1, timestamp_type=1, max_timestamp=77_000)
    assert content(cleaned(data, {b"a": 50, b"b": 1})) == [(1, 77_000, b"b", b"1")]


def test_a_damaged_batch_is_told() -> None:
    data = bytearray(batch(A1))
    data[-1] ^= 1
    with pytest.raises(CorruptRecord):
        cleaned(bytes(data))


# --- tombstones -----------------------------------------------------------------------------------


def horizon(data: bytes | None) -> int | None:
    return read_header(data or b"").delete_horizon_ms


def test_the_first_round_gives_a_tombstone_its_time_and_later_ones_leave_it() -> None:
    data = batch(A1, (b"b", None), codec=Codec.LZ4)
    first = cleaned(data, {b"a": 0, b"b": 1})
    assert horizon(first) == NOW + RETENTION
    assert content(first) == content(data)
    assert read_header(first or b"").max_timestamp == 1010
    assert cleaned(first or b"", now_ms=NOW + RETENTION - 1) == first


def test_a_tombstone_goes_when_its_time_has_come_and_the_others_keep_theirs() -> None:
    first = cleaned(batch(A1, (b"b", None)), {b"a": 0, b"b": 1})
    later = cleaned(first or b"", now_ms=NOW + RETENTION)
    assert content(later) == [(0, 1000, b"a", b"1")]
    assert horizon(later) == NOW + RETENTION
    assert cleaned(batch((b"b", None), delete_horizon_ms=NOW), {b"b": 0}) is None


def test_an_older_tombstone_of_a_key_goes_at_once() -> None:
    assert cleaned(batch((b"b", None)), {b"b": 8}) is None


# --- producers ------------------------------------------------------------------------------------

PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 5}


def test_the_last_batch_of_an_active_producer_stays_as_a_header() -> None:
    data = batch(A1, B1, base_offset=10, codec=Codec.ZSTD, **PRODUCER)
    newest = {b"a": 50, b"b": 51}
    assert cleaned(data, newest, last_records={7: LastRecord(10, 1)}) is None
    left = cleaned(data, newest, last_records={7: LastRecord(11, 1)})
    assert read_header(left or b"") == BatchHeader(
        10, 49, 3, 2, read_header(left or b"").crc, 0, 1, -1, 1010, 7, 1, 5, 0
    )
    assert cleaned(left or b"", newest, last_records={7: LastRecord(11, 1)}) == left
    assert cleaned(left or b"", newest, last_records={}) is None


def test_the_last_batch_of_a_round_stays_as_a_header() -> None:
    left = cleaned(batch(A1, base_offset=10), {b"a": 50}, upper_bound_offset=11)
    assert (read_header(left or b"").records_count, read_header(left or b"").next_offset) == (0, 11)


# --- transactions ---------------------------------------------------------------------------------


def marker(offset: int, *, commit: bool, producer_id: int = 7) -> bytes:
    return build_marker_batch(
        EndTransactionMarker(commit, 0),
        producer_id=producer_id,
        producer_epoch=1,
        timestamp_ms=2000,
        base_offset=offset,
        leader_epoch=3,
    )


ABORTED = AbortedTxn(7, 10, 12, 13)


def test_records_of_an_aborted_transaction_go_at_once_and_its_marker_a_round_later() -> None:
    transactions = CleanedTransactions([ABORTED])
    data = batch(A1, base_offset=10, transactional=True, **PRODUCER)
    abort = marker(12, commit=False)
    assert cleaned(data, {b"a": 10}, transactions=transactions) is None
    assert cleaned(abort, transactions=transactions) == abort
    assert transactions.kept == [ABORTED]

    second = CleanedTransactions([ABORTED])
    left = cleaned(abort, transactions=second)
    assert second.kept == []
    assert horizon(left) == NOW + RETENTION
    assert content(left) == content(abort)
    third = CleanedTransactions([])
    assert cleaned(left or b"", transactions=third, now_ms=NOW + RETENTION - 1) == left
    assert cleaned(left or b"", transactions=third, now_ms=NOW + RETENTION) is None


def test_a_commit_marker_stays_as_long_as_there_are_records_of_its_transaction() -> None:
    transactions = CleanedTransactions([])
    data = batch(A1, base_offset=10, transactional=True, **PRODUCER)
    commit = marker(12, commit=True)
    assert cleaned(data, {b"a": 10}, transactions=transactions) == data
    assert cleaned(commit, transactions=transactions) == commit
    assert horizon(cleaned(commit, transactions=transactions)) == NOW + RETENTION


def test_the_marker_of_a_producer_who_wrote_nothing_since_stays_for_its_epoch() -> None:
    gone = cleaned(marker(12, commit=True), transactions=CleanedTransactions([]))
    assert gone is not None
    late_ms = NOW + RETENTION
    assert cleaned(gone, last_records={}, now_ms=late_ms) is None
    left = cleaned(gone, last_records={7: LastRecord(-1, 1)}, now_ms=late_ms)
    header = read_header(left or b"")
    assert (header.records_count, header.is_control, header.producer_epoch) == (0, True, 1)
    assert cleaned(gone, last_records={7: LastRecord(-1, 2)}, now_ms=late_ms) is None


def test_records_of_another_producer_between_are_not_touched() -> None:
    transactions = CleanedTransactions([ABORTED])
    other = batch(B1, base_offset=11, transactional=True, producer_id=8, producer_epoch=0, base_sequence=0)
    assert cleaned(other, {b"b": 11}, transactions=transactions) == other

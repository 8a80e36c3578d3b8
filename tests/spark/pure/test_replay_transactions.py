"""Rows become batches, and batches transactions: every row once, in its order."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka_broker.protocol.records.batch import read_records
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.spark.replay.errors import ReplayError
from pykafka_broker.spark.replay.settings import Settings, shared_by
from pykafka_broker.spark.replay.transactions import Gathering, Transaction, rows_of, runs_of

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
Row = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


def arrow(rows: list[Row], binary: Any = pa.binary()) -> pa.RecordBatch:  # noqa: B008
    headers = [[{"key": k, "value": v} for k, v in row[4]] or None for row in rows]
    return pa.record_batch(
        {
            "offset": pa.array([row[0] for row in rows], pa.int64()),
            "timestamp_ms": pa.array([row[1] for row in rows], pa.int64()),
            "key": pa.array([row[2] for row in rows], binary),
            "value": pa.array([row[3] for row in rows], binary),
            "headers": pa.array(headers, HEADERS),
        }
    )


def gathered(gathering: Gathering, *batches: pa.RecordBatch) -> list[Transaction]:
    found = [transaction for batch in batches for transaction in gathering.add(rows_of(batch))]
    return [*found, *gathering.finish()]


def records(transactions: list[Transaction]) -> list[tuple[Any, ...]]:
    """Timestamp, key, value and headers of all records, in their order."""
    return [
        tuple(record)[1:]
        for transaction in transactions
        for batch in transaction.batches
        for record in read_records(batch)
    ]


def row(offset: int, value: bytes | None = b"v") -> Row:
    return (offset, 1_000 + offset, b"k", value, ())


optional_bytes = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=5), optional_bytes), max_size=3).map(tuple)
any_row = st.tuples(st.integers(1, 3), st.integers(-1, 2**53), optional_bytes, optional_bytes, headers)


@settings(max_examples=100, deadline=None)
@given(
    gaps=st.lists(any_row, min_size=1, max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=3),
    position=st.integers(0, 50),
    limits=st.tuples(st.integers(1, 500), st.integers(1, 900), st.integers(1, 9)),
    is_large=st.booleans(),
)
def test_every_row_from_the_position_on_is_in_one_transaction(
    gaps: list[Row], cuts: list[int], position: int, limits: tuple[int, int, int], is_large: bool
) -> None:
    offset = -1
    rows: list[Row] = []
    for one in gaps:
        offset += one[0]
        rows.append((offset, *one[1:]))
    table = arrow(rows, pa.large_binary() if is_large else pa.binary())
    edges = [0, *sorted(cut for cut in cuts if cut < len(rows)), len(rows)]
    parts = [table.slice(a, b - a) for a, b in pairwise(edges)]
    batch_bytes, transaction_bytes, transaction_records = limits
    gathering = Gathering(
        Settings(
            batch_bytes=batch_bytes,
            transaction_bytes=transaction_bytes,
            transaction_records=transaction_records,
        ),
        position,
    )
    transactions = gathered(gathering, *parts)
    wanted = [one for one in rows if one[0] >= position]
    assert records(transactions) == [one[1:] for one in wanted]
    assert sum(transaction.records for transaction in transactions) == len(wanted)
    assert all(0 < transaction.records <= transaction_records for transaction in transactions)
    assert gathering.skipped == len(rows) - len(wanted)
    begin = position
    for transaction in transactions:
        assert begin <= transaction.first_offset < transaction.next_offset
        begin = transaction.next_offset


def test_a_batch_and_a_transaction_end_where_they_are_full() -> None:
    rows = [row(offset, b"x" * 60) for offset in range(10)]
    limits = Settings(batch_bytes=310, transaction_bytes=900)
    found = gathered(Gathering(limits, 0), arrow(rows))
    assert [(t.records, len(t.batches), t.first_offset, t.next_offset) for t in found] == [
        (9, 3, 0, 9),
        (1, 1, 9, 10),
    ]


def test_a_record_larger_than_a_batch_is_a_batch() -> None:
    rows = [row(0), row(1, b"x" * 5_000), row(2)]
    [transaction] = gathered(Gathering(Settings(batch_bytes=100), 0), arrow(rows))
    assert [len(list(read_records(batch))) for batch in transaction.batches] == [1, 1, 1]


def test_a_row_that_comes_twice_is_taken_once_wherever_it_comes() -> None:
    gathering = Gathering(Settings(), 0)
    found = gathered(gathering, arrow([row(0), row(0), row(1)]), arrow([row(1), row(2)]))
    assert [timestamp for timestamp, *_ in records(found)] == [1_000, 1_001, 1_002]
    assert gathering.duplicates == 2


def test_two_records_of_one_offset_are_refused() -> None:
    with pytest.raises(ReplayError, match="Offset 1 occurs twice in the source, with different records"):
        gathered(Gathering(Settings(), 0), arrow([row(0), row(1)]), arrow([row(1, b"another")]))


def test_batches_are_compressed_as_wanted() -> None:
    [transaction] = gathered(Gathering(Settings(codec=Codec.GZIP), 0), arrow([row(0, b"x" * 9_000)]))
    assert transaction.size_bytes < 1_000
    assert records([transaction])[0][2] == b"x" * 9_000


def test_rows_of_several_partitions_come_in_runs() -> None:
    batch = pa.record_batch({"target": pa.array([0, 0, 2, 2, 2, 5], pa.int32())})
    assert [(target, run.num_rows) for target, run in runs_of(batch, "target")] == [(0, 2), (2, 3), (5, 1)]
    assert list(runs_of(batch.slice(0, 0), "target")) == []


def test_writers_share_a_rate_and_a_transaction_is_a_second_of_it() -> None:
    shared = shared_by(Settings(records_per_s=1_000, bytes_per_s=1_000_000), 4)
    assert (shared.records_per_s, shared.transaction_records) == (250, 250)
    assert (shared.bytes_per_s, shared.transaction_bytes) == (250_000, 250_000)
    assert shared_by(Settings(), 4) == Settings()

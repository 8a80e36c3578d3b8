"""RecordBatches stay within the limits of their reader, whatever the sizes of the batches in the topic."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pykafka_broker.arrow.core.assembly import Assembly
from pykafka_broker.arrow.core.columns import ALL_COLUMNS, KAFKA_COLUMNS, schema_of
from pykafka_broker.arrow.core.limits import Limits
from pykafka_broker.protocol.records.batch import BatchFields, build_batch
from tests.arrow.batches import NOW, batch_of, stored


def row_counts(data: bytes, **limits: int) -> list[int]:
    """How many rows each RecordBatch has; all offsets are there once and in order."""
    assembly = Assembly("t", schema_of(["offset"]), Limits(**limits))
    batches = list(assembly.record_batches(stored(data)))
    offsets = [offset for batch in batches for offset in batch.column(0).to_pylist()]
    assert offsets == list(range(len(offsets)))
    return [batch.num_rows for batch in batches]


def log_of(*counts: int, size: int = 10) -> bytes:
    """Batches of so many records of this size."""
    return b"".join(
        batch_of([b"v" * size] * count, base_offset=sum(counts[:number]))
        for number, count in enumerate(counts)
    )


def test_small_batches_are_put_together_up_to_the_limit_of_rows() -> None:
    assert row_counts(log_of(*[3] * 10), batch_rows=10) == [9, 9, 9, 3]


def test_a_larger_batch_is_cut_at_the_limit_of_rows() -> None:
    assert row_counts(log_of(25, 2), batch_rows=10) == [10, 10, 5, 2]


def test_batches_are_put_together_and_cut_at_the_limit_of_bytes() -> None:
    # A record of 91 bytes takes 100.
    assert row_counts(log_of(*[1] * 7, size=91), batch_bytes=300) == [3, 3, 1]
    assert row_counts(log_of(7, size=91), batch_bytes=300) == [3, 3, 1]


def test_a_record_above_the_limit_of_bytes_is_alone() -> None:
    assert row_counts(log_of(1, 2, 1, size=1_000), batch_bytes=300) == [1, 1, 1, 1]


def test_the_columns_are_those_that_were_asked_for_in_their_order() -> None:
    columns = ["value", "leaderEpoch", "offset"]
    data = build_batch([(NOW, b"k", b"v", ())], BatchFields(base_offset=7, leader_epoch=3))
    [batch] = Assembly("t", schema_of(columns), Limits()).record_batches(stored(data))

    assert batch.to_pylist() == [{"value": b"v", "leaderEpoch": 3, "offset": 7}]


@pytest.mark.parametrize("columns", [["valu"], ["key", "key"]])
def test_columns_that_do_not_exist_or_are_named_twice_are_refused(columns: Sequence[str]) -> None:
    with pytest.raises(ValueError, match="column"):
        schema_of(columns)


def test_sparks_columns_are_read_unless_others_are_asked_for() -> None:
    assert ALL_COLUMNS[: len(KAFKA_COLUMNS)] == KAFKA_COLUMNS


@pytest.mark.parametrize(
    "name", ["batch_rows", "batch_bytes", "fetch_bytes", "decompressed_bytes", "wait_ms"]
)
def test_a_limit_is_above_0(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Limits(**{name: 0})

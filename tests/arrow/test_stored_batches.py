"""Which of a partition's next batches a reader takes, and where it goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pykafka_broker.arrow.core.fetched import READ_COMMITTED, READ_UNCOMMITTED, take_answer
from pykafka_broker.arrow.core.stored_batches import NO_END, OffsetRange, take
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.fetch import AbortedTransaction, PartitionData
from pykafka_broker.protocol.records.batch import BatchHeader, iter_batches, read_header
from pykafka_broker.protocol.records.control import EndTransactionMarker, build_marker_batch
from tests.arrow.batches import NOW, batch_of, sealed

ABORT = EndTransactionMarker(commit=False, coordinator_epoch=0)
#: Offsets 0 and 1, 2 and 3, 4 and 5.
THREE = b"".join(batch_of([b"a", b"b"], base_offset=offset) for offset in (0, 2, 4))


def cut(data: bytes) -> Iterator[tuple[BatchHeader, memoryview]]:
    return ((header, memoryview(data)[at:]) for at, header in iter_batches(data))


def taken(data: bytes, start: int = 0, end: int = NO_END) -> tuple[list[int], int]:
    """The base offsets of the batches that are taken, and the next offset."""
    batches, next_offset = take("orders", 0, cut(data), OffsetRange(start, end), None)
    return [batch.header.base_offset for batch in batches], next_offset


def answered(records: bytes, isolation_level: int) -> tuple[list[int], int]:
    """The same of a fetch answer with an aborted transaction of producer 7 from offset 0 on."""
    answer = PartitionData(
        partition_index=0,
        error_code=0,
        high_watermark=9,
        aborted_transactions=[AbortedTransaction(producer_id=7, first_offset=0)],
        records=records,
    )
    batches, next_offset = take_answer("orders", answer, OffsetRange(0, 9), isolation_level)
    return [batch.header.base_offset for batch in batches], next_offset


def test_batches_with_wanted_offsets_are_taken() -> None:
    assert taken(THREE) == ([0, 2, 4], 6)
    assert taken(THREE, 1, 3) == ([0, 2], 3)
    assert taken(THREE, 2, 4) == ([2], 4)
    assert taken(THREE, 6) == ([], 6)


def test_an_answer_that_ends_within_a_batch_has_those_before_it() -> None:
    assert taken(THREE[:-1]) == ([0, 2], 4)
    assert taken(b"", 3) == ([], 3)


def test_markers_are_taken_and_hide_aborted_transactions_from_readers_of_committed_records() -> None:
    records = b"".join(
        (
            batch_of([b"aborted"], producer_id=7, transactional=True),
            batch_of([b"plain"], base_offset=1),
            build_marker_batch(ABORT, producer_id=7, producer_epoch=0, timestamp_ms=NOW, base_offset=2),
            batch_of([b"later"], base_offset=3, producer_id=7, transactional=True),
        )
    )
    assert answered(records, READ_UNCOMMITTED) == ([0, 1, 2, 3], 4)
    assert answered(records, READ_COMMITTED) == ([1, 2, 3], 4)


@pytest.mark.parametrize(
    "data",
    [
        batch_of([b"a"], base_offset=5) + batch_of([b"b"], base_offset=3),
        sealed(read_header(THREE), THREE[61:95], last_offset_delta=-1),
        batch_of([b"a"], base_offset=-4),
        batch_of([b"a"])[:16] + b"\x01" + batch_of([b"a"])[17:],
    ],
    ids=["goes back", "ends before it begins", "below 0", "format v1"],
)
def test_what_is_no_row_of_batches_is_refused_with_its_place(data: bytes) -> None:
    with pytest.raises(KafkaError, match="partition orders-0 at offset") as refused:
        taken(data)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE

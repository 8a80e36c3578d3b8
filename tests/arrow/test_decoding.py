"""Batches become the rows that the codec of single records reads; what it refuses is refused, in the same
words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka_broker.arrow.core.assembly import Assembly
from pykafka_broker.arrow.core.columns import ALL_COLUMNS, schema_of
from pykafka_broker.arrow.core.limits import Limits
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import CONTROL_BIT, BatchFields, build_batch, read_header
from tests.arrow.batches import (
    NOW,
    batch_of,
    batch_rows,
    changed_section,
    read_one_by_one,
    records,
    sealed,
    stored,
)

ASSEMBLY = Assembly("orders", schema_of(ALL_COLUMNS), Limits())
PLAIN = batch_of([b"one", b"two", None, b"three"])


def rows_of(data: bytes, first: int = 0, end: int = 2**63 - 1) -> list[Mapping[str, Any]]:
    """The rows of batches of orders-0, times in milliseconds."""
    batches = list(ASSEMBLY.record_batches(stored(data, first=first, end=end)))
    for batch in batches:
        batch.validate(full=True)
    table = pa.Table.from_batches(batches, ASSEMBLY.schema)
    place = table.schema.get_field_index("timestamp")
    times = table.column("timestamp").cast(pa.int64())
    rows: list[Mapping[str, Any]] = table.set_column(place, "timestamp", times).to_pylist()
    return rows


@given(batch_rows())
def test_batches_have_the_rows_that_are_read_one_by_one(data: bytes) -> None:
    assert rows_of(data) == read_one_by_one(data)


@given(batch_rows(), st.data())
def test_the_rows_between_two_offsets_are_those_that_are_wanted(data: bytes, draw: st.DataObject) -> None:
    rows = read_one_by_one(data)
    offsets = st.integers(rows[0]["offset"] - 2, rows[-1]["offset"] + 2)
    first, end = draw.draw(offsets), draw.draw(offsets)

    assert rows_of(data, first, end) == [row for row in rows if first <= row["offset"] < end]


@settings(max_examples=200)
@given(
    st.lists(records, min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_a_batch_with_other_bytes_is_read_as_one_by_one_or_refused(
    written: list[Any], changes: list[tuple[int, int]]
) -> None:
    data = changed_section(build_batch(written, BatchFields(base_offset=100)), changes)
    try:
        expected = read_one_by_one(data)
    except KafkaError as error:
        with pytest.raises(KafkaError) as refused:
            rows_of(data)
        where, _, cause = str(refused.value.message).partition(", cause: ")
        assert where == "Record batch for partition orders-0 at offset 100 is invalid"
        # Of a batch with two faults, another one may be found first.
        assert cause == error.message or cause.startswith("A record has the offset")
        return
    last = read_header(data).last_offset
    if all(100 <= row["offset"] <= last for row in expected):
        assert without_odd_names(rows_of(data)) == without_odd_names(expected)
    else:
        with pytest.raises(KafkaError, match="A record has the offset"):
            rows_of(data)


@settings(max_examples=200)
@given(
    st.lists(records, min_size=1, max_size=8),
    st.sampled_from(["attributes", "last_offset_delta", "base_timestamp", "max_timestamp", "base_offset"]),
    st.data(),
)
def test_a_batch_with_another_header_is_read_as_one_by_one_or_refused(
    written: list[Any], field: str, draw: st.DataObject
) -> None:
    bits = {"attributes": 15, "last_offset_delta": 31}.get(field, 63)
    value = draw.draw(st.integers(-(2**bits), 2**bits - 1))
    plain = build_batch(written)
    data = sealed(read_header(plain), plain[61:], **{field: value})
    try:
        found = rows_of(data)
    except KafkaError as error:
        assert "orders-0 at offset" in error.message
    else:
        is_marker = read_header(data).attributes & CONTROL_BIT != 0
        assert found == ([] if is_marker else read_one_by_one(data))


def without_odd_names(rows: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows, with the signs for bytes in the names of headers that are not UTF-8 left out."""
    for row in rows:
        for header in row["headers"] or ():
            header["key"] = "".join(sign for sign in header["key"] if sign.isascii())
    return rows


@given(st.integers(-(2**31), 2**31 - 1).filter(lambda count: count != 4))
def test_another_number_of_records_than_there_are_is_refused(count: int) -> None:
    header = read_header(PLAIN)
    with pytest.raises(KafkaError, match=r"orders-0 at offset 0 is invalid") as refused:
        rows_of(sealed(header, PLAIN[61:], records_count=count))
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_a_damaged_batch_is_refused_with_its_place() -> None:
    damaged = bytearray(batch_of([b"one"]) + batch_of([b"two"], base_offset=1))
    damaged[-3] ^= 1
    with pytest.raises(KafkaError, match="orders-0 at offset 1 is invalid, cause: Record is corrupt"):
        rows_of(bytes(damaged))


def test_a_name_of_a_header_that_is_not_utf_8_has_signs_for_what_is_not() -> None:
    data = build_batch([(NOW, None, b"v", (("a\udcff", b"1"), ("b", None)))])

    assert rows_of(data)[0]["headers"] == [{"key": "a\ufffd", "value": b"1"}, {"key": "b", "value": None}]


def test_a_record_may_have_very_many_headers() -> None:
    headers = tuple((str(number), b"v") for number in range(3_000))
    data = build_batch([(NOW, None, b"a", ()), (NOW, None, b"b", headers)])

    assert [len(row["headers"] or ()) for row in rows_of(data)] == [0, 3_000]


def test_a_time_beyond_64_bits_wraps_around_as_in_java() -> None:
    written = [(NOW, None, b"a", ()), (NOW + 1, None, b"b", ())]
    data = build_batch(written)
    latest = sealed(read_header(data), data[61:], base_timestamp=2**63 - 1)

    assert [row["timestamp"] for row in rows_of(latest)] == [2**63 - 1, -(2**63)]


def test_a_batch_without_records_has_no_rows() -> None:
    empty = build_batch([], BatchFields(base_offset=5, last_offset_delta=3))

    assert rows_of(empty + batch_of([b"v"], base_offset=9)) == read_one_by_one(
        batch_of([b"v"], base_offset=9)
    )


def test_what_decompresses_to_too_much_is_refused() -> None:
    assembly = ASSEMBLY._replace(limits=Limits(decompressed_bytes=1_000))
    with pytest.raises(KafkaError, match="orders-0 at offset 0") as refused:
        list(assembly.record_batches(stored(batch_of([b"v" * 2_000], codec=4))))
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE

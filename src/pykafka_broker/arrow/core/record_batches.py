"""Decoded records as an Arrow RecordBatch: no step works on a single record. Pure.

Keys and values are copied by Arrow alone. An array over the bytes of all records alternates between values
and the bytes between them; every second element is taken: 20 ns a value of 100 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute  # otherwise arrays import it at their first use

from pykafka_broker.arrow.core.columns import HEADER, HEADERS
from pykafka_broker.arrow.core.decoding import Decoded, Section
from pykafka_broker.arrow.core.varints import Positions
from pykafka_broker.system.named_tuple import NamedTuple

Rows = npt.NDArray[np.intp]


class Source(NamedTuple):
    """The decoded records of a topic, with the batches that they are from."""

    topic: str
    sections: Sequence[Section]
    decoded: Decoded


def record_batch(schema: pa.Schema, source: Source) -> pa.RecordBatch:
    """The wanted records, as columns of this schema (`columns.py`)."""
    return pa.RecordBatch.from_arrays([_COLUMNS[name](source) for name in schema.names], schema=schema)


def row_bytes(decoded: Decoded) -> npt.NDArray[np.int64]:
    """For each wanted record, the end of its bytes among those of all records."""
    return decoded.ends if decoded.wanted is None else decoded.ends[decoded.wanted]


# -- columns
# ----------


def _key(source: Source) -> pa.Array:
    decoded = source.decoded
    keys = decoded.keys
    return _binary(decoded.data, keys.at, keys.ends, keys.nulls, decoded.wanted)


def _value(source: Source) -> pa.Array:
    decoded = source.decoded
    values = decoded.values
    return _binary(decoded.data, values.at, values.ends, values.nulls, decoded.wanted)


def _topic(source: Source) -> pa.Array:
    decoded = source.decoded
    rows = len(decoded.offsets) if decoded.wanted is None else len(decoded.wanted)
    name = source.topic.encode()
    offsets = np.arange(0, (rows + 1) * len(name), len(name), dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(name * rows)])


def _partition(source: Source) -> pa.Array:
    partitions = [section.partition for section in source.sections]
    return _array(pa.int32(), _of_batches(source, partitions, np.int32))


def _offset(source: Source) -> pa.Array:
    return _array(pa.int64(), _of_records(source, source.decoded.offsets))


def _timestamp(source: Source) -> pa.Array:
    return _array(pa.timestamp("ms", tz="UTC"), _of_records(source, source.decoded.timestamps))


def _timestamp_type(source: Source) -> pa.Array:
    kinds = [section.header.timestamp_type for section in source.sections]
    return _array(pa.int32(), _of_batches(source, kinds, np.int32))


def _producer_id(source: Source) -> pa.Array:
    ids = [section.header.producer_id for section in source.sections]
    return _known(pa.int64(), _of_batches(source, ids, np.int64))


def _producer_epoch(source: Source) -> pa.Array:
    epochs = [section.header.producer_epoch for section in source.sections]
    return _known(pa.int16(), _of_batches(source, epochs, np.int16))


def _leader_epoch(source: Source) -> pa.Array:
    epochs = [section.header.partition_leader_epoch for section in source.sections]
    return _known(pa.int32(), _of_batches(source, epochs, np.int32))


def _headers(source: Source) -> pa.Array:
    decoded = source.decoded
    rows, spans = decoded.with_headers, decoded.headers
    wanted = decoded.wanted
    if rows is None or spans is None:
        return pa.nulls(len(decoded.offsets) if wanted is None else len(wanted), HEADERS)
    names = _text(_binary(decoded.data, spans.names_at, spans.names_end, None, None))
    nulls = spans.values_end < 0
    value_ends = np.where(nulls, spans.values_at, spans.values_end)
    values = _binary(decoded.data, spans.values_at, value_ends, nulls if nulls.any() else None, None)
    counts = np.zeros(len(decoded.offsets), np.int32)
    counts[rows] = spans.counts
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    structs = pa.StructArray.from_arrays([names, values], fields=list(HEADER))
    mask = pa.Array.from_buffers(pa.bool_(), len(counts), [None, _bits(counts == 0)])
    lists = pa.ListArray.from_arrays(_array(pa.int32(), offsets), structs, type=HEADERS, mask=mask)
    return lists if wanted is None else lists.take(_array(pa.int64(), wanted))


_COLUMNS: Mapping[str, Callable[[Source], pa.Array]] = {
    "key": _key,
    "value": _value,
    "topic": _topic,
    "partition": _partition,
    "offset": _offset,
    "timestamp": _timestamp,
    "timestampType": _timestamp_type,
    "headers": _headers,
    "producerId": _producer_id,
    "producerEpoch": _producer_epoch,
    "leaderEpoch": _leader_epoch,
}


# -- arrays
# ---------


def _of_records(source: Source, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    wanted = source.decoded.wanted
    return numbers if wanted is None else numbers[wanted]


def _of_batches(source: Source, numbers: list[int], kind: npt.DTypeLike) -> npt.NDArray[np.generic]:
    """For each record the number of its batch."""
    rows, wanted = source.decoded.sections, source.decoded.wanted
    if numbers.count(numbers[0]) == len(numbers):
        return np.full(len(rows) if wanted is None else len(wanted), numbers[0], kind)
    return np.array(numbers, kind).take(rows if wanted is None else rows[wanted])


def _array(
    kind: pa.DataType, numbers: npt.NDArray[np.generic], nulls: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """Numbers, not copied. `pa.array` does the same, but imports pandas first, if there is one: 0.6 s."""
    validity = None if nulls is None else _bits(~nulls)
    return pa.Array.from_buffers(kind, len(numbers), [validity, pa.py_buffer(numbers)])


def _bits(truths: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(truths, bitorder="little"))


def _known(kind: pa.DataType, numbers: npt.NDArray[np.generic]) -> pa.Array:
    """Numbers, of which those below zero mean null."""
    unknown = np.less(numbers, 0)
    return _array(kind, numbers, unknown if unknown.any() else None)


def _binary(
    data: bytes, at: Positions, ends: Positions, nulls: npt.NDArray[np.bool_] | None, rows: Rows | None
) -> pa.Array:
    """The bytes between the places in `data`; the places ascend. Only of `rows`, if they are given."""
    count = len(at)
    if not count:
        return pa.array([], pa.binary())
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[0:-1:2] = at
    offsets[1::2] = ends
    offsets[-1] = ends[-1]
    validity = None
    if nulls is not None:
        bits = np.ones(2 * count, bool)
        bits[::2] = ~nulls
        validity = _bits(bits)
    pieces = pa.Array.from_buffers(
        pa.binary(), 2 * count, [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    if rows is None:
        return pieces.take(_array(pa.int32(), np.arange(0, 2 * count, 2, dtype=np.int32)))
    return pieces.take(_array(pa.int64(), rows * 2))


def _text(names: pa.Array) -> pa.Array:
    """Names as text; bytes that are not UTF-8 become U+FFFD, as in Java."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.decode(errors="replace") for name in names.to_pylist()], pa.string())

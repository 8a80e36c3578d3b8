"""From the bytes of record batches to columns of numbers: the positions of keys, values and headers, and the
values of varints. Pure; no step works on a single record.

Batches that are given together are decoded together: their records are joined, and each field of all of them
is read at once (`varints.py`), 0.1 us a record and 3 us a batch. Everything is checked: fields must fill
their record exactly, offsets must lie within their batch, and each batch must hold as many records as it
says. A batch that fails here is given to the codec of single records (`protocol.records`), which raises the
exact error.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pykafka_broker.arrow.core.record_headers import HeaderSpans, read_headers
from pykafka_broker.arrow.core.record_starts import Layout, find_starts
from pykafka_broker.arrow.core.varints import Octets, Positions, read_numbers
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.records.batch import (
    MAX_INT64,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    walk_records,
)
from pykafka_broker.protocol.records.errors import InvalidRecord
from pykafka_broker.system.named_tuple import NamedTuple

_FIELDS = BatchHeader._fields


class Section(NamedTuple):
    """The records of one batch, decompressed, and which offsets of it are wanted: [first, end)."""

    partition: int
    header: BatchHeader
    data: Buffer
    first_offset: int
    end_offset: int


class Spans(NamedTuple):
    """The positions of the keys, or of the values, of the records."""

    at: Positions
    ends: Positions
    #: None: no record has a null.
    nulls: npt.NDArray[np.bool_] | None


class Decoded(NamedTuple):
    """The records of some sections, in order."""

    data: bytes
    #: The number of the section of each record.
    sections: npt.NDArray[np.intp]
    offsets: npt.NDArray[np.int64]
    #: Milliseconds; in a LogAppendTime batch, the batch's own.
    timestamps: npt.NDArray[np.int64]
    keys: Spans
    values: Spans
    #: The end position of each record.
    ends: Positions
    #: The records with headers, and these headers; None if there are none, or they are not wanted.
    with_headers: npt.NDArray[np.intp] | None
    headers: HeaderSpans | None
    #: The records whose offsets are wanted; None: all of them.
    wanted: npt.NDArray[np.intp] | None


def decode(sections: Sequence[Section], topic: str, *, headers: bool) -> Decoded:
    """The records of these sections of a topic. Without `headers`, those are skipped.

    Raises:
        InvalidRecord: bytes that are no records; the message says in which partition and batch.
    """
    try:
        return _decode(sections, headers)
    except InvalidRecord as error:
        raise _explained(sections, topic, error) from None


def _decode(sections: Sequence[Section], wants_headers: bool) -> Decoded:
    data, octets, _, _, counts = layout = _lay_out(sections)
    starts = find_starts(layout)
    ends = _ends(layout, starts)
    lengths, pos = read_numbers(octets, starts)
    _insist((pos + lengths == ends).all())
    time_deltas, pos = read_numbers(octets, pos + 1)
    offset_deltas, pos = read_numbers(octets, pos)
    keys, pos = _read_spans(octets, pos)
    values, pos = _read_spans(octets, pos)
    has_headers = octets.take(pos, mode="clip") != 0
    with_headers: npt.NDArray[np.intp] | None = None
    if not has_headers.any():
        _insist((pos + 1 == ends).all())
    else:
        with_headers = np.flatnonzero(has_headers)
        _insist(np.where(has_headers, pos < ends, pos + 1 == ends).all())

    number = np.repeat(np.arange(len(sections)), counts)
    base_offsets, last_deltas, base_times, append_times = _batch_fields(sections)
    _insist(((offset_deltas >= 0) & (offset_deltas <= np.repeat(last_deltas, counts))).all())
    offsets = offset_deltas + np.repeat(base_offsets, counts)
    _insist((offsets >= 0).all())
    has_append_time = append_times[0]
    timestamps = time_deltas + np.repeat(base_times, counts)
    if has_append_time.any():
        timestamps = np.where(has_append_time[number], append_times[1][number], timestamps)

    header_spans: HeaderSpans | None = None
    if with_headers is not None and wants_headers:
        header_spans = read_headers(octets, pos[with_headers], ends[with_headers])
    return Decoded(
        data=data,
        sections=number,
        offsets=offsets,
        timestamps=timestamps,
        keys=keys,
        values=values,
        ends=ends,
        with_headers=None if header_spans is None else with_headers,
        headers=header_spans,
        wanted=_wanted(sections, number, offsets),
    )


def _lay_out(sections: Sequence[Section]) -> Layout:
    parts = [section.data for section in sections]
    data = parts[0] if len(parts) == 1 and isinstance(parts[0], bytes) else b"".join(parts)
    sizes = np.fromiter(map(len, parts), np.int64, len(parts))
    ends = np.cumsum(sizes)
    counts = np.fromiter((section.header.records_count for section in sections), np.int64, len(sections))
    return Layout(data, np.frombuffer(data, np.uint8), ends - sizes, ends, counts)


def _ends(layout: Layout, starts: Positions) -> Positions:
    """The position where each record has to end: the start of the next one, or the end of its batch."""
    ends = np.empty_like(starts)
    ends[:-1] = starts[1:]
    is_filled = layout.counts > 0
    ends[np.cumsum(layout.counts[is_filled]) - 1] = layout.ends[is_filled]
    return ends


def _batch_fields(
    sections: Sequence[Section],
) -> tuple[Positions, Positions, Positions, tuple[npt.NDArray[np.bool_], Positions]]:
    """The fields of each batch: base offset, last offset delta, base timestamp; and whether its time is that
    of the append, with that time.
    """
    columns = list(zip(*[section.header for section in sections], strict=True))
    base_offsets, last_deltas, attributes, base_times, append_times = (
        np.array(columns[_FIELDS.index(name)], np.int64)
        for name in ("base_offset", "last_offset_delta", "attributes", "base_timestamp", "max_timestamp")
    )
    return base_offsets, last_deltas, base_times, ((attributes & TIMESTAMP_TYPE_BIT) != 0, append_times)


def _read_spans(octets: Octets, at: Positions) -> tuple[Spans, Positions]:
    """The keys or values whose lengths are at `at`, and where they end."""
    lengths, begins = read_numbers(octets, at)
    _insist((lengths <= len(octets)).all())
    nulls = lengths < 0
    if not nulls.any():
        ends = begins + lengths
        return Spans(begins, ends, None), ends
    ends = begins + np.maximum(lengths, 0)
    return Spans(begins, ends, nulls), ends


def _insist(is_so: np.bool_ | bool) -> None:
    if not is_so:
        raise InvalidRecord("Invalid record size: the fields of a record do not fill it exactly")


def _wanted(
    sections: Sequence[Section], number: npt.NDArray[np.intp], offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.intp] | None:
    """The records within the wanted offsets; None if all are."""
    if all(
        first <= header.base_offset and header.base_offset + header.last_offset_delta < end
        for _, header, _, first, end in sections
    ):
        return None
    firsts = np.array([section.first_offset for section in sections], np.int64)
    ends = np.array([section.end_offset for section in sections], np.int64)
    return np.flatnonzero((offsets >= firsts[number]) & (offsets < ends[number]))


def _explained(sections: Sequence[Section], topic: str, error: InvalidRecord) -> InvalidRecord:
    """The error of the first bad batch, in the words of Kafka's consumer."""
    bad = ((section, cause) for section in sections if (cause := _cause(section)) is not None)
    section, cause = next(bad, (sections[0], error.message))
    return InvalidRecord(invalid_batch(topic, section.partition, section.header.base_offset, cause))


def _cause(section: Section) -> str | None:
    header = section.header
    try:
        for offset_delta, *_ in walk_records(bytes(section.data), header.records_count):
            offset = header.base_offset + offset_delta
            if not 0 <= offset_delta <= header.last_offset_delta or not 0 <= offset <= MAX_INT64:
                return f"A record has the offset {offset}"
    except InvalidRecord as error:
        return error.message
    return None


def invalid_batch(topic: str, partition: int, offset: int, cause: str) -> str:
    """The words of Kafka's consumer for a batch that cannot be read."""
    return f"Record batch for partition {topic}-{partition} at offset {offset} is invalid, cause: {cause}"

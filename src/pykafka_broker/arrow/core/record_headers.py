"""The headers of many records at once. Pure.

Records have few headers, so the first headers of all records are read together, then the second ones of those
that have two, and so on. When fewer than `FEWEST_TOGETHER` records have headers left, each of these records
is read by itself, which takes about a microsecond per header, even for a record with a million headers.
"""

from __future__ import annotations

import numpy as np

from pykafka_broker.arrow.core.varints import Octets, Positions, read_numbers
from pykafka_broker.protocol.records.batch import varint
from pykafka_broker.protocol.records.errors import InvalidRecord
from pykafka_broker.system.named_tuple import NamedTuple

#: Fewer records than this are read one by one.
FEWEST_TOGETHER = 16


class HeaderSpans(NamedTuple):
    """The headers of some records, in order: how many each record has, and where each header's parts are."""

    counts: Positions
    names_at: Positions
    names_end: Positions
    values_at: Positions
    #: -1: the value is null.
    values_end: Positions


def read_headers(octets: Octets, at: Positions, ends: Positions) -> HeaderSpans:
    """The headers of some records, whose header counts are at the positions `at`.

    The headers of a record must end where the record ends; `ends` has these positions.

    Raises:
        InvalidRecord: the headers of a record end elsewhere, or are malformed.
    """
    counts, pos = read_numbers(octets, at)
    if ((counts < 0) | (counts * 2 > ends - pos)).any():
        raise InvalidRecord("Found invalid number of record headers")
    first = np.cumsum(counts) - counts
    spans = np.zeros((4, int(counts.sum())), np.int64)
    number = 0
    rows = np.flatnonzero(counts)
    while rows.size >= FEWEST_TOGETHER:
        begins, limit = pos[rows], ends[rows]
        lengths, names_at = read_numbers(octets, begins)
        if ((lengths < 0) | (lengths > limit - names_at)).any():
            raise InvalidRecord("Invalid header key size")
        names_end = names_at + lengths
        lengths, values_at = read_numbers(octets, names_end)
        if (lengths > limit - values_at).any():
            raise InvalidRecord("Invalid header value size")
        spans[:, first[rows] + number] = (
            names_at,
            names_end,
            values_at,
            np.where(lengths < 0, -1, values_at + lengths),
        )
        pos[rows] = values_at + np.maximum(lengths, 0)
        number += 1
        rows = rows[counts[rows] > number]
    if rows.size:
        data = octets.tobytes()
        for row in rows.tolist():
            pos[row] = _read_one(
                data, int(pos[row]), spans[:, int(first[row]) + number : int(first[row] + counts[row])]
            )
    if (pos != ends).any():
        raise InvalidRecord("Invalid record size: the fields of a record do not fill it exactly")
    return HeaderSpans(counts, *spans)


def _read_one(data: bytes, pos: int, spans: Positions) -> int:
    """Read the headers of one record from `pos` on into the columns of `spans`; return their end position."""
    found: list[tuple[int, int, int, int]] = []
    try:
        for _ in range(spans.shape[1]):
            length, names_at = varint(data, pos)
            if length & 1:
                raise InvalidRecord("Invalid negative header key size")
            names_end = names_at + (length >> 1)
            length, values_at = varint(data, names_end)
            pos = values_at if length & 1 else values_at + (length >> 1)
            found.append((names_at, names_end, values_at, -1 if length & 1 else pos))
    except IndexError:
        raise InvalidRecord("Incorrect declared batch size, premature EOF reached") from None
    if pos > len(data):
        raise InvalidRecord("Incorrect declared batch size, premature EOF reached")
    spans[:] = np.array(found, np.int64).T
    return pos

"""Batches for the tests of this folder, and what the codec of single records reads from them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from pykafka_broker.arrow.core.stored_batches import NO_END, StoredBatch
from pykafka_broker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    CRC_OFFSET,
    HEADER,
    HEADER_BYTES,
    BatchFields,
    BatchHeader,
    Codec,
    Headers,
    build_batch,
    iter_batches,
    read_header,
    read_records,
)
from pykafka_broker.protocol.records.crc import crc32c

NOW = 1_700_000_000_000

#: Time, key, value, headers.
Written = tuple[int, bytes | None, bytes | None, Headers]


def stored(data: bytes, *, partition: int = 0, first: int = 0, end: int = NO_END) -> list[StoredBatch]:
    """All batches in these bytes, wanted between two offsets."""
    view = memoryview(data)
    return [
        StoredBatch(partition, header, view[at : at + header.size_in_bytes], first, end)
        for at, header in iter_batches(data)
    ]


def batch_of(values: Sequence[bytes | None], base_offset: int = 0, **fields: Any) -> bytes:
    """A batch of records without keys, a millisecond apart."""
    records = [(NOW + number, None, value, ()) for number, value in enumerate(values)]
    return build_batch(records, BatchFields(base_offset=base_offset, **fields))


def sealed(header: BatchHeader, section: bytes, **changes: int) -> bytes:
    """A batch with these header fields around `section`, its length and checksum put right."""
    batch = bytearray(HEADER_BYTES) + section
    HEADER.pack_into(batch, 0, *header._replace(batch_length=len(batch) - 12, **changes))
    struct.pack_into(">I", batch, CRC_OFFSET, crc32c(batch[ATTRIBUTES_OFFSET:]))
    return bytes(batch)


def read_one_by_one(data: bytes) -> list[Mapping[str, Any]]:
    """The rows that the codec of single records finds in these batches of orders-0."""
    return [
        {
            "key": record.key,
            "value": record.value,
            "topic": "orders",
            "partition": 0,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestampType": header.timestamp_type,
            "headers": [{"key": name, "value": value} for name, value in record.headers] or None,
            "producerId": known(header.producer_id),
            "producerEpoch": known(header.producer_epoch),
            "leaderEpoch": known(header.partition_leader_epoch),
        }
        for at, header in iter_batches(data)
        for record in read_records(memoryview(data)[at:])
    ]


def known(number: int) -> int | None:
    """A number that is -1 where there is none."""
    return number if number >= 0 else None


# -- strategies
# -------------

#: Lengths around those at which the number that says them takes a byte more, and bytes that look like
#: records.
payloads = st.one_of(
    st.none(),
    st.binary(max_size=40),
    st.sampled_from([0, 1, 57, 63, 64, 65, 127, 128, 8_180, 8_192]).map(lambda size: b"v" * size),
    st.lists(st.sampled_from([b"\x00", b"\x00\x00", b"\x0e\x00\x00\x00\x01\x01\x00", b"\x80"])).map(b"".join),
)
names = st.text(st.characters(codec="utf-8"), max_size=8)
headers = st.one_of(
    st.just(()),
    st.just(()),
    st.lists(st.tuples(names, st.one_of(st.none(), st.binary(max_size=70))), max_size=4).map(tuple),
)
times = st.one_of(st.integers(NOW, NOW + 200), st.integers(0, 2**45))
records = st.tuples(times, payloads, payloads, headers)


@st.composite
def batch_rows(draw: st.DrawFn) -> bytes:
    """Batches as a log holds them one behind the other, with gaps as compaction leaves them."""
    batches = []
    base_offset = draw(st.integers(0, 2**40))
    for _ in range(draw(st.integers(1, 4))):
        written = draw(st.lists(records, min_size=1, max_size=12))
        gaps = draw(st.lists(st.integers(1, 90), min_size=len(written), max_size=len(written)))
        deltas = [sum(gaps[:number]) - 1 for number in range(1, len(gaps) + 1)]
        fields = BatchFields(
            base_offset=base_offset,
            leader_epoch=draw(st.integers(-1, 5)),
            codec=draw(st.sampled_from(Codec)),
            producer_id=draw(st.integers(-1, 9)),
            producer_epoch=draw(st.integers(-1, 3)),
            timestamp_type=draw(st.integers(0, 1)),
            offset_deltas=deltas,
        )
        batches.append(build_batch(written, fields))
        base_offset += deltas[-1] + 1
    return b"".join(batches)


def changed_section(data: bytes, changes: Iterable[tuple[int, int]]) -> bytes:
    """An uncompressed batch of which some bytes behind the header have other values, its checksum put
    right.
    """
    header = read_header(data)
    section = bytearray(data[HEADER_BYTES:])
    for place, value in changes:
        section[place % len(section)] = value
    return sealed(header, bytes(section))

"""Record batches: the bytes of three other producers, round trips, and what damaged or hostile bytes get."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    CRC_OFFSET,
    HEADER,
    HEADER_BYTES,
    BatchFields,
    BatchHeader,
    Codec,
    CorruptRecord,
    InvalidRecord,
    Record,
    build_batch,
    check_batch,
    increment_sequence,
    iter_batches,
    read_header,
    read_records,
)
from pykafka_broker.protocol.records.crc import crc32c

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.hex"))
START = 1_700_000_000_000

#: What the recorded producers were asked to send; kafka-python has no null header values.
HEADERS = (("trace", b"\x00\xff"), ("empty", b""), ("null", None))
SENT = [
    Record(0, START, b"key-0", b"value-0 " * 8, ()),
    Record(1, START + 10, None, b"value-1 " * 8, ()),
    Record(2, START + 20, b"key-2", None, ()),
    Record(3, START + 30, b"key-3", b"value-3 " * 8, HEADERS),
    Record(4, START + 40, b"key-4", b"value-4 " * 8, ()),
]


def golden(path: Path) -> bytes:
    return bytes.fromhex(path.read_text())


def sealed(header: BatchHeader, section: bytes, **changes: int) -> bytes:
    """A batch with the given header fields around `section`, its length and checksum put right."""
    batch = bytearray(HEADER_BYTES) + section
    HEADER.pack_into(batch, 0, *header._replace(batch_length=len(batch) - 12, **changes))
    struct.pack_into(">I", batch, CRC_OFFSET, crc32c(batch[ATTRIBUTES_OFFSET:]))
    return bytes(batch)


def some_batch(codec: Codec = Codec.NONE, **options: Any) -> bytes:
    return build_batch([record[1:] for record in SENT], BatchFields(codec=codec, **options))


# --- bytes of others --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_batches_of_other_producers_are_read(path: Path) -> None:
    client, codec = path.stem.rsplit("-", 1)
    batch = golden(path)

    header = check_batch(batch)
    records = list(read_records(batch))

    assert header.codec is Codec[codec.upper()]
    assert (header.base_timestamp, header.max_timestamp) == (START, START + 40)
    assert (header.last_offset, header.next_offset, header.records_count) == (4, 5, 5)
    assert header.has_producer_id and (header.producer_epoch, header.base_sequence) == (0, 0)
    expected = list(SENT)
    if client == "kafka-python":
        expected[3] = expected[3]._replace(headers=HEADERS[:2])
    assert records == expected


def test_every_client_and_codec_was_recorded() -> None:
    clients, codecs = ("java", "kafka-python", "librdkafka"), ("gzip", "lz4", "none", "snappy", "zstd")
    assert [path.stem for path in GOLDEN] == [f"{client}-{codec}" for client in clients for codec in codecs]


def test_an_uncompressed_batch_is_built_byte_for_byte_like_javas() -> None:
    recorded = golden(next(path for path in GOLDEN if path.stem == "java-none"))
    header = read_header(recorded)

    assert recorded == some_batch(
        leader_epoch=0,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )


# --- headers ----------------------------------------------------------------------------------------


def test_header_fields_say_what_the_batch_was_built_with() -> None:
    batch = build_batch(
        [(START + 5, b"k", b"v", ()), (START, None, None, ())],
        BatchFields(
            base_offset=1_000_000_000_000,
            leader_epoch=7,
            codec=Codec.LZ4,
            producer_id=99,
            producer_epoch=3,
            base_sequence=2**31 - 1,
            transactional=True,
            control=True,
        ),
    )

    header = read_header(b"before" + batch, 6)

    assert header == BatchHeader(
        base_offset=1_000_000_000_000,
        batch_length=len(batch) - 12,
        partition_leader_epoch=7,
        magic=2,
        crc=crc32c(batch[ATTRIBUTES_OFFSET:]),
        attributes=0b110011,
        last_offset_delta=1,
        base_timestamp=START + 5,
        max_timestamp=START + 5,
        producer_id=99,
        producer_epoch=3,
        base_sequence=2**31 - 1,
        records_count=2,
    )
    assert header.size_in_bytes == len(batch)
    assert header.last_sequence == 0  # sequences wrap
    assert header.is_transactional and header.is_control
    assert (header.timestamp_type, header.has_delete_horizon, header.delete_horizon_ms) == (0, False, None)


def test_a_batch_without_sequence_has_no_last_sequence() -> None:
    header = read_header(some_batch())
    assert (header.base_sequence, header.last_sequence, header.has_producer_id) == (-1, -1, False)


def test_sequence_numbers_go_on_with_zero_after_the_largest() -> None:
    assert [increment_sequence(2**31 - 2, n) for n in range(4)] == [2**31 - 2, 2**31 - 1, 0, 1]


def test_an_unknown_codec_is_named() -> None:
    with pytest.raises(KafkaError) as refused:
        _ = read_header(some_batch())._replace(attributes=6).codec
    assert refused.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_every_record_of_a_log_append_time_batch_has_the_batchs_time() -> None:
    batch = some_batch(timestamp_type=1, max_timestamp=START + 999)
    assert read_header(batch).timestamp_type == 1
    assert {record.timestamp for record in read_records(batch)} == {START + 999}


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    batch = some_batch(delete_horizon_ms=START - 500)
    assert read_header(batch).delete_horizon_ms == START - 500
    assert list(read_records(batch)) == SENT


def test_offsets_keep_the_gaps_that_compaction_left() -> None:
    batch = some_batch(
        base_offset=100, offset_deltas=[0, 3, 64, 9000, 2_000_000], last_offset_delta=3_000_000
    )
    assert [record.offset for record in read_records(batch)] == [100, 103, 164, 9100, 2_000_100]
    assert read_header(batch).next_offset == 3_000_101


def test_a_batch_may_be_left_without_records_but_not_without_offsets() -> None:
    batch = build_batch([], BatchFields(base_offset=40, last_offset_delta=9))
    assert list(read_records(batch)) == []
    assert read_header(batch).next_offset == 50
    with pytest.raises(ValueError, match="last_offset_delta"):
        build_batch([])


# --- several batches --------------------------------------------------------------------------------


def test_iteration_ends_before_a_torn_tail_wherever_it_is_torn() -> None:
    first, second = some_batch(), some_batch(Codec.GZIP, base_offset=5)
    both = first + second
    for end in range(len(both) + 1):
        found = [(pos, header.base_offset) for pos, header in iter_batches(memoryview(both)[:end])]
        whole = [(0, 0)] * (end >= len(first)) + [(len(first), 5)] * (end == len(both))
        assert found == whole


@pytest.mark.parametrize("changes", [{"batch_length": 48}, {"batch_length": -1}, {"magic": 1}, {"magic": -1}])
def test_iteration_does_not_walk_over_what_is_no_batch(changes: dict[str, int]) -> None:
    good = some_batch()
    bad = HEADER.pack(*read_header(good)._replace(**changes))
    batches = iter_batches(good + bad)
    assert next(batches)[0] == 0
    with pytest.raises(CorruptRecord, match=f"position {len(good)}"):
        next(batches)


def test_records_are_read_from_the_first_of_several_batches() -> None:
    assert list(read_records(some_batch() + some_batch(base_offset=5))) == SENT


# --- round trips ------------------------------------------------------------------------------------

timestamps = st.integers(-1, 2**62)
payloads = st.none() | st.binary(max_size=200) | st.binary(min_size=8000, max_size=9000)
record_headers = st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=100)), max_size=3)
record_lists = st.lists(
    st.tuples(timestamps, payloads, payloads, record_headers.map(tuple)), min_size=1, max_size=20
)


@given(records=record_lists, codec=st.sampled_from(Codec), base_offset=st.integers(0, 2**62))
def test_what_is_built_is_read_back(records: list[Any], codec: Codec, base_offset: int) -> None:
    batch = build_batch(records, BatchFields(codec=codec, base_offset=base_offset))
    assert list(read_records(batch)) == [
        Record(base_offset + delta, *record) for delta, record in enumerate(records)
    ]
    assert read_header(batch).max_timestamp == max(record[0] for record in records)


def test_header_names_that_are_not_utf8_survive() -> None:
    name = b"\xff\xfe".decode("utf-8", "surrogateescape")
    batch = build_batch([(START, None, None, ((name, b""),))])
    assert b"\x04\xff\xfe" in batch
    assert next(read_records(batch)).headers == ((name, b""),)


# --- damage and malice ------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_cut_anywhere_is_corrupt(codec: Codec) -> None:
    batch = some_batch(codec)
    for end in range(len(batch)):
        with pytest.raises(CorruptRecord):
            list(read_records(batch[:end]))


@pytest.mark.parametrize("codec", Codec)
def test_a_flipped_bit_is_noticed_wherever_the_checksum_reaches(codec: Codec) -> None:
    batch = bytearray(some_batch(codec))
    for position in range(CRC_OFFSET, len(batch)):
        for bit in range(8):
            batch[position] ^= 1 << bit
            with pytest.raises(CorruptRecord):
                check_batch(batch)
            batch[position] ^= 1 << bit


@pytest.mark.parametrize("codec", Codec)
def test_flipped_bits_behind_a_right_checksum_raise_nothing_but_kafka_errors(codec: Codec) -> None:
    batch = bytearray(some_batch(codec))
    for position in range(len(batch)):
        for bit in range(8):
            batch[position] ^= 1 << bit
            with suppress(KafkaError):
                list(read_records(batch, check_crc=False, limit_bytes=1 << 20))
            batch[position] ^= 1 << bit


@pytest.mark.parametrize("codec", Codec)
@given(section=st.binary(max_size=100), count=st.integers(-(2**31), 2**31 - 1) | st.integers(0, 9))
def test_any_bytes_as_records_raise_nothing_but_kafka_errors(
    codec: Codec, section: bytes, count: int
) -> None:
    batch = sealed(read_header(some_batch(codec)), section, records_count=count)
    with suppress(KafkaError):
        list(read_records(batch, limit_bytes=1 << 20))


@given(st.binary(max_size=200))
def test_any_bytes_as_a_batch_raise_nothing_but_kafka_errors(data: bytes) -> None:
    for read in (read_records, iter_batches):
        with suppress(KafkaError):
            list(read(data))


BODY = b"\0\0\0\x01\x01"  # attributes, deltas of 0, null key, null value


def test_a_time_beyond_64_bits_wraps_around_as_in_java() -> None:
    """Such a batch was once appended and could then not be read: a leader does not check every timestamp."""
    later = b"\x1e\0\xfe" + b"\xff" * 8 + b"\x01\0\x01\x01\0"
    batch = sealed(read_header(some_batch()), later, records_count=1)
    base_timestamp = read_header(batch).base_timestamp

    (record,) = read_records(batch)

    assert base_timestamp > 0
    assert record.timestamp == base_timestamp + 2**63 - 1 - 2**64


@pytest.mark.parametrize(
    ("section", "count", "complaint"),
    [
        (b"\x0c" + BODY + b"\0", 2, "premature EOF"),
        (b"\x0c" + BODY + b"\0", 2**31 - 1, "premature EOF"),
        (b"\x0c" + BODY + b"\0", 0, "where 0 records take 0"),
        (b"\x0c" + BODY + b"\0", -1, "where -1 records"),
        (b"\x0c" + BODY + b"\0junk", 1, "Found 11 bytes"),
        (b"\x0a" + BODY + b"\0", 1, "do not fill it"),
        (b"\x01" + BODY + b"\0", 1, "do not fill it"),
        (b"\x0e" + BODY + b"\0", 1, "do not fill it"),
        (b"\x0c\0\0\0\x7e\x01\0", 1, "premature EOF"),
        (b"\x0c\0\0\0\x01\x7e\0", 1, "premature EOF"),
        (b"\x0c" + BODY + b"\x01", 1, "record headers -1"),
        (b"\x0c" + BODY + b"\x08", 1, "record headers 4"),
        (b"\x12" + BODY + b"\x02\x01\x01\0", 1, "header key size -1"),
        (b"\xff" * 11, 1, "more than 10 bytes"),
        (b"\x1e\0\0" + b"\xff" * 9 + b"\x01\x01\x01\0", 1, "offset"),
    ],
)
def test_impossible_records_are_refused(section: bytes, count: int, complaint: str) -> None:
    batch = sealed(read_header(some_batch()), section, records_count=count)
    with pytest.raises(InvalidRecord, match=complaint):
        list(read_records(batch))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"magic": 1}, "format 1"),
        ({"batch_length": 10}, "22 bytes"),
        ({"batch_length": 2**31 - 1}, "are left"),
        ({"crc": 0}, "stored crc = 0"),
    ],
)
def test_impossible_headers_are_refused(changes: dict[str, int], complaint: str) -> None:
    batch = bytearray(some_batch())
    HEADER.pack_into(batch, 0, *read_header(batch)._replace(**changes))
    with pytest.raises(CorruptRecord, match=complaint):
        check_batch(batch)


def test_a_header_that_is_not_all_there_is_refused() -> None:
    with pytest.raises(CorruptRecord, match="60 are left"):
        read_header(bytes(60))

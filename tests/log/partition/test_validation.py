"""What a leader answers to produced batches: the codes that Apache Kafka 4.3.1 answered to such payloads."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import lz4.frame
import pytest
import snappy
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.partition.validation import (
    MAX_RECORD_ERRORS,
    MAX_RECORDS_LOOKED_AT,
    NotOneBatch,
    Prepared,
    RecordErrors,
    check_one_batch,
    prepare_client_batch,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    CRC_OFFSET,
    HEADER,
    HEADER_BYTES,
    BatchFields,
    Codec,
    Record,
    _encode_varint,
    build_batch,
    check_batch,
    read_header,
    read_records,
    record_bytes,
)
from pykafka_broker.protocol.records.compression import compress
from pykafka_broker.protocol.records.crc import crc32c

NOW = 1_700_000_000_000
HOUR = 3_600_000
DAY = 24 * HOUR

PLAIN = LogConfig()
LOG_APPEND_TIME = LogConfig(message_timestamp_type="LogAppendTime")
COMPACTED = LogConfig(cleanup_policy=frozenset({"compact", "delete"}))
RECENT = LogConfig(message_timestamp_before_max_ms=DAY)
CODECS = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}

SENT: list[tuple[int, bytes | None, bytes | None, Any]] = [
    (NOW + n, b"key", b"value " * 10, (("h", b"1"), ("h", None))) for n in range(10)
]


def batch(records: Iterable[Any] = SENT, codec: Codec = Codec.NONE, **header: int) -> bytes:
    """A client's batch, some header fields of which are changed before the checksum is made."""
    return changed(build_batch(records, BatchFields(codec=codec)), **header)


def changed(original: bytes, **header: int) -> bytes:
    payload = bytearray(original)
    HEADER.pack_into(payload, 0, *read_header(payload)._replace(**header))
    if "crc" not in header:
        struct.pack_into(">I", payload, CRC_OFFSET, crc32c(payload[ATTRIBUTES_OFFSET:]))
    return bytes(payload)


def around(section: bytes, codec: Codec) -> bytes:
    """The batch of SENT, whose records are said to be compressed and are `section`."""
    header = build_batch(SENT)[:HEADER_BYTES] + section
    return changed(header, batch_length=len(header) - 12, attributes=codec)


def at(*timestamps: int, key: bytes | None = b"key") -> list[Any]:
    return [(timestamp, key, b"value", ()) for timestamp in timestamps]


def prepare(payload: Any, config: LogConfig = PLAIN, **options: Any) -> Prepared:
    options = {"topic_partition": "t-0", "first_offset": 1000, "leader_epoch": 5, "now_ms": NOW, **options}
    return prepare_client_batch(payload, config=config, **options)


RECORDS = record_bytes(batch(), read_header(batch()))


# --- the common case --------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", Codec)
def test_offset_and_epoch_are_written_in_place_and_nothing_else_is_touched(codec: Codec) -> None:
    sent = batch(codec=codec)
    payload = memoryview(bytearray(sent))

    prepared = prepare(payload)

    assert prepared.buffer is payload
    assert bytes(payload) == changed(sent, base_offset=1000, partition_leader_epoch=5)
    assert bytes(payload[CRC_OFFSET:]) == sent[CRC_OFFSET:]
    assert prepared == Prepared(
        buffer=payload,
        header=check_batch(payload),
        first_offset=1000,
        last_offset=1009,
        max_timestamp=NOW + 9,
        offset_of_max_timestamp=1009,
        log_append_time_ms=-1,
    )


def test_a_read_only_payload_is_copied_and_left_alone() -> None:
    sent = batch()
    prepared = prepare(sent)
    assert sent == batch()
    assert bytes(prepared.buffer) == changed(sent, base_offset=1000, partition_leader_epoch=5)


def test_producer_fields_and_the_transactional_bit_are_kept() -> None:
    sent = build_batch(
        SENT, BatchFields(producer_id=9, producer_epoch=2, base_sequence=40, transactional=True)
    )
    for config in (PLAIN, LOG_APPEND_TIME, LogConfig(compression_type="zstd")):
        header = prepare(sent, config).header
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, 40)
        assert header.is_transactional
        assert header.last_sequence == 49


@pytest.mark.parametrize(
    "section",
    [
        lz4.frame.compress(RECORDS, block_linked=False, store_size=True, content_checksum=True),
        lz4.frame.compress(RECORDS, block_linked=False, block_checksum=True, store_size=False),
    ],
)
def test_lz4_with_sizes_and_checksums_is_taken(section: bytes) -> None:
    assert len(list(read_records(prepare(around(section, Codec.LZ4)).buffer))) == 10


def test_snappy_is_taken_in_both_framings() -> None:
    for section in (snappy.compress(RECORDS), compress(Codec.SNAPPY, RECORDS)):
        assert len(list(read_records(prepare(around(section, Codec.SNAPPY)).buffer))) == 10


# --- refusals ---------------------------------------------------------------------------------------

GOOD = batch()
LINKED_LZ4 = lz4.frame.compress(bytes(100_000), block_linked=True, store_size=False)

REFUSED = {
    "nothing": (b"", 87),
    "11 bytes": (GOOD[:11], 87),
    "16 bytes": (GOOD[:16], 87),
    "60 bytes": (GOOD[:60], 87),
    "all but 5 bytes": (GOOD[:-5], 87),
    "two batches": (GOOD + GOOD, 87),
    "magic 0": (changed(GOOD, magic=0), 87),
    "magic 1": (changed(GOOD, magic=1), 87),
    "magic 3": (changed(GOOD, magic=3), 2),
    "magic -1": (changed(GOOD, magic=-1), 2),
    "length -1": (changed(GOOD, batch_length=-1), 2),
    "length 0": (changed(GOOD, batch_length=0), 2),
    "length 13": (changed(GOOD, batch_length=13), 2),
    "length 14": (changed(GOOD, batch_length=14), 2),
    "length 48": (changed(GOOD, batch_length=48), 2),
    "length 40, and no more bytes": (changed(GOOD, batch_length=40)[:52], 2),
    "wrong checksum": (changed(GOOD, crc=1), 2),
    "base offset 5": (changed(GOOD, base_offset=5), 87),
    "control bit": (changed(GOOD, attributes=0x20), 87),
    "count 0": (changed(GOOD, records_count=0), 87),
    "no records at all": (build_batch([], BatchFields(last_offset_delta=0)), 87),
    "count -1": (changed(GOOD, records_count=-1), 87),
    "count 9": (changed(GOOD, records_count=9), 87),
    "last offset delta -1": (changed(GOOD, last_offset_delta=-1), 87),
    "last offset delta 99": (changed(GOOD, last_offset_delta=99), 87),
    "codec 5": (changed(GOOD, attributes=5), -1),
    "codec 7": (changed(GOOD, attributes=7), -1),
    "said to be gzip": (changed(GOOD, attributes=1), -1),
    "said to be lz4": (changed(GOOD, attributes=3), -1),
    "said to be zstd": (changed(GOOD, attributes=4), -1),
    "zstd said to be gzip": (changed(batch(codec=Codec.ZSTD), attributes=1), -1),
    "lz4 of linked blocks": (around(LINKED_LZ4, Codec.LZ4), -1),
    "lz4 of an unknown block size": (around(b"\x04\x22\x4d\x18\x60\x30" + bytes(99), Codec.LZ4), -1),
    "nothing said to be snappy": (around(b"", Codec.SNAPPY), 87),
    "more records than the bytes could hold": (
        changed(GOOD, records_count=len(GOOD) // 7, last_offset_delta=len(GOOD) // 7 - 1),
        87,
    ),
    "producer id without sequence": (changed(GOOD, producer_id=9, producer_epoch=0), 87),
}

#: What Apache Kafka 4.3.1 takes, or refuses with an error that makes producers repeat it.
REFUSED_HERE = {
    "a batch and a half": (GOOD + GOOD[:-5], 87),
    "a batch and 5 bytes": (GOOD + bytes(5), 87),
    "a batch and 30 zeros": (GOOD + bytes(30), 87),
    "producer id without epoch": (changed(GOOD, producer_id=9, base_sequence=0), 87),
    "producer id -2": (changed(GOOD, producer_id=-2), 87),
    "the least producer id": (changed(GOOD, producer_id=-(2**63), producer_epoch=0, base_sequence=0), 87),
}


@pytest.mark.parametrize("name", [*REFUSED, *REFUSED_HERE])
def test_a_batch_that_is_not_as_it_should_be_is_refused_untouched(name: str) -> None:
    sent, code = (REFUSED | REFUSED_HERE)[name]
    payload = bytearray(sent)
    with pytest.raises(KafkaError) as refused:
        prepare(payload)
    assert refused.value.code == code
    assert payload == sent


TAKEN = {
    # kafkajs and ruby-kafka send all their plain batches like this.
    "epoch and sequence without producer id": {"producer_epoch": 0, "base_sequence": 0},
    "sequence without producer id": {"base_sequence": 4},
    "delete horizon bit": {"attributes": 0x40},
    "unused bits": {"attributes": 0x7F80},
}


@pytest.mark.parametrize("name", TAKEN)
def test_oddities_that_apache_takes_are_taken_as_they_are(name: str) -> None:
    sent = changed(GOOD, **TAKEN[name])
    assert bytes(prepare(sent).buffer) == changed(sent, base_offset=1000, partition_leader_epoch=5)


def test_zstd_needs_produce_v7() -> None:
    sent = batch(codec=Codec.ZSTD)
    prepare(sent, produce_version=7)
    with pytest.raises(KafkaError) as refused:
        prepare(sent, produce_version=6)
    assert refused.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    prepare(batch(codec=Codec.GZIP), produce_version=3)


def test_zstd_is_refused_before_a_second_batch_is() -> None:
    sent = batch(codec=Codec.ZSTD)
    with pytest.raises(KafkaError) as refused:
        check_one_batch(sent + sent, 6)
    assert refused.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    with pytest.raises(NotOneBatch):
        check_one_batch(sent + sent, 7)


def test_max_message_bytes_is_the_size_of_the_largest_batch() -> None:
    prepare(GOOD, LogConfig(max_message_bytes=len(GOOD)))
    with pytest.raises(KafkaError) as refused:
        prepare(changed(GOOD, crc=1), LogConfig(max_message_bytes=len(GOOD) - 1))
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


@given(st.binary(max_size=150))
def test_any_payload_gets_nothing_but_kafka_errors(payload: bytes) -> None:
    for config in (PLAIN, COMPACTED, LogConfig(compression_type="zstd")):
        with pytest.raises(KafkaError):
            prepare(payload, config)


@pytest.mark.parametrize("codec", Codec)
def test_flipped_bits_get_nothing_but_kafka_errors(codec: Codec) -> None:
    """The checksum is made right again, so that the flip is seen by what comes after it."""
    payload = bytearray(batch(SENT[:2], codec))
    recompressed = LogConfig(compression_type="uncompressed" if codec else "gzip", max_message_bytes=1 << 20)
    for position in range(len(payload)):
        for bit in range(8):
            payload[position] ^= 1 << bit
            for config in (PLAIN, COMPACTED, recompressed):
                with suppress(KafkaError):
                    check_batch(prepare(changed(bytes(payload)), config).buffer)
            payload[position] ^= 1 << bit


# --- timestamps -------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", Codec)
def test_log_append_time_stamps_the_batch_and_keeps_its_base_timestamp(codec: Codec) -> None:
    sent = batch(codec=codec)
    prepared = prepare(bytearray(sent), LOG_APPEND_TIME, now_ms=NOW + DAY)

    assert bytes(prepared.buffer) == changed(
        sent,
        base_offset=1000,
        partition_leader_epoch=5,
        attributes=codec | 8,
        max_timestamp=NOW + DAY,
    )
    assert (prepared.max_timestamp, prepared.log_append_time_ms) == (NOW + DAY, NOW + DAY)
    assert {record.timestamp for record in read_records(prepared.buffer)} == {NOW + DAY}


def test_unused_bits_do_not_survive_a_new_checksum() -> None:
    assert prepare(batch(attributes=0x4080), LOG_APPEND_TIME).header.attributes == 8


def test_log_append_time_takes_any_create_time() -> None:
    config = LOG_APPEND_TIME._replace(message_timestamp_before_max_ms=HOUR)
    assert prepare(batch(at(NOW + DAY, NOW - DAY)), config).max_timestamp == NOW


def test_only_the_broker_may_say_log_append_time() -> None:
    with pytest.raises(RecordErrors) as refused:
        prepare(batch(at(NOW, NOW), attributes=8), LOG_APPEND_TIME)
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in refused.value.errors] == [0, 1]


def test_a_create_time_topic_takes_the_log_append_time_bit_away() -> None:
    prepared = prepare(batch(attributes=8))
    assert bytes(prepared.buffer) == changed(GOOD, base_offset=1000, partition_leader_epoch=5)


def test_timestamps_too_far_ahead_are_named_one_by_one() -> None:
    with pytest.raises(RecordErrors) as refused:
        prepare(batch(at(NOW, NOW + HOUR + 1, NOW + HOUR, NOW + DAY)))
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    earliest, latest = NOW - (2**63 - 1), NOW + HOUR
    assert refused.value.errors == tuple(
        (
            index,
            f"Timestamp {timestamp} of message with offset {index} is out of range. "
            f"The timestamp should be within [{earliest}, {latest}]",
        )
        for index, timestamp in ((1, NOW + HOUR + 1), (3, NOW + DAY))
    )


#: Records whose latest timestamp is not the last one's, and what their producers say it is.
WRONG_ABOUT_THE_LATEST = {
    "the maximum over explicit timestamps, as kafkajs has it": ([NOW - 2 * DAY, NOW], NOW - 2 * DAY),
    "the last message's, as kafka-go has it": ([NOW, NOW + 5, NOW - DAY], NOW - DAY),
    "the first one's": ([NOW, NOW + 1, NOW + 2], NOW),
    "a little less, in a table of records": ([NOW + n for n in range(300)], NOW + 298),
    "a little more, in a table of records": ([NOW + n for n in range(300)], NOW + 300),
    "an hour more": ([NOW - HOUR, NOW - 1], NOW),
    "far in the future": ([NOW, NOW], NOW + DAY),
    "no time": ([NOW, NOW + 1], -1),
    "a time where no record has one": ([-1, -1], NOW),
    "before the base": ([NOW, NOW - 5], NOW - 5),
}


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("name", WRONG_ABOUT_THE_LATEST)
def test_a_producer_that_is_wrong_about_the_latest_timestamp_is_put_right(name: str, codec: Codec) -> None:
    """Before, what it said was stored unless the topic's settings asked for the values of timestamps."""
    timestamps, said = WRONG_ABOUT_THE_LATEST[name]
    honest = batch(at(*timestamps), codec)
    payload = memoryview(bytearray(changed(honest, max_timestamp=said)))

    prepared = prepare(payload)

    assert prepared.buffer is payload
    assert bytes(payload) == changed(honest, base_offset=1000, partition_leader_epoch=5)
    assert prepared.header == check_batch(payload)
    assert prepared.max_timestamp == prepared.header.max_timestamp == max(timestamps)


def from_base(base: int, *deltas: int) -> bytes:
    """A batch of records so far from its base timestamp, with that as the latest timestamp."""
    section = b""
    for index, delta in enumerate(deltas):
        record = b"\0" + _encode_varint(delta) + _encode_varint(index) + b"\1\1\0"
        section += _encode_varint(len(record)) + record
    return changed(
        build_batch(SENT)[:HEADER_BYTES] + section,
        batch_length=HEADER_BYTES - 12 + len(section),
        base_timestamp=base,
        max_timestamp=base,
        records_count=len(deltas),
        last_offset_delta=len(deltas) - 1,
    )


@pytest.mark.parametrize("deltas", [(-5, 5, 0), (-5, -9), (-9000, -8000, -7)])
def test_a_base_that_is_not_the_first_records_is_kept(deltas: tuple[int, ...]) -> None:
    prepared = prepare(from_base(NOW, *deltas))
    assert (prepared.header.base_timestamp, prepared.max_timestamp) == (NOW, NOW + max(deltas))
    assert [r.timestamp for r in read_records(prepared.buffer)] == [NOW + delta for delta in deltas]


@pytest.mark.parametrize("codec", Codec)
def test_a_producer_cannot_hide_times_too_far_ahead(codec: Codec) -> None:
    with pytest.raises(RecordErrors) as refused:
        prepare(batch(at(NOW, NOW + DAY, NOW), codec, max_timestamp=NOW))
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in refused.value.errors] == [1]


#: A base, a distance from it, and the time that they are in 64 bits.
BEYOND_64_BITS = [
    (2**63 - 1, 0, 2**63 - 1),
    (2**63 - 1, 1, -(2**63)),
    (2**63 - 1, 2**63 - 1, -2),
    (-(2**63), -1, 2**63 - 1),
    (-1, -(2**63), 2**63 - 1),
    (-(2**63), 2**63 - 1, -1),
    (-(2**63), 5, -(2**63) + 5),
]


@pytest.mark.parametrize("base, delta, timestamp", BEYOND_64_BITS)
def test_times_beyond_64_bits_wrap_around_as_in_kafka(base: int, delta: int, timestamp: int) -> None:
    prepared = prepare(from_base(base, delta), LogConfig(message_timestamp_after_max_ms=2**63 - 1))
    assert prepared.max_timestamp == max(timestamp, -1)
    assert [r.timestamp for r in read_records(prepared.buffer)] == [timestamp]


@pytest.mark.parametrize("base, delta, timestamp", BEYOND_64_BITS)
def test_by_default_the_first_and_last_times_of_64_bits_are_refused(
    base: int, delta: int, timestamp: int
) -> None:
    if -10 < timestamp < 0:
        assert prepare(from_base(base, delta)).max_timestamp == -1
        return
    with pytest.raises(RecordErrors) as refused:
        prepare(from_base(base, delta))
    assert [index for index, _ in refused.value.errors] == [0]


def test_a_claimed_append_time_is_checked_and_forgotten() -> None:
    """Kafka goes on to believe it, though the records keep their own times."""
    prepared = prepare(batch(at(NOW, NOW - 5), attributes=8, max_timestamp=NOW - DAY))
    assert bytes(prepared.buffer) == changed(
        batch(at(NOW, NOW - 5)), base_offset=1000, partition_leader_epoch=5
    )
    with pytest.raises(RecordErrors) as refused:
        prepare(batch(at(NOW, NOW + DAY), attributes=8, max_timestamp=NOW))
    assert [index for index, _ in refused.value.errors] == [1]


def test_the_log_append_time_bit_does_not_hide_a_time_too_far_ahead() -> None:
    with pytest.raises(RecordErrors) as refused:
        prepare(batch(at(NOW, NOW), attributes=8, max_timestamp=NOW + DAY))
    assert [index for index, _ in refused.value.errors] == [0, 1]


@pytest.mark.parametrize("codec", Codec)
def test_timestamps_too_old_are_found_wherever_they_hide(codec: Codec) -> None:
    with pytest.raises(RecordErrors) as refused:
        prepare(batch(at(NOW, NOW - DAY - 1, NOW - DAY, NOW - 2 * DAY), codec), RECENT)
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in refused.value.errors] == [1, 3]


def test_records_without_a_timestamp_are_within_every_bound() -> None:
    assert prepare(batch(at(-1, -1)), RECENT).max_timestamp == -1


# --- compacted topics -------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", Codec)
def test_a_compacted_topic_names_the_records_without_a_key(codec: Codec) -> None:
    keys = (b"key", None, b"", None)
    with pytest.raises(RecordErrors) as refused:
        prepare(batch([(NOW, key, b"value", ()) for key in keys], codec), COMPACTED)
    assert refused.value.code is ErrorCode.INVALID_RECORD
    message = "Compacted topic cannot accept message without key in topic partition t-0"
    assert refused.value.errors == ((1, message), (3, message))


@pytest.mark.parametrize("codec", Codec)
def test_a_compacted_topic_takes_records_with_keys_and_tombstones_as_they_are(codec: Codec) -> None:
    payload = bytearray(batch([(NOW, b"key", None, ()), (NOW, b"", b"value", ())], codec))
    before = payload[CRC_OFFSET:]
    assert prepare(payload, COMPACTED).buffer is payload
    assert payload[CRC_OFFSET:] == before


def test_a_wrong_timestamp_outweighs_a_missing_key_in_the_code() -> None:
    records = at(NOW, key=None) + at(NOW + DAY)
    with pytest.raises(RecordErrors) as refused:
        prepare(batch(records), COMPACTED)
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in refused.value.errors] == [0, 1]


def test_one_record_has_one_error_and_the_key_comes_first() -> None:
    with pytest.raises(RecordErrors) as refused:
        prepare(batch(at(NOW + DAY, key=None)), COMPACTED)
    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert len(refused.value.errors) == 1


def test_the_list_of_bad_records_is_limited() -> None:
    with pytest.raises(RecordErrors) as refused:
        prepare(batch(at(*[NOW] * (MAX_RECORD_ERRORS + 5), key=None)), COMPACTED)
    assert [index for index, _ in refused.value.errors] == list(range(MAX_RECORD_ERRORS))


# --- compression.type -------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", CODECS)
@pytest.mark.parametrize("codec", Codec)
def test_a_batch_is_stored_with_the_topics_codec(codec: Codec, topic: str) -> None:
    sent = batch(codec=codec)
    prepared = prepare(bytearray(sent), LogConfig(compression_type=topic))

    assert prepared.header == check_batch(prepared.buffer)
    assert prepared.header.codec is CODECS[topic]
    assert list(read_records(prepared.buffer)) == [Record(1000 + n, *record) for n, record in enumerate(SENT)]
    assert (prepared.first_offset, prepared.last_offset, prepared.max_timestamp) == (1000, 1009, NOW + 9)
    if codec is CODECS[topic]:
        assert bytes(prepared.buffer)[CRC_OFFSET:] == sent[CRC_OFFSET:]


def test_the_topics_level_is_used() -> None:
    records = [(NOW, b"%d" % (n * n * 7919), b"value %d" % (n * n), ()) for n in range(2000)]
    sizes = {
        level: len(
            prepare(batch(records), LogConfig(compression_type="zstd", compression_zstd_level=level)).buffer
        )
        for level in (1, 19)
    }
    assert sizes[19] < sizes[1]
    for codec in ("gzip", "lz4"):
        config = LogConfig(compression_type=codec, compression_gzip_level=1, compression_lz4_level=17)
        assert len(list(read_records(prepare(batch(records), config).buffer))) == 2000


def test_a_recompressed_batch_has_log_append_time_too() -> None:
    config = LogConfig(compression_type="zstd", message_timestamp_type="LogAppendTime")
    prepared = prepare(batch(attributes=0x4040), config)
    assert check_batch(prepared.buffer).attributes == Codec.ZSTD | 8
    assert prepared.header.base_timestamp == NOW
    assert (prepared.max_timestamp, prepared.log_append_time_ms) == (NOW, NOW)


def test_a_batch_must_fit_after_recompression_too() -> None:
    config = LogConfig(compression_type="uncompressed", max_message_bytes=500)
    sent = batch(codec=Codec.ZSTD)
    assert len(sent) < 500 < len(GOOD)
    with pytest.raises(KafkaError) as refused:
        prepare(sent, config)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


# --- the structure of the records -------------------------------------------------------------------

each_topic = pytest.mark.parametrize(
    "config", [PLAIN, LOG_APPEND_TIME, COMPACTED], ids=["plain", "log append time", "compacted"]
)
each_codec = pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)


@each_topic
@each_codec
@pytest.mark.parametrize("deltas", [[0, 0, 0], [2, 1, 0], [0, 2, 1], [1, 2, 3]])
def test_offset_deltas_must_count_up_from_zero(deltas: list[int], codec: Codec, config: LogConfig) -> None:
    """Apache Kafka appends such uncompressed batches as they are: a consumer sees offsets twice or never."""
    sent = build_batch(at(NOW, NOW, NOW), BatchFields(codec=codec, offset_deltas=deltas, last_offset_delta=2))
    with pytest.raises(KafkaError) as refused:
        prepare(sent, config)
    assert refused.value.code is ErrorCode.INVALID_RECORD


@each_topic
@each_codec
@pytest.mark.parametrize("count", [9, 11])
def test_the_count_must_be_that_of_the_records(count: int, codec: Codec, config: LogConfig) -> None:
    with pytest.raises(KafkaError) as refused:
        prepare(batch(codec=codec, records_count=count, last_offset_delta=count - 1), config)
    assert refused.value.code is ErrorCode.INVALID_RECORD


@each_topic
@each_codec
@pytest.mark.parametrize("section", [bytes(60), b"\x7f" * 60, RECORDS[1:], RECORDS[:-1], RECORDS + b"\0"])
def test_records_that_are_none_are_refused(section: bytes, codec: Codec, config: LogConfig) -> None:
    """They were appended, and every consumer stopped at them."""
    count = {"records_count": 5, "last_offset_delta": 4} if len(section) == 60 else {}
    sent = changed(around(compress(codec, section), codec), **count)
    with pytest.raises(KafkaError) as refused:
        prepare(sent, config)
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_a_number_without_an_end_is_an_error_as_in_kafka() -> None:
    with pytest.raises(KafkaError) as refused:
        prepare(around(b"\x80" * 100, Codec.NONE), COMPACTED)
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_claimed_append_time_names_the_record() -> None:
    with pytest.raises(RecordErrors) as refused:
        prepare(batch(at(NOW, key=None), attributes=8), LogConfig(message_timestamp_type="LogAppendTime"))
    [(_, message)] = refused.value.errors
    assert message == (
        f"Invalid timestamp type in message DefaultRecord(offset=0, timestamp={NOW}, key=0 bytes, "
        "value=5 bytes). Producer should not set timestamp type to LogAppendTime."
    )


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_damaged_compressed_data_is_an_error_on_which_producers_do_not_retry(codec: Codec) -> None:
    with pytest.raises(KafkaError) as refused:
        prepare(around(compress(codec, RECORDS)[:-20], codec))
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_batch_that_decompresses_beyond_the_budget_is_too_large() -> None:
    sent = batch(at(NOW) * 1000, Codec.ZSTD)
    size = len(record_bytes(sent, read_header(sent)))
    prepare(sent, limit_bytes=size)
    with pytest.raises(KafkaError) as refused:
        prepare(sent, limit_bytes=size - 1)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_more_records_than_can_be_looked_at_are_too_many() -> None:
    count = MAX_RECORDS_LOOKED_AT + 1
    sent = batch(at(NOW, key=bytes(range(256))), Codec.ZSTD, records_count=count, last_offset_delta=count - 1)
    with pytest.raises(KafkaError) as refused:
        prepare(sent)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE

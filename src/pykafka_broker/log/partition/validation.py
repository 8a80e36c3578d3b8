"""The leader's work on a produced batch before writing it: check it, assign offsets, rewrite it if needed.

A pure function on the payload of one partition in a Produce request (v3 and later: exactly one batch of
format v2). Error codes are those that Apache Kafka 4.3.1 answers. On purpose this broker refuses some batches
that Apache Kafka accepts: those followed by bytes that are no whole batch, with a producer id below -1 or
without an epoch, with offset deltas that do not count up from 0, of more than a million records, or of more
than 100 MB when decompressed.

In the common case (CreateTime, `compression.type=producer`, a topic that is not compacted) the header, the
checksum and the structure of every record are checked (`protocol/records/checking.py`), and base offset and
leader epoch are written into the payload, outside the bytes that the checksum covers. Of 1 MiB the checksum
takes 40 us and the records, with the copy they need, 0.15 ms (100 bytes each, all of one size), 2.6 ms (of
all sizes), 0.06 ms (1 KB, one size) or 0.3 ms. Compressed batches are decompressed first, within a budget.

maxTimestamp is worked out from the records, because retention, look-ups by time and the bound on the future
depend on it, and producers get it wrong: kafkajs sends the largest of the timestamps it was given, kafka-go
that of the last message. Where it is wrong, header and checksum are made anew. Other fields are taken from
the producer as they are, as in Apache Kafka, because only its own records depend on them: baseTimestamp, also
as a delete horizon; sequence and epoch beside producer id -1, which kafkajs sends as 0; the bits of the
attributes that mean nothing.

Each record's timestamp and key are checked (0.6 us a record) only if the topic is compacted or bounds the age
of timestamps, if the latest timestamp is beyond the upper bound, or if the producer claims to know the time
of the append.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NoReturn

from pykafka_broker.log.config import LONG_MAX, LogConfig
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    BATCH_LENGTH_OFFSET,
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_OFFSET,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    SMALLEST_BATCH_LENGTH,
    SMALLEST_RECORD_BYTES,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    RecordSpan,
    as_int64,
    record_bytes,
    restamp,
    walk_records,
)
from pykafka_broker.protocol.records.checking import LARGEST_DELTA, MOST_DELTA, check_records
from pykafka_broker.protocol.records.compression import DEFAULT_LIMIT_BYTES, Codec, compress
from pykafka_broker.protocol.records.crc import crc32c
from pykafka_broker.protocol.records.errors import (
    CorruptRecord,
    InvalidOffsets,
    InvalidRecord,
    OverlongVarint,
    WrongChecksum,
)
from pykafka_broker.system.named_tuple import NamedTuple

#: zstd came with Produce v7 (KIP-110).
FIRST_ZSTD_PRODUCE_VERSION = 7
LATEST_PRODUCE_VERSION = 13

#: One answer names at most this many bad records; a batch can hold millions.
MAX_RECORD_ERRORS = 1000

#: The most records of a batch: checking them takes most of a second, and a few KiB could hold 15 million.
MAX_RECORDS_LOOKED_AT = 1_000_000

#: The most bytes that one compressed byte can stand for, by codec number.
LARGEST_RATIOS = (1, 1032, 22, 255, 32768)

#: The least number of bytes after the batch length in any format, v0 included.
SMALLEST_LENGTH_OF_ANY_FORMAT = 14

#: Values of the topic configuration compression.type, but for "producer".
CODECS = {
    "uncompressed": Codec.NONE,
    "none": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}

KNOWN_ATTRIBUTES = CODEC_MASK | TIMESTAMP_TYPE_BIT | TRANSACTIONAL_BIT | CONTROL_BIT | DELETE_HORIZON_BIT

#: Later than any topic accepts.
BEYOND_64_BITS = 1 << 64

_FIRST_FIELDS = Struct(">qii")
_INT32 = Struct(">i")


class RecordErrors(KafkaError):
    """A batch was refused for some of its records: `errors` has their index in the batch and a message.

    `keyless` of them have no key though the topic is compacted.
    """

    def __init__(
        self, code: ErrorCode, message: str, errors: tuple[tuple[int, str], ...], keyless: int
    ) -> None:
        super().__init__(code, message)
        self.errors = errors
        self.keyless = keyless


class NotOneBatch(KafkaError):
    """The payload is not one whole batch of format v2; Kafka checks this before it looks at the partition."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INVALID_RECORD) -> None:
        super().__init__(code, message)


class Prepared(NamedTuple):
    """A batch ready to be written."""

    buffer: Buffer
    header: BatchHeader
    first_offset: int
    last_offset: int
    max_timestamp: int
    #: Kafka keeps this per batch, so it is the last offset.
    offset_of_max_timestamp: int
    #: -1 on a CreateTime topic.
    log_append_time_ms: int


def prepare_client_batch(
    payload: Buffer,
    *,
    topic_partition: str,
    first_offset: int,
    leader_epoch: int,
    now_ms: int,
    config: LogConfig,
    produce_version: int = LATEST_PRODUCE_VERSION,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
) -> Prepared:
    """The batch of a Produce request, checked and with its offsets; a writable payload is changed in place.

    Errors name `topic_partition`. `limit_bytes` bounds the size of a compressed batch when it is
    decompressed.
    """
    header = check_one_batch(payload, produce_version)
    _check_header(payload, header, config)

    attributes = header.attributes
    count = header.records_count
    codec = attributes & CODEC_MASK
    if codec:
        _check_codec(payload, codec)
    append_time = config.message_timestamp_type == "LogAppendTime"
    target = codec if config.compression_type == "producer" else CODECS[config.compression_type]

    if count > MAX_RECORDS_LOOKED_AT:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The batch has {count} records, the topic takes {MAX_RECORDS_LOOKED_AT} at most",
        )
    data, start = (
        (_decompressed(payload, header, limit_bytes), 0) if codec else (bytes(payload), HEADER_BYTES)
    )
    looks_at_each = _records_matter(header, config, append_time)
    if not looks_at_each:
        max_timestamp = _max_timestamp(header, data, start)
        looks_at_each = not append_time and max_timestamp > now_ms + config.message_timestamp_after_max_ms
    if looks_at_each:
        max_timestamp = _check_records(topic_partition, header, data[start:], config, now_ms, append_time)
    if append_time:
        max_timestamp = now_ms

    if target != codec:
        compressed = compress(Codec(target), data[start:], _level(config, target))
        # As in Kafka, a rebuilt batch loses the client's delete horizon bit.
        attributes = attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT) | target
        payload = bytearray(payload[:HEADER_BYTES])
        payload += compressed
        if len(payload) > config.max_message_bytes:
            raise _too_large(len(payload), config)
    elif memoryview(payload).readonly:
        payload = bytearray(payload)

    timestamp_type = TIMESTAMP_TYPE_BIT if append_time else 0
    if (
        target != codec
        or max_timestamp != header.max_timestamp
        or attributes & TIMESTAMP_TYPE_BIT != timestamp_type
    ):
        attributes = attributes & KNOWN_ATTRIBUTES & ~TIMESTAMP_TYPE_BIT | timestamp_type
        restamp(payload, attributes, max_timestamp)

    _FIRST_FIELDS.pack_into(payload, 0, first_offset, len(payload) - LOG_OVERHEAD_BYTES, leader_epoch)
    last_offset = first_offset + count - 1
    return Prepared(
        payload,
        tuple.__new__(BatchHeader, HEADER.unpack_from(payload)),
        first_offset,
        last_offset,
        max_timestamp,
        last_offset,
        now_ms if append_time else NO_TIMESTAMP,
    )


# --- the batch and its header -----------------------------------------------------------------------


def check_one_batch(payload: Buffer, produce_version: int) -> BatchHeader:
    """The header of the one batch of format v2 that must fill the payload.

    Raises:
        NotOneBatch: it is none, or more than one.
        CorruptRecord: no batch of any format starts like this.
        KafkaError: UNSUPPORTED_COMPRESSION_TYPE for zstd in a version that does not know it.
    """
    if len(payload) < HEADER_BYTES:
        _refuse_payload(payload)
    header = tuple.__new__(BatchHeader, HEADER.unpack_from(payload))
    size = header.batch_length + LOG_OVERHEAD_BYTES
    if header.magic != MAGIC or not HEADER_BYTES <= size <= len(payload):
        _refuse_payload(payload)
    if produce_version < FIRST_ZSTD_PRODUCE_VERSION and header.attributes & CODEC_MASK >= Codec.ZSTD:
        if header.attributes & CODEC_MASK == Codec.ZSTD:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"Produce requests with version {produce_version} may not use ZStandard compression",
            )
        raise NotOneBatch(
            f"Unknown compression type id: {header.attributes & CODEC_MASK}", ErrorCode.UNKNOWN_SERVER_ERROR
        )
    if size != len(payload):
        _refuse_payload(payload)
    return header


def check_framing(payload: Buffer) -> None:
    """Look at the first bytes of a payload as Kafka does before it knows anything else about it.

    Raises:
        CorruptRecord: no batch of any format starts like this.
    """
    size = len(payload)
    if size < LOG_OVERHEAD_BYTES:
        return
    (length,) = _INT32.unpack_from(payload, BATCH_LENGTH_OFFSET)
    if length < SMALLEST_LENGTH_OF_ANY_FORMAT:
        raise CorruptRecord(
            f"Record size {length} is less than the minimum record overhead ({SMALLEST_LENGTH_OF_ANY_FORMAT})"
        )
    if size > MAGIC_OFFSET and (magic := payload[MAGIC_OFFSET]) > MAGIC:
        raise CorruptRecord(f"Invalid magic found in record: {magic - 256 if magic > 127 else magic}")


def _refuse_payload(payload: Buffer) -> NoReturn:
    """Raise the error for a payload that is not one whole batch of format v2."""
    check_framing(payload)
    size = len(payload)
    if size < LOG_OVERHEAD_BYTES:
        raise NotOneBatch("Produce requests must have at least one record batch per partition")
    (length,) = _INT32.unpack_from(payload, BATCH_LENGTH_OFFSET)
    if size <= MAGIC_OFFSET or size < length + LOG_OVERHEAD_BYTES:
        raise NotOneBatch("Produce requests must have at least one whole record batch per partition")
    if payload[MAGIC_OFFSET] != MAGIC:
        raise NotOneBatch("Produce requests may only contain record batches with magic version 2")
    if length < SMALLEST_BATCH_LENGTH:
        raise CorruptRecord(
            f"Record batch is corrupt (the size {length + LOG_OVERHEAD_BYTES} is smaller than the minimum "
            f"allowed overhead {HEADER_BYTES})"
        )
    raise NotOneBatch("Produce requests may only contain exactly one record batch per partition")


def _check_header(payload: Buffer, header: BatchHeader, config: LogConfig) -> None:
    """All that the header alone decides, and the checksum; in Kafka's order."""
    if header.base_offset != 0:
        raise InvalidRecord(
            f"The baseOffset of the record batch in the append should be 0, but it is {header.base_offset}"
        )
    if len(payload) > config.max_message_bytes:
        raise _too_large(len(payload), config)
    if crc32c(memoryview(payload)[ATTRIBUTES_OFFSET:]) != header.crc:
        raise WrongChecksum(f"Record is corrupt (stored crc = {header.crc})")
    attributes = header.attributes
    if attributes & CODEC_MASK > Codec.ZSTD:
        raise _undecodable(f"Unknown compression type id: {attributes & CODEC_MASK}")
    count = header.records_count
    if count <= 0:
        raise InvalidOffsets(f"Invalid reported count for record batch: {count}")
    section_bytes = len(payload) - HEADER_BYTES
    if count * SMALLEST_RECORD_BYTES > section_bytes * LARGEST_RATIOS[attributes & CODEC_MASK]:
        raise InvalidRecord(f"Record count {count} is more than {section_bytes} bytes could hold")
    if header.last_offset_delta != count - 1:
        raise InvalidOffsets(
            f"Inconsistent batch offset range [0, {header.last_offset_delta}] and count of records {count}"
        )
    if attributes & CONTROL_BIT:
        raise InvalidOffsets("Clients are not allowed to write control records")
    if header.producer_id < NO_PRODUCER_ID:
        raise InvalidRecord(f"Invalid producerId {header.producer_id} in record batch")
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch <= NO_PRODUCER_EPOCH):
        raise InvalidOffsets(
            f"Invalid sequence number {header.base_sequence} or epoch {header.producer_epoch} "
            f"in record batch with producerId {header.producer_id}"
        )


def _check_codec(payload: Buffer, codec: int) -> None:
    """Check that the compressed data begins as data of its codec does.

    Java clients do not read lz4 with linked blocks: such a batch would stop them at its offset.
    """
    start = bytes(payload[HEADER_BYTES : HEADER_BYTES + 6])
    if codec == Codec.GZIP:
        honest = start[:3] == b"\x1f\x8b\x08"
    elif codec == Codec.LZ4:
        # Version 1, independent blocks, no dictionary, a valid block size, no reserved bits.
        honest = (
            start[:4] == b"\x04\x22\x4d\x18"
            and len(start) == 6
            and start[4] & 0b1110_0011 == 0b0110_0000
            and start[5] & 0b1100_1111 == 0b0100_0000
        )
    elif codec == Codec.ZSTD:
        honest = start[:4] == b"\x28\xb5\x2f\xfd"
    else:
        honest = start != b""
    if not honest:
        raise _undecodable(
            f"The records are not compressed with {Codec(codec).name.lower()} as Kafka uses it"
        )


def _undecodable(message: str) -> KafkaError:
    """Kafka's error when decompression fails, on which producers do not retry."""
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message)


def _too_large(size_bytes: int, config: LogConfig) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch size in the append is {size_bytes} bytes which exceeds the maximum configured "
        f"value of {config.max_message_bytes}.",
    )


# --- the records ------------------------------------------------------------------------------------


def _records_matter(header: BatchHeader, config: LogConfig, append_time: bool) -> bool:
    """Whether each record must be checked: for the topic's configuration, or because the producer claims to
    know the time of the append.
    """
    return (
        "compact" in config.cleanup_policy
        or header.attributes & TIMESTAMP_TYPE_BIT != 0
        or (not append_time and config.message_timestamp_before_max_ms != LONG_MAX)
    )


def _decompressed(payload: Buffer, header: BatchHeader, limit_bytes: int) -> bytes:
    try:
        return record_bytes(payload, header, limit_bytes)
    except CorruptRecord as error:
        raise _undecodable(f"Failed to decompress record stream: {error.message}") from None


def _check_records(
    topic_partition: str,
    header: BatchHeader,
    section: bytes,
    config: LogConfig,
    now_ms: int,
    append_time: bool,
) -> int:
    """Walk the records and refuse the batch for any that the topic does not take; return the latest
    timestamp.

    If the producer claims to know the time of the append, Kafka checks that time instead of the records' own,
    clears the claim and keeps that time. Here both are checked, and the records keep their own.
    """
    compacted = config.is_compacted
    base_timestamp = header.base_timestamp
    sent_append_time = header.attributes & TIMESTAMP_TYPE_BIT != 0
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = min(now_ms + config.message_timestamp_after_max_ms, LONG_MAX)
    max_timestamp = NO_TIMESTAMP
    errors: list[tuple[int, str]] = []
    keyless = 0
    bad_timestamps = False
    for index, span in enumerate(_walked(section, header.records_count)):
        offset_delta, timestamp_delta, key_at, key_end, value_at, value_end, _ = span
        if offset_delta != index:
            raise InvalidRecord(f"Record {index} of the batch has the offset delta {offset_delta}")
        timestamp = as_int64(base_timestamp + timestamp_delta)
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        if sent_append_time and (append_time or timestamp <= latest):
            timestamp = header.max_timestamp
        if compacted and key_end < 0:
            keyless += 1
            errors.append(
                (
                    index,
                    f"Compacted topic cannot accept message without key in topic partition {topic_partition}",
                )
            )
        elif not append_time and timestamp != NO_TIMESTAMP:
            if not earliest <= timestamp <= latest and _is_out_of_range(timestamp, config, now_ms):
                bad_timestamps = True
                errors.append(
                    (
                        index,
                        f"Timestamp {timestamp} of message with offset {index} is out of range. "
                        f"The timestamp should be within [{earliest}, "
                        f"{as_int64(now_ms + config.message_timestamp_after_max_ms)}]",
                    )
                )
        elif sent_append_time:
            bad_timestamps = True
            errors.append(
                (
                    index,
                    f"Invalid timestamp type in message DefaultRecord(offset={index}, timestamp={timestamp}, "
                    f"key={max(key_end - key_at, 0)} bytes, value={max(value_end - value_at, 0)} bytes). "
                    "Producer should not set timestamp type to LogAppendTime.",
                )
            )
        if len(errors) >= MAX_RECORD_ERRORS:
            break
    if bad_timestamps:
        raise RecordErrors(
            ErrorCode.INVALID_TIMESTAMP,
            "One or more records have been rejected due to invalid timestamp",
            tuple(errors),
            keyless,
        )
    if errors:
        first = ", ".join(f"RecordError(batchIndex={index}, message='{text}')" for index, text in errors[:3])
        raise RecordErrors(
            ErrorCode.INVALID_RECORD,
            f"One or more records have been rejected due to {len(errors)} record errors in total, and only "
            f"showing the first three errors at most: [{first}]",
            tuple(errors),
            keyless,
        )
    return max_timestamp


def _is_out_of_range(timestamp: int, config: LogConfig, now_ms: int) -> bool:
    """In 64-bit arithmetic, so that no timestamp is out of range if the topic takes any time."""
    age_ms = as_int64(now_ms - timestamp)
    return (
        age_ms > config.message_timestamp_before_max_ms
        or as_int64(-age_ms) > config.message_timestamp_after_max_ms
    )


def _max_timestamp(header: BatchHeader, data: bytes, start: int) -> int:
    """Check the structure of the records; return the latest timestamp, beyond 64 bits if any may be."""
    base = header.base_timestamp
    try:
        largest = check_records(data, header.records_count, start, header.max_timestamp - base)
    except OverlongVarint as error:
        raise _undecodable(error.message) from None
    max_timestamp = base + largest
    if largest == LARGEST_DELTA or base < -MOST_DELTA or max_timestamp > LONG_MAX:
        return BEYOND_64_BITS
    return max_timestamp if max_timestamp > NO_TIMESTAMP else NO_TIMESTAMP


def _walked(section: bytes, count: int) -> Iterator[RecordSpan]:
    try:
        yield from walk_records(section, count)
    except OverlongVarint as error:
        raise _undecodable(error.message) from None


def _level(config: LogConfig, codec: int) -> int | None:
    if codec == Codec.GZIP:
        return config.compression_gzip_level
    if codec == Codec.LZ4:
        return config.compression_lz4_level
    if codec == Codec.ZSTD:
        return config.compression_zstd_level
    return None

"""Record batches as they are fetched or stored in a file, and their unpacking. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.arrow.core.decoding import Section, invalid_batch
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.records.aborted_transactions import AbortedTransactions
from pykafka_broker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_BYTES,
    BatchHeader,
)
from pykafka_broker.protocol.records.compression import decompress
from pykafka_broker.protocol.records.crc import crc32c
from pykafka_broker.protocol.records.errors import CorruptRecord
from pykafka_broker.system.named_tuple import NamedTuple

#: Greater than every offset.
NO_END = 2**63 - 1


class OffsetRange(NamedTuple):
    """The offsets from `start` up to, and without, `end`."""

    start: int
    end: int


class StoredBatch(NamedTuple):
    """A batch of which some offsets, [first, end), are wanted."""

    partition: int
    header: BatchHeader
    #: The whole batch.
    data: memoryview
    first_offset: int
    end_offset: int

    @property
    def is_marker(self) -> bool:
        """Whether it ends a transaction, and has no records of users."""
        return self.header.attributes & CONTROL_BIT != 0


class Taken(NamedTuple):
    """Batches with wanted offsets, and which offset comes next."""

    batches: list[StoredBatch]
    next_offset: int


def take(
    topic: str,
    partition: int,
    batches: Iterable[tuple[BatchHeader, memoryview]],
    wanted: OffsetRange,
    aborted: AbortedTransactions | None,
) -> Taken:
    """The batches with wanted offsets among a partition's next ones, also markers. For a reader of committed
    records, those of `aborted` transactions are left out.

    Raises:
        KafkaError: CORRUPT_MESSAGE, there is no batch where one should be, or a marker is damaged. The
            message says in which partition and at which offset.
    """
    position, end = wanted
    found: list[StoredBatch] = []
    has_begun = False
    try:
        for header, data in batches:
            base_offset = header.base_offset
            next_offset = base_offset + header.last_offset_delta + 1
            if not 0 <= base_offset < next_offset:
                raise CorruptRecord(f"A batch goes from offset {base_offset} up to {next_offset}")
            if has_begun and base_offset < position:
                raise CorruptRecord(f"The offset {base_offset} follows the offset {position - 1}")
            if base_offset >= end:
                return Taken(found, end)
            is_hidden = aborted is not None and aborted.hides(header, data)
            if next_offset <= position:
                continue
            if not is_hidden or header.attributes & CONTROL_BIT:
                found.append(StoredBatch(partition, header, data, position, end))
            position, has_begun = next_offset, True
    except KafkaError as error:
        raise KafkaError(error.code, invalid_batch(topic, partition, position, error.message)) from None
    return Taken(found, min(position, end))


def unpack(batch: StoredBatch, topic: str, limit_bytes: int) -> Section:
    """The records of a batch of this topic: the checksum is right, and they are decompressed.

    Raises:
        KafkaError: CORRUPT_MESSAGE, the bytes are damaged; MESSAGE_TOO_LARGE, they are more than
            `limit_bytes`; UNSUPPORTED_COMPRESSION_TYPE. The message says in which partition and batch.
    """
    partition, header, data, first_offset, end_offset = batch
    records: Buffer = data[HEADER_BYTES:]
    try:
        crc = crc32c(data[ATTRIBUTES_OFFSET:])
        if crc != header.crc:
            raise CorruptRecord(f"Record is corrupt (stored crc = {header.crc}, computed crc = {crc})")
        if header.attributes & CODEC_MASK:
            records = decompress(header.codec, records, limit_bytes)
    except KafkaError as error:
        text = invalid_batch(topic, partition, header.base_offset, error.message)
        raise KafkaError(error.code, text) from None
    return Section(partition, header, records, first_offset, end_offset)

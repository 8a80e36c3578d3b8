"""The errors of bytes that are no valid record batch, to answer a client with."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode, KafkaError


class CorruptRecord(KafkaError):
    """The bytes are damaged: sizes, magic, checksum or compressed data are wrong."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)


class WrongChecksum(CorruptRecord):
    """The checksum does not fit the bytes."""


class InvalidRecord(KafkaError):
    """The bytes are undamaged, but they are no valid record batch."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, message)


class OverlongVarint(InvalidRecord):
    """A varint is too long: Kafka's broker treats that as an error of its own."""


class InvalidOffsets(InvalidRecord):
    """The header's offsets, sequence and count do not fit each other, or a client may not send them."""

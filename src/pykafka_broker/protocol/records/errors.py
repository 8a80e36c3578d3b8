"""The two ways in which bytes fail to be a record batch, as errors a client can be answered with."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode, KafkaError


class CorruptRecord(KafkaError):
    """The bytes are damaged: sizes, magic, checksum or compressed data do not hold together."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)


class InvalidRecord(KafkaError):
    """The bytes arrived as they were sent, but they are not a valid record batch."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, message)


class OverlongVarint(InvalidRecord):
    """A number of variable length does not end: Kafka's broker takes that for a mistake of its own."""

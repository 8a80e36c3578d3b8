"""The limits of a reader: of its memory, of its waiting, and of the RecordBatches it makes."""

from __future__ import annotations

from dataclasses import dataclass

from pykafka_broker.protocol.records.compression import DEFAULT_LIMIT_BYTES


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one reader. It holds one answer of each broker (`fetch_bytes`), one more that is under way,
    and about three times `batch_bytes`, or three times one record batch of the topic if that is larger.
    """

    #: The most rows of a RecordBatch.
    batch_rows: int = 65_536
    #: The most bytes of records of a RecordBatch, as stored and decompressed; a larger record has one to
    #: itself.
    batch_bytes: int = 4 * 1024 * 1024
    #: The most bytes to ask a broker for, or to read from a file, at once. A larger batch comes alone.
    fetch_bytes: int = 8 * 1024 * 1024
    #: A batch that decompresses to more is refused.
    decompressed_bytes: int = DEFAULT_LIMIT_BYTES
    #: How long a broker may be away, or a partition bring nothing before its end, without an error.
    timeout_s: float = 30.0
    #: How long one fetch of a reader that follows waits for new records.
    wait_ms: int = 500

    def __post_init__(self) -> None:
        for name in (
            "batch_rows",
            "batch_bytes",
            "fetch_bytes",
            "decompressed_bytes",
            "timeout_s",
            "wait_ms",
        ):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be above 0")

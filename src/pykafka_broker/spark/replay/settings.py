"""The settings of a replay: batches, transactions, rates. Pure."""

from __future__ import annotations

from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.system.named_tuple import NamedTuple


class Settings(NamedTuple):
    """Batches, transactions and rates; the defaults suit a broker's defaults."""

    codec: Codec = Codec.NONE
    #: The size of a batch before compression; it is smaller for a topic with a smaller `max.message.bytes`.
    batch_bytes: int = 768 * 1024
    #: The limits of a transaction, which a task keeps in memory.
    transaction_bytes: int = 16 * 1024 * 1024
    transaction_records: int = 200_000
    #: The age at which the coordinator aborts a transaction, which is open only while its records travel.
    transaction_timeout_ms: int = 60_000
    #: The time for which a request is tried again while brokers are away.
    delivery_timeout_s: float = 120.0
    #: Over all partitions together; None: as fast as it goes.
    records_per_s: float | None = None
    bytes_per_s: float | None = None


DEFAULTS = Settings()


def shared_by(settings: Settings, writers: int) -> Settings:
    """The settings of each of `writers` tasks, which keep to the rates together.

    A transaction holds at most the records of one second, so that they arrive evenly.
    """
    records = None if settings.records_per_s is None else settings.records_per_s / writers
    size = None if settings.bytes_per_s is None else settings.bytes_per_s / writers
    return settings._replace(
        records_per_s=records,
        bytes_per_s=size,
        transaction_records=_at_most(settings.transaction_records, records),
        transaction_bytes=_at_most(settings.transaction_bytes, size),
    )


def _at_most(most: int, rate: float | None) -> int:
    return most if rate is None else max(1, min(most, int(rate)))

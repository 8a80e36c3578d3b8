"""The records of the transaction coordinator in `__transaction_state`: one per transactional id.

Keys start with the record type (`api_key`, int16), values with their version (int16). TransactionLogValue v1
is flexible and carries what transaction.version 2 needs: the producer ids before and after, and the client's
version.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i8, i16, i32, i64, message, string


@message(api_key=0, versions="0")
class TransactionLogKey:
    transactional_id: str = string()


@message()
class PartitionsSchema:
    topic: str = string()
    partition_ids: list[int] = array(i32())


@message(api_key=0, versions="0-1", flexible="1+")
class TransactionLogValue:
    producer_id: int = i64()
    previous_producer_id: int = i64("1+", tag=0, default=-1)
    next_producer_id: int = i64("1+", tag=1, default=-1)
    producer_epoch: int = i16()
    next_producer_epoch: int = i16("1+", tag=3, default=-1)
    transaction_timeout_ms: int = i32()
    transaction_status: int = i8()
    #: None when the transaction has none.
    transaction_partitions: list[PartitionsSchema] | None = array(PartitionsSchema, nullable=True)
    transaction_last_update_timestamp_ms: int = i64()
    transaction_start_timestamp_ms: int = i64()
    client_transaction_version: int = i16("1+", tag=2, default=0)

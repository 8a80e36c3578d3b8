"""EndTxn (API key 26): commit or abort a transaction.

v2 may answer PRODUCER_FENCED, v3 flexible, v4 may answer TRANSACTION_ABORTABLE, v5 bumps the producer's epoch
each time and returns it (transaction.version 2).
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import boolean, i16, i32, i64, message, string


@message(api_key=26, versions="0-5", flexible="3+", listeners="broker")
class EndTxnRequest:
    transactional_id: str = string(entity="transactional_id")
    producer_id: int = i64(entity="producer_id")
    producer_epoch: int = i16()
    committed: bool = boolean()


@message(api_key=26, versions="0-5", flexible="3+")
class EndTxnResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    producer_id: int = i64("5+", default=-1, entity="producer_id")
    producer_epoch: int = i16("5+", default=-1)

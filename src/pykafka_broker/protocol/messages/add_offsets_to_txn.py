"""AddOffsetsToTxn (API key 25): make a group's offsets part of a transaction.

v2 may answer PRODUCER_FENCED, v3 flexible, v4 may answer TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import i16, i32, i64, message, string


@message(api_key=25, versions="0-4", flexible="3+", listeners="broker")
class AddOffsetsToTxnRequest:
    transactional_id: str = string(entity="transactional_id")
    producer_id: int = i64(entity="producer_id")
    producer_epoch: int = i16()
    group_id: str = string(entity="group_id")


@message(api_key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()

"""InitProducerId (API key 22)."""

from __future__ import annotations

from pykafka_broker.protocol.schema import boolean, i16, i32, i64, message, string


@message(api_key=22, versions="0-6", flexible="2+")
class InitProducerIdRequest:
    transactional_id: str | None = string(nullable=True)
    transaction_timeout_ms: int = i32()
    producer_id: int = i64("3+", default=-1)
    producer_epoch: int = i16("3+", default=-1)
    enable2_pc: bool = boolean("6+", default=False)
    keep_prepared_txn: bool = boolean("6+", default=False)


@message(api_key=22, versions="0-6", flexible="2+")
class InitProducerIdResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    producer_id: int = i64(default=-1)
    producer_epoch: int = i16()
    ongoing_txn_producer_id: int = i64("6+", default=-1)
    ongoing_txn_producer_epoch: int = i16("6+", default=-1)

"""InitProducerId (API key 22): a producer id and epoch for an idempotent or transactional producer.

v2 flexible, v3 the producer's present id and epoch, to bump or resume, v4 may answer PRODUCER_FENCED, v5
TRANSACTION_ABORTABLE, v6 two-phase commit (KIP-939), which Kafka 4.3 declares but does not serve.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import boolean, i16, i32, i64, message, string


@message(api_key=22, versions="0-6", flexible="2+", listeners="broker", latest_version_unstable=True)
class InitProducerIdRequest:
    #: None for a producer that is only idempotent.
    transactional_id: str | None = string(nullable=True, entity="transactional_id")
    transaction_timeout_ms: int = i32()
    producer_id: int = i64("3+", default=-1, entity="producer_id")
    producer_epoch: int = i16("3+", default=-1)
    enable2_pc: bool = boolean("6+", default=False)
    keep_prepared_txn: bool = boolean("6+", default=False)


@message(api_key=22, versions="0-6", flexible="2+")
class InitProducerIdResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    producer_id: int = i64(default=-1, entity="producer_id")
    producer_epoch: int = i16()
    ongoing_txn_producer_id: int = i64("6+", default=-1, entity="producer_id")
    ongoing_txn_producer_epoch: int = i16("6+", default=-1)

"""AllocateProducerIds (API key 67): a broker fetches a block of producer ids from the controller.

v0 is the only version, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import i16, i32, i64, message


@message(api_key=67, versions="0", flexible="0+", listeners="controller")
class AllocateProducerIdsRequest:
    broker_id: int = i32(entity="broker_id")
    broker_epoch: int = i64(default=-1)


@message(api_key=67, versions="0", flexible="0+")
class AllocateProducerIdsResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    producer_id_start: int = i64(entity="producer_id")
    producer_id_len: int = i32()

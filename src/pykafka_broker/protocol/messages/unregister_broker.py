"""UnregisterBroker (API key 64): forget a broker that will not come back.

v0 is the only version, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import i16, i32, message, string


@message(api_key=64, versions="0", flexible="0+", listeners="broker controller")
class UnregisterBrokerRequest:
    broker_id: int = i32(entity="broker_id")


@message(api_key=64, versions="0", flexible="0+")
class UnregisterBrokerResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)

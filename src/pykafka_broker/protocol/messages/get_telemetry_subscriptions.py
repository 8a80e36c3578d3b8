"""GetTelemetrySubscriptions (API key 71): which of its metrics a client should push, and how often.

v0 is the only version, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i8, i16, i32, message, string, uuid


@message(api_key=71, versions="0", flexible="0+", listeners="broker")
class GetTelemetrySubscriptionsRequest:
    client_instance_id: bytes = uuid()


@message(api_key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    client_instance_id: bytes = uuid()
    subscription_id: int = i32()
    accepted_compression_types: list[int] = array(i8())
    push_interval_ms: int = i32()
    telemetry_max_bytes: int = i32()
    delta_temporality: bool = boolean()
    requested_metrics: list[str] = array(string())

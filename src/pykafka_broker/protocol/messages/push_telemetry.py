"""PushTelemetry (API key 72): a client's metrics, as GetTelemetrySubscriptions asked for them.

v0 is the only version, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import binary, boolean, i8, i16, i32, message, uuid


@message(api_key=72, versions="0", flexible="0+", listeners="broker")
class PushTelemetryRequest:
    client_instance_id: bytes = uuid()
    subscription_id: int = i32()
    terminating: bool = boolean()
    compression_type: int = i8()
    metrics: bytes = binary()


@message(api_key=72, versions="0", flexible="0+")
class PushTelemetryResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()

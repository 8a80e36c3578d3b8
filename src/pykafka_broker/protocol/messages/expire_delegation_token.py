"""ExpireDelegationToken (API key 40): end a token's life, now or at a given time.

v1 is the oldest served; v2 flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import binary, i16, i32, i64, message


@message(api_key=40, versions="1-2", flexible="2+", listeners="broker controller")
class ExpireDelegationTokenRequest:
    hmac: bytes = binary(secret=True)
    expiry_time_period_ms: int = i64()


@message(api_key=40, versions="1-2", flexible="2+")
class ExpireDelegationTokenResponse:
    error_code: int = i16()
    expiry_timestamp_ms: int = i64()
    throttle_time_ms: int = i32(default=0)

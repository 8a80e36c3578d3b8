"""Heartbeat (API key 12): keep a member of a classic group alive, and learn of a rebalance.

v1 throttle time, v3 static members, v4 flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import i16, i32, message, string


@message(api_key=12, versions="0-4", flexible="4+", listeners="broker")
class HeartbeatRequest:
    group_id: str = string(entity="group_id")
    generation_id: int = i32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable=True, default=None)


@message(api_key=12, versions="0-4", flexible="4+")
class HeartbeatResponse:
    throttle_time_ms: int = i32("1+", default=0)
    error_code: int = i16()

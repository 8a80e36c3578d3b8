"""BrokerHeartbeat (API key 63): a broker tells the controller that it lives, and asks for a new state.

v0 flexible, v1 failed log directories, v2 cordoned ones.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i16, i32, i64, message, uuid


@message(api_key=63, versions="0-2", flexible="0+", listeners="controller")
class BrokerHeartbeatRequest:
    broker_id: int = i32(entity="broker_id")
    broker_epoch: int = i64(default=-1)
    current_metadata_offset: int = i64()
    want_fence: bool = boolean()
    want_shut_down: bool = boolean()
    offline_log_dirs: list[bytes] = array(uuid(), "1+", tag=0, default=[])
    cordoned_log_dirs: list[bytes] | None = array(uuid(), "2+", nullable=True, tag=1, default=None)


@message(api_key=63, versions="0-2", flexible="0+")
class BrokerHeartbeatResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    is_caught_up: bool = boolean(default=False)
    is_fenced: bool = boolean(default=True)
    should_shut_down: bool = boolean()

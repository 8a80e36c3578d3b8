"""FindCoordinator (API key 10)."""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i8, i16, i32, message, string


@message(api_key=10, versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    key: str = string("0-3", default="")
    key_type: int = i8("1+", default=0)
    coordinator_keys: list[str] = array(string(), "4+", default=[])


@message()
class Coordinator:
    key: str = string()
    node_id: int = i32()
    host: str = string()
    port: int = i32()
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)


@message(api_key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    throttle_time_ms: int = i32("1+", default=0)
    error_code: int = i16("0-3", default=0)
    error_message: str | None = string("1-3", nullable=True, default=None)
    node_id: int = i32("0-3", default=0)
    host: str = string("0-3", default="")
    port: int = i32("0-3", default=0)
    coordinators: list[Coordinator] = array(Coordinator, "4+", default=[])

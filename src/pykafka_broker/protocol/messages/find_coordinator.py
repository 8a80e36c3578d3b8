"""FindCoordinator (API key 10): which broker coordinates a group, a transaction or a share partition.

v1 key types, error messages and throttle time, v3 flexible, v4 many keys at once, v5 may answer
TRANSACTION_ABORTABLE, v6 share partitions (key type 2, "group:topic id:partition"). Up to v3 the one key and
its answer stand in the top-level fields, from v4 on in `coordinator_keys` and `coordinators`.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i8, i16, i32, message, string


@message(api_key=10, versions="0-6", flexible="3+", listeners="broker")
class FindCoordinatorRequest:
    key: str = string("0-3", default="")
    key_type: int = i8("1+", default=0)
    coordinator_keys: list[str] = array(string(), "4+", default=[])


@message()
class Coordinator:
    key: str = string()
    node_id: int = i32(entity="broker_id")
    host: str = string()
    port: int = i32()
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)


@message(api_key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    throttle_time_ms: int = i32("1+", default=0)
    error_code: int = i16("0-3", default=0)
    error_message: str | None = string("1-3", nullable=True, default=None)
    node_id: int = i32("0-3", default=0, entity="broker_id")
    host: str = string("0-3", default="")
    port: int = i32("0-3", default=0)
    coordinators: list[Coordinator] = array(Coordinator, "4+", default=[])

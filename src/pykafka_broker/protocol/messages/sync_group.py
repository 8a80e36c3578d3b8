"""SyncGroup (API key 14): the leader hands in the assignment, every member gets its share.

v1 throttle time, v3 static members, v4 flexible, v5 both sides name the protocol and must agree.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, binary, i16, i32, message, string


@message()
class SyncGroupRequestAssignment:
    member_id: str = string()
    assignment: bytes = binary()


@message(api_key=14, versions="0-5", flexible="4+", listeners="broker")
class SyncGroupRequest:
    group_id: str = string(entity="group_id")
    generation_id: int = i32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable=True, default=None)
    protocol_type: str | None = string("5+", nullable=True, default=None)
    protocol_name: str | None = string("5+", nullable=True, default=None)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


@message(api_key=14, versions="0-5", flexible="4+")
class SyncGroupResponse:
    throttle_time_ms: int = i32("1+", default=0)
    error_code: int = i16()
    protocol_type: str | None = string("5+", nullable=True, default=None)
    protocol_name: str | None = string("5+", nullable=True, default=None)
    assignment: bytes = binary()

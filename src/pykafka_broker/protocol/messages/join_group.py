"""JoinGroup (API key 11): enter a classic group, or stay in it when it rebalances.

v1 rebalance timeout, v2 throttle time, v4 a new member must come back with the id it was given, v5 static
members, v6 flexible, v7 the answer names the protocol type, v8 the reason for joining, v9 a leader that may
skip the assignment.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, binary, boolean, i16, i32, message, string


@message()
class JoinGroupRequestProtocol:
    name: str = string()
    metadata: bytes = binary()


@message(api_key=11, versions="0-9", flexible="6+", listeners="broker")
class JoinGroupRequest:
    group_id: str = string(entity="group_id")
    session_timeout_ms: int = i32()
    #: v0 has none and means the session timeout.
    rebalance_timeout_ms: int = i32("1+", default=-1)
    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable=True, default=None)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string("8+", nullable=True, default=None)


@message()
class JoinGroupResponseMember:
    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable=True, default=None)
    metadata: bytes = binary()


@message(api_key=11, versions="0-9", flexible="6+")
class JoinGroupResponse:
    throttle_time_ms: int = i32("2+", default=0)
    error_code: int = i16()
    generation_id: int = i32(default=-1)
    protocol_type: str | None = string("7+", nullable=True, default=None)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean("9+", default=False)
    member_id: str = string()
    #: Empty for all members but the leader.
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)

"""LeaveGroup (API key 13)."""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, message, string


@message()
class MemberIdentity:
    member_id: str = string()
    group_instance_id: str | None = string(nullable=True, default=None)
    reason: str | None = string("5+", nullable=True, default=None)


@message(api_key=13, versions="0-5", flexible="4+")
class LeaveGroupRequest:
    group_id: str = string()
    member_id: str = string("0-2", default="")
    members: list[MemberIdentity] = array(MemberIdentity, "3+", default=[])


@message()
class MemberResponse:
    member_id: str = string()
    group_instance_id: str | None = string(nullable=True)
    error_code: int = i16()


@message(api_key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    throttle_time_ms: int = i32("1+", default=0)
    error_code: int = i16()
    members: list[MemberResponse] = array(MemberResponse, "3+", default=[])

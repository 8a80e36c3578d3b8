"""LeaveGroup (API key 13): take members out of a classic group.

v1 throttle time, v3 many members at once, also by instance id, v4 flexible, v5 the reason for leaving. Up to
v2 the one member stands in the top-level field, from v3 on in `members`.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, message, string


@message()
class MemberIdentity:
    member_id: str = string()
    group_instance_id: str | None = string(nullable=True, default=None)
    reason: str | None = string("5+", nullable=True, default=None)


@message(api_key=13, versions="0-5", flexible="4+", listeners="broker")
class LeaveGroupRequest:
    group_id: str = string(entity="group_id")
    #: The one member of v0 to v2.
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

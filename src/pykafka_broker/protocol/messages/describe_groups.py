"""DescribeGroups (API key 15): state and members of classic groups.

v1 throttle time, v3 authorized operations, v4 static members' ids, v5 flexible, v6 a missing group is
GROUP_ID_NOT_FOUND with a message, not a dead group.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, binary, boolean, i16, i32, message, string


@message(api_key=15, versions="0-6", flexible="5+", listeners="broker")
class DescribeGroupsRequest:
    groups: list[str] = array(string(entity="group_id"))
    include_authorized_operations: bool = boolean("3+", default=False)


@message()
class DescribedGroupMember:
    member_id: str = string()
    group_instance_id: str | None = string("4+", nullable=True, default=None)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = binary()
    member_assignment: bytes = binary()


@message()
class DescribedGroup:
    error_code: int = i16()
    error_message: str | None = string("6+", nullable=True, default=None)
    group_id: str = string(entity="group_id")
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = i32("3+", default=-0x80000000)


@message(api_key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    throttle_time_ms: int = i32("1+", default=0)
    groups: list[DescribedGroup] = array(DescribedGroup)

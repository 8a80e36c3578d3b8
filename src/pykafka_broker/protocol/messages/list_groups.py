"""ListGroups (API key 16): the groups that this broker coordinates.

v1 throttle time, v3 flexible, v4 states and a filter for them, v5 types and a filter for them.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, message, string


@message(api_key=16, versions="0-5", flexible="3+", listeners="broker")
class ListGroupsRequest:
    states_filter: list[str] = array(string(), "4+", default=[])
    types_filter: list[str] = array(string(), "5+", default=[])


@message()
class ListedGroup:
    group_id: str = string(entity="group_id")
    protocol_type: str = string()
    group_state: str = string("4+", default="")
    group_type: str = string("5+", default="")


@message(api_key=16, versions="0-5", flexible="3+")
class ListGroupsResponse:
    throttle_time_ms: int = i32("1+", default=0)
    error_code: int = i16()
    groups: list[ListedGroup] = array(ListedGroup)

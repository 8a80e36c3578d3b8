"""DeleteGroups (API key 42): remove empty groups with their offsets.

v1: a broker answers before it throttles, not after; v2 flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, message, string


@message(api_key=42, versions="0-2", flexible="2+", listeners="broker")
class DeleteGroupsRequest:
    groups_names: list[str] = array(string(entity="group_id"))


@message()
class DeletableGroupResult:
    group_id: str = string(entity="group_id")
    error_code: int = i16()


@message(api_key=42, versions="0-2", flexible="2+")
class DeleteGroupsResponse:
    throttle_time_ms: int = i32(default=0)
    results: list[DeletableGroupResult] = array(DeletableGroupResult)

"""What administrators ask of groups: ListGroups, DescribeGroups, DeleteGroups."""

from __future__ import annotations

from pykafka_broker.coordinator.group.events import (
    DeleteGroup,
    DescribedGroup,
    DescribedMember,
    DescribeGroup,
    ListedGroup,
    ListGroups,
)
from pykafka_broker.coordinator.group.offsets import forget_all_offsets
from pykafka_broker.coordinator.group.records import Record, group_tombstone
from pykafka_broker.coordinator.group.state import ClassicGroup, Groups, Phase
from pykafka_broker.coordinator.group.turn import refuse
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.step import Reply, Step

CLASSIC_GROUP_TYPE = "classic"
#: DescribeGroups versions from which on a missing group is an error and not a dead group.
FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 6


def on_list(groups: Groups, event: ListGroups) -> Step[Groups]:
    """List the groups in one of the states and of one of the types, both read without regard to case."""
    states = {state.strip().lower() for state in event.states}
    types = {group_type.strip().lower() for group_type in event.types}
    listed = tuple(
        ListedGroup(group.group_id, group.protocol_type or "", group.phase.value, CLASSIC_GROUP_TYPE)
        for group in groups.groups.values()
        if (not states or group.phase.value.lower() in states) and (not types or CLASSIC_GROUP_TYPE in types)
    )
    return refuse(groups, event.token, listed)


def on_describe(groups: Groups, event: DescribeGroup) -> Step[Groups]:
    """Describe a group. Only of a stable one is it certain what its members said in which protocol."""
    group = groups.groups.get(event.group_id)
    if group is None:
        return refuse(groups, event.token, _missing(event))
    is_stable = group.phase is Phase.STABLE
    described = DescribedGroup(
        ErrorCode.NONE,
        group.group_id,
        group.phase.value,
        group.protocol_type or "",
        (group.protocol_name or "") if is_stable else "",
        tuple(_member(group, member_id, with_metadata=is_stable) for member_id in group.members),
    )
    return refuse(groups, event.token, described)


def _missing(event: DescribeGroup) -> DescribedGroup:
    if event.version < FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND:
        return DescribedGroup(ErrorCode.NONE, event.group_id, Phase.DEAD.value)
    return DescribedGroup(
        ErrorCode.GROUP_ID_NOT_FOUND,
        event.group_id,
        Phase.DEAD.value,
        error_message=f"Group {event.group_id} not found.",
    )


def _member(group: ClassicGroup, member_id: str, *, with_metadata: bool) -> DescribedMember:
    member = group.members[member_id]
    return DescribedMember(
        member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.metadata(group.protocol_name) if with_metadata else b"",
        member.assignment,
    )


def on_delete(groups: Groups, event: DeleteGroup) -> Step[Groups]:
    """Forget an empty group with all its offsets."""
    group = groups.groups.get(event.group_id)
    if group is None:
        return refuse(groups, event.token, ErrorCode.GROUP_ID_NOT_FOUND)
    if group.phase is not Phase.EMPTY:
        return refuse(groups, event.token, ErrorCode.NON_EMPTY_GROUP)
    records: list[Record] = []
    state = forget_all_offsets(groups, event.group_id, records)
    records.append(group_tombstone(event.group_id))
    state = Groups(state.groups.without(event.group_id), state.offsets)
    return Step(state, tuple(records), (Reply(event.token, ErrorCode.NONE),))

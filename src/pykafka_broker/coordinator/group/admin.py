"""What administrators ask of groups: ListGroups, DescribeGroups, DeleteGroups."""

from __future__ import annotations

from pykafka_broker.coordinator.group.classic.state import CONSUMER_PROTOCOL_TYPE, ClassicGroup, Phase
from pykafka_broker.coordinator.group.consumer.state import ConsumerGroup
from pykafka_broker.coordinator.group.events import (
    DeleteGroup,
    DescribedGroup,
    DescribedMember,
    DescribeGroup,
    ListedGroup,
    ListGroups,
)
from pykafka_broker.coordinator.group.offsets import forget_all_offsets, group_tombstones, is_empty
from pykafka_broker.coordinator.group.record import Record
from pykafka_broker.coordinator.group.state import Group, Groups
from pykafka_broker.coordinator.group.turn import refuse
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.step import Reply, Step

CLASSIC_GROUP_TYPE = "classic"
CONSUMER_GROUP_TYPE = "consumer"
#: DescribeGroups versions from which on a missing group is an error and not a dead group.
FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 6


def on_list(groups: Groups, event: ListGroups) -> Step[Groups]:
    """List the groups in one of the states and of one of the types, both read without regard to case."""
    states = {state.strip().lower() for state in event.states}
    types = {group_type.lower() for group_type in event.types}
    everything = map(_listed, groups.groups.values())
    listed = tuple(
        group
        for group in everything
        if (not states or group.state.lower() in states) and (not types or group.group_type in types)
    )
    return refuse(groups, event.token, listed)


def _listed(group: Group) -> ListedGroup:
    if isinstance(group, ConsumerGroup):
        return ListedGroup(group.group_id, CONSUMER_PROTOCOL_TYPE, group.state.value, CONSUMER_GROUP_TYPE)
    return ListedGroup(group.group_id, group.protocol_type or "", group.phase.value, CLASSIC_GROUP_TYPE)


def on_describe(groups: Groups, event: DescribeGroup) -> Step[Groups]:
    """Describe a classic group. Only of a stable one is it certain what its members said."""
    group = groups.classic(event.group_id)
    if group is None:
        of_another_kind = event.group_id in groups.groups
        return refuse(groups, event.token, _missing(event, of_another_kind))
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


def _missing(event: DescribeGroup, of_another_kind: bool) -> DescribedGroup:
    if event.version < FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND:
        return DescribedGroup(ErrorCode.NONE, event.group_id, Phase.DEAD.value)
    return DescribedGroup(
        ErrorCode.GROUP_ID_NOT_FOUND,
        event.group_id,
        Phase.DEAD.value,
        error_message=f"Group {event.group_id} is not a classic group."
        if of_another_kind
        else f"Group {event.group_id} not found.",
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
    if not is_empty(group):
        return refuse(groups, event.token, ErrorCode.NON_EMPTY_GROUP)
    records: list[Record] = []
    state = forget_all_offsets(groups, event.group_id, records)
    records += group_tombstones(group)
    state = state.without_group(event.group_id)
    return Step(state, tuple(records), (Reply(event.token, ErrorCode.NONE),))

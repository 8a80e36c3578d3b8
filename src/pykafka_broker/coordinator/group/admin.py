"""What administrators ask of groups of all kinds: ListGroups, DeleteGroups."""

from __future__ import annotations

from pykafka_broker.coordinator.group.events import (
    DeleteGroup,
    ListedGroup,
    ListGroups,
)
from pykafka_broker.coordinator.group.forgetting import forget_all_offsets
from pykafka_broker.coordinator.group.kinds import kind_of
from pykafka_broker.coordinator.group.record import AnyRecord
from pykafka_broker.coordinator.group.state import Group, Groups
from pykafka_broker.coordinator.group.turn import refuse
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.step import Reply, Step


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
    kind = kind_of(group)
    return ListedGroup(group.group_id, kind.protocol_type(group), kind.state_of(group), kind.name)


def on_delete(groups: Groups, event: DeleteGroup) -> Step[Groups]:
    """Forget an empty group with all its offsets."""
    group = groups.groups.get(event.group_id)
    if group is None:
        return refuse(groups, event.token, ErrorCode.GROUP_ID_NOT_FOUND)
    kind = kind_of(group)
    if not kind.is_empty(group):
        return refuse(groups, event.token, ErrorCode.NON_EMPTY_GROUP)
    records: list[AnyRecord] = []
    state = forget_all_offsets(groups, event.group_id, records)
    records += kind.tombstones(group)
    state = state.without_group(event.group_id)
    return Step(state, tuple(records), (Reply(event.token, ErrorCode.NONE),))

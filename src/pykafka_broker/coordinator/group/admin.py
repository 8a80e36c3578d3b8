"""The requests of administrators about groups of all kinds: ListGroups. DeleteGroups is in `deletion.py`."""

from __future__ import annotations

from pykafka_broker.coordinator.group.events import (
    ListedGroup,
    ListGroups,
)
from pykafka_broker.coordinator.group.kinds import kind_of
from pykafka_broker.coordinator.group.state import Group, Groups
from pykafka_broker.coordinator.group.turn import refuse
from pykafka_broker.machine.step import Step


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

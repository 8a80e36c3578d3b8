"""The requests of administrators about groups of all kinds: ListGroups. DeleteGroups is in `deletion.py`."""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.events import (
    ListedGroup,
    ListGroups,
)
from pykafka_broker.coordinator.groups.core.kinds import kind_of
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.turn import refuse
from pykafka_broker.machine.step import Step


def on_list(groups: Groups, event: ListGroups) -> Step[Groups]:
    """List the groups in one of the states and of one of the types, both read without regard to case."""
    states = {state.strip().lower() for state in event.states}
    types = {group_type.lower() for group_type in event.types}
    kinds = ((group, kind_of(group)) for group in groups.groups.values())
    listed = tuple(
        ListedGroup(group.group_id, kind.protocol_type(group), kind.state_of(group), kind.name)
        for group, kind in kinds
        if (not states or kind.is_in_states(group, states)) and (not types or kind.name in types)
    )
    return refuse(groups, event.token, listed)

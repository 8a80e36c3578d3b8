"""DescribeGroups: state, protocol and members of a classic group."""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Phase
from pykafka_broker.coordinator.groups.core.events import (
    DescribedGroup,
    DescribedMember,
    DescribeGroup,
)
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.turn import refuse
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode

#: The first DescribeGroups version in which a missing group is an error, not a dead group.
FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 6


def on_describe(groups: Groups, event: DescribeGroup) -> Step[Groups]:
    """Describe a classic group. The metadata of members is shown only of a stable one."""
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

"""What the records of consumer, share and streams groups have in common, and how those change a group.

The members of these groups have epochs, and so has the target assignment of all members.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.machine.versioned_map import VersionedMap

#: The epoch of a target that has been deleted.
NO_ASSIGNMENT_EPOCH = -1
#: The epoch of a member whose assignment has been deleted.
NO_MEMBER_EPOCH = -1


class TargetEpoch(Protocol):
    """The value of a record with the epoch of the target assignment and its time."""

    assignment_epoch: int
    assignment_timestamp: int


class EpochGroup(Protocol):
    """A group of one of these kinds."""

    @property
    def members(self) -> VersionedMap[str, Any]: ...

    @property
    def targets(self) -> VersionedMap[str, Any]: ...

    def with_member(self, member: Any, /) -> Any: ...

    def _replace(self, *args: Any, **values: Any) -> Any: ...


G = TypeVar("G", bound=EpochGroup)
State = TypeVar("State", bound=enum.Enum)


def with_target_epoch(group: G, value: TargetEpoch | None) -> G:
    """The group after the record of its target's epoch, or the deletion of that record."""
    epoch, timestamp_ms = NO_ASSIGNMENT_EPOCH, 0
    if value is not None:
        epoch, timestamp_ms = value.assignment_epoch, value.assignment_timestamp
    changed: G = group._replace(assignment_epoch=epoch, assignment_timestamp_ms=timestamp_ms)
    return changed


def with_target(group: G, member_id: str, target: object | None) -> G:
    """The group after the record of a member's target; None: after its deletion."""
    targets = group.targets
    changed: G = group._replace(
        targets=targets.without(member_id) if target is None else targets.with_item(member_id, target)
    )
    return changed


def without_assignment(group: G, member_id: str, **nothing: object) -> G:
    """The group after the tombstone of a member's current assignment; `nothing` has the empty fields."""
    member = group.members.get(member_id)
    if member is None:
        return group
    changed: G = group.with_member(
        member._replace(member_epoch=NO_MEMBER_EPOCH, previous_member_epoch=NO_MEMBER_EPOCH, **nothing)
    )
    return changed


def known_state(states: type[State], number: int) -> State:
    """The state of a member by its number; UNKNOWN for the number of a newer broker."""
    try:
        return states(number)
    except ValueError:
        return states["UNKNOWN"]


def group_tombstones(
    of_members: Iterable[tuple[Record, Record, Record]], target_epoch_key: object, *last_keys: object
) -> list[Record]:
    """The tombstones of a group, in Apache Kafka's order: `of_members` has those of each member's current
    assignment, target and metadata.
    """
    each = list(of_members)
    return [
        *(current for current, _, _ in each),
        *(target for _, target, _ in each),
        Record(target_epoch_key, None),
        *(member for _, _, member in each),
        *(Record(key, None) for key in last_keys),
    ]

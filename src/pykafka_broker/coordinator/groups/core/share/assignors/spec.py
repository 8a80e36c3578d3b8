"""The input of a share group's assignor: members, their partitions, and the assignable partitions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pykafka_broker.system.named_tuple import NamedTuple

#: Partitions by topic id, in the iteration order of the assignor's hash map.
Assigned = Mapping[bytes, tuple[int, ...]]


class MemberSpec(NamedTuple):
    """A member: the topics that it subscribes to and that exist, and what it had so far."""

    topic_ids: tuple[bytes, ...]
    assigned: Assigned


class GroupSpec(NamedTuple):
    """A group: its members in the order that decides ties."""

    members: Mapping[str, MemberSpec]
    #: Those partitions of each topic that have a state at the share coordinator.
    assignable: Mapping[bytes, Sequence[int]]
    #: Do all members subscribe to the same topics?
    is_homogeneous: bool


def desired_sharing(member_count: int, partition_count: int) -> int:
    """The number of members that each partition should have: more than one if there are more members."""
    return -(-member_count // partition_count) if partition_count else 0


def desired_counts(member_count: int, partition_count: int) -> list[int]:
    """The number of partitions that each member should have, by its place; any two differ by one at most."""
    exact = desired_sharing(member_count, partition_count) * partition_count / member_count
    return [math.ceil(exact * (index + 1)) - math.ceil(exact * index) for index in range(member_count)]

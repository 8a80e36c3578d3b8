"""The state of a share group (KIP-932).

A change of members, subscriptions or topics bumps the *group epoch*; the assignor then makes a target for all
members, whose *assignment epoch* catches up with it. Partitions are shared, so no member waits for another: a
member's next heartbeat brings it its target, and the assignment epoch as its *member epoch*.

A group requests a state of each partition from the share coordinator, and assigns partitions that have one.
Their topic is first *initializing*, then *initialized*; while states are deleted, it is *deleting*.

All but the last fields of a group are durable, and change only by applying records (`share/records.py`).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

from pykafka_broker.machine.versioned_map import VersionedMap
from pykafka_broker.protocol.epochs import JOIN_EPOCH
from pykafka_broker.system.named_tuple import NamedTuple

#: Partitions by topic id, both in the iteration order of Apache Kafka's hash maps.
Assignment = Mapping[bytes, tuple[int, ...]]
NO_ASSIGNMENT: Assignment = MappingProxyType({})


class MemberState(enum.IntEnum):
    """The progress of a member towards its target, by the numbers in its record. Only STABLE is written."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    #: Written by a newer broker.
    UNKNOWN = 127


class ShareGroupState(enum.Enum):
    """The states of a share group, by the names Kafka shows."""

    EMPTY = "Empty"
    STABLE = "Stable"


class ShareMember(NamedTuple):
    """A member of a share group."""

    member_id: str
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    assigned: Assignment = NO_ASSIGNMENT

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Has the member all that the target of this epoch gives it?"""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch


class NamedPartitions(NamedTuple):
    """Partitions of a topic, with the topic's name when they were recorded."""

    topic_name: str
    partitions: tuple[int, ...]


#: By topic id.
PartitionsByTopic = Mapping[bytes, NamedPartitions]
NO_PARTITIONS: PartitionsByTopic = MappingProxyType({})


class StatePartitions(NamedTuple):
    """The partitions whose state at the share coordinator is initializing, initialized or being deleted."""

    initializing: PartitionsByTopic = NO_PARTITIONS
    initialized: PartitionsByTopic = NO_PARTITIONS
    deleting: tuple[bytes, ...] = ()


class ShareGroup(NamedTuple):
    """A share group. A new one starts at epoch 1, so its first member arrives in epoch 2."""

    group_id: str
    members: VersionedMap[str, ShareMember]
    targets: VersionedMap[str, Assignment]
    #: Index: the number of members that subscribe to a topic.
    name_counts: VersionedMap[str, int]

    group_epoch: int = 1
    #: Fingerprint of the subscribed topics at the last bump.
    metadata_hash: int = 0
    assignment_epoch: int = 1
    assignment_timestamp_ms: int = 0
    #: None: nothing has been written about states of partitions.
    states: StatePartitions | None = None

    # Soft: these die with the shard.
    #: When to check the subscribed topics again; 0: at the next heartbeat.
    refresh_deadline_ms: int = 0
    #: When `states` was last written or loaded.
    states_written_ms: int = 0
    #: The last heartbeat changed nothing, so the next one without changes will not either.
    is_settled: bool = False

    @classmethod
    def new(cls, group_id: str) -> ShareGroup:
        """A group without members."""
        return cls(group_id, VersionedMap(), VersionedMap(), VersionedMap())

    @property
    def state(self) -> ShareGroupState:
        """The state of the group."""
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def is_homogeneous(self) -> bool:
        """Do all members subscribe to the same topics?"""
        return all(count == len(self.members) for count in self.name_counts.values())

    def is_subscribed_to(self, topic: str) -> bool:
        """Does any member read `topic`?"""
        return topic in self.name_counts

    def target_of(self, member_id: str) -> Assignment:
        """The target of a member; nothing if it has none yet."""
        return self.targets.get(member_id) or NO_ASSIGNMENT

    def with_member(self, member: ShareMember) -> ShareGroup:
        """The group with `member` put in or replaced."""
        before = self.members.get(member.member_id)
        former = frozenset[str]() if before is None else before.subscribed_topic_names
        return self._replace(
            members=self.members.with_item(member.member_id, member),
            name_counts=_recounted(self.name_counts, former, member.subscribed_topic_names),
        )

    def without_member(self, member_id: str) -> ShareGroup:
        """The group without a member."""
        before = self.members.get(member_id)
        if before is None:
            return self
        return self._replace(
            members=self.members.without(member_id),
            name_counts=_recounted(self.name_counts, before.subscribed_topic_names, frozenset()),
        )


def _recounted(
    counts: VersionedMap[str, int], before: frozenset[str], after: frozenset[str]
) -> VersionedMap[str, int]:
    for name in sorted(after - before):
        counts = counts.with_item(name, counts.get(name, 0) + 1)
    for name in sorted(before - after):
        count = counts[name] - 1
        counts = counts.with_item(name, count) if count else counts.without(name)
    return counts

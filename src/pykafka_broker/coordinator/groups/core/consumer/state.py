"""The state of a consumer group, one whose partitions the coordinator assigns itself (KIP-848).

Three epochs show the progress of a group. A change of members, subscriptions or topics bumps the *group
epoch*. The assignor then makes a target for all members, whose *assignment epoch* catches up with the group
epoch. Each member moves to its target on its own, by heartbeats, and reaches the assignment epoch as its
*member epoch* once it has given up all partitions that it has to.

Everything but the last few fields of a group is durable, and is only ever changed by applying records
(`consumer/records.py`), so a broker that reads the records arrives at the same group.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from pykafka_broker.coordinator.groups.core.consumer.assignors.spec import Assignment
from pykafka_broker.machine.versioned_map import VersionedMap
from pykafka_broker.protocol.epochs import JOIN_EPOCH
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.coordinator.groups.core.classic.state import Protocol

#: Partitions, and the assignment epoch in which the member got each of them.
OwnedPartitions = Mapping[bytes, Mapping[int, int]]
NOTHING_OWNED: OwnedPartitions = MappingProxyType({})
NO_ASSIGNMENT: Assignment = MappingProxyType({})
_NO_NAMES: Mapping[str, str] = MappingProxyType({})
_NO_COUNTS: Mapping[str, int] = MappingProxyType({})


class MemberState(enum.IntEnum):
    """The progress of a member towards its target; the numbers are in its record."""

    #: It has all partitions that it gets in its epoch.
    STABLE = 0
    #: It has been told to give up partitions and has not confirmed it.
    UNREVOKED_PARTITIONS = 1
    #: It has given up everything, but others still hold partitions it is to get.
    UNRELEASED_PARTITIONS = 2
    #: Written by a newer broker: the member must join again.
    UNKNOWN = 127


class GroupState(enum.Enum):
    """The states of a consumer group, by the names Kafka shows."""

    EMPTY = "Empty"
    #: The group has changed since the last assignment.
    ASSIGNING = "Assigning"
    #: Some members have not reached their targets.
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ClassicMembership(NamedTuple):
    """The further state of a member that speaks the classic protocol."""

    session_timeout_ms: int
    #: The protocols it supports, best first.
    protocols: tuple[Protocol, ...]


class ConsumerMember(NamedTuple):
    """A member of a consumer group."""

    member_id: str
    #: LEAVE_STATIC_EPOCH of a static member that has left temporarily.
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: OwnedPartitions = NOTHING_OWNED
    pending_revocation: OwnedPartitions = NOTHING_OWNED
    #: Set for members that speak the classic protocol.
    classic: ClassicMembership | None = None

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch


class ResolvedRegex(NamedTuple):
    """The topics a regular expression matched, in which version of the metadata, and when."""

    topics: frozenset[str] = frozenset()
    version: int = -1
    timestamp_ms: int = -1


class ConsumerGroup(NamedTuple):
    """A consumer group. A new one starts at epoch 1, so its first member arrives in epoch 2."""

    group_id: str
    members: VersionedMap[str, ConsumerMember]
    targets: VersionedMap[str, Assignment]
    #: Index over the members: (topic id, partition) -> epoch of the member that has the partition, or has not
    #: confirmed its revocation.
    partition_epochs: VersionedMap[tuple[bytes, int], int]
    #: Indexes: how many members subscribe to a topic by its name, or by a regular expression.
    name_counts: VersionedMap[str, int]
    regex_counts: Mapping[str, int] = _NO_COUNTS
    static_members: Mapping[str, str] = _NO_NAMES
    #: Index: how many members speak the classic protocol.
    classic_count: int = 0

    group_epoch: int = 1
    #: Fingerprint of the subscribed topics at the last bump.
    metadata_hash: int = 0
    assignment_epoch: int = 1
    assignment_timestamp_ms: int = 0
    regexes: Mapping[str, ResolvedRegex] = MappingProxyType({})
    #: An older broker has left a record that newer ones do not need.
    has_subscription_metadata_record: bool = False

    # Soft: these die with the shard.
    #: When to check the subscribed topics again; 0: at the next heartbeat.
    refresh_deadline_ms: int = 0
    #: The regular expressions are being resolved.
    is_resolving: bool = False
    #: Classic members that have been told to join again and for whom a timer runs.
    expected_to_join: frozenset[str] = frozenset()

    @classmethod
    def new(cls, group_id: str) -> ConsumerGroup:
        """A group without members."""
        return cls(group_id, VersionedMap(), VersionedMap(), VersionedMap(), VersionedMap())

    @property
    def state(self) -> GroupState:
        """The state of the group; computed at each call, because it is seldom asked for."""
        if not self.members:
            return GroupState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    def is_subscribed_to(self, topic: str) -> bool:
        """Does any member read `topic`?"""
        return topic in self.name_counts or any(topic in regex.topics for regex in self.regexes.values())

    def subscribed_topics(self) -> Iterable[str]:
        """All topics members subscribe to, by name or by regular expression."""
        return set(self.name_counts).union(*(regex.topics for regex in self.regexes.values()))

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The topics one member subscribes to."""
        resolved = self.regexes.get(member.subscribed_topic_regex or "")
        names = member.subscribed_topic_names
        return names if resolved is None else names | resolved.topics

    @property
    def is_homogeneous(self) -> bool:
        """Do all members subscribe to the same topics? False if any member mixes names and expressions."""
        if not self.regex_counts:
            return all(count == len(self.members) for count in self.name_counts.values())
        only_regex = next(iter(self.regex_counts.values())) == len(self.members)
        topics = [topic for regex in self.regexes.values() for topic in regex.topics]
        return only_regex and not self.name_counts and len(topics) == len(set(topics))

    def target_of(self, member_id: str, instance_id: str | None = None) -> Assignment:
        """The target of a member; a static one inherits that of the last member with its instance id."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, member_id)
        return self.targets.get(member_id) or NO_ASSIGNMENT

    def with_member(self, member: ConsumerMember) -> ConsumerGroup:
        """The group with `member` put in or replaced, and the indexes brought up to date."""
        before = self.members.get(member.member_id)
        static_members = self.static_members
        former_instance_id = before.instance_id if before is not None else None
        if former_instance_id is not None and former_instance_id != member.instance_id:
            static_members = {key: name for key, name in static_members.items() if key != former_instance_id}
        if member.instance_id is not None and static_members.get(member.instance_id) != member.member_id:
            static_members = {**static_members, member.instance_id: member.member_id}
        changed = self._replace(
            members=self.members.with_item(member.member_id, member), static_members=static_members
        )
        return changed._reindexed(before, member)

    def without_member(self, member_id: str) -> ConsumerGroup:
        """The group without a member and its target."""
        before = self.members.get(member_id)
        if before is None:
            return self
        static_members = self.static_members
        if before.instance_id is not None and static_members.get(before.instance_id) == member_id:
            static_members = {key: value for key, value in static_members.items() if value != member_id}
        changed = self._replace(
            members=self.members.without(member_id),
            targets=self.targets.without(member_id),
            static_members=static_members,
            expected_to_join=self.expected_to_join - {member_id},
        )
        return changed._reindexed(before, None)

    def _reindexed(self, before: ConsumerMember | None, after: ConsumerMember | None) -> ConsumerGroup:
        """The group with its indexes brought up to date, now that a member has been put in or taken out."""
        name_counts, regex_counts, partition_epochs = (
            self.name_counts,
            self.regex_counts,
            self.partition_epochs,
        )
        old_names = before.subscribed_topic_names if before else frozenset()
        new_names = after.subscribed_topic_names if after else frozenset()
        if old_names != new_names:
            counts = {name: name_counts.get(name, 0) + 1 for name in new_names - old_names}
            counts |= {name: name_counts[name] - 1 for name in old_names - new_names}
            name_counts = name_counts.with_changes(
                {name: count for name, count in counts.items() if count},
                [name for name, count in counts.items() if not count],
            )
        old_regex = (before.subscribed_topic_regex or "") if before else ""
        new_regex = (after.subscribed_topic_regex or "") if after else ""
        if old_regex != new_regex:
            regexes = {**regex_counts, new_regex: regex_counts.get(new_regex, 0) + 1}
            regexes[old_regex] = regexes.get(old_regex, 0) - 1
            regex_counts = {regex: count for regex, count in regexes.items() if regex and count > 0}
        if _ownership(before) != _ownership(after):
            partition_epochs = self.partition_epochs_after(before, after)
        return self._replace(
            name_counts=name_counts,
            regex_counts=regex_counts,
            partition_epochs=partition_epochs,
            classic_count=self.classic_count + _is_classic(after) - _is_classic(before),
        )

    def partition_epochs_after(
        self, before: ConsumerMember | None, after: ConsumerMember | None
    ) -> VersionedMap[tuple[bytes, int], int]:
        """Release the partitions that the member had at its old epoch, and take those it has now."""
        released = []
        if before is not None:
            released = [
                partition
                for partition in held_partitions(before)
                if self.partition_epochs.get(partition) == before.member_epoch
            ]
        taken = {} if after is None else dict.fromkeys(held_partitions(after), after.member_epoch)
        return self.partition_epochs.with_changes(taken, [key for key in released if key not in taken])


def held_partitions(member: ConsumerMember) -> Iterable[tuple[bytes, int]]:
    """The partitions that no other member may get: the member has them, or has not confirmed their
    revocation.
    """
    for owned in (member.assigned, member.pending_revocation):
        for topic_id, partitions in owned.items():
            for partition in partitions:
                yield topic_id, partition


def _is_classic(member: ConsumerMember | None) -> bool:
    return member is not None and member.classic is not None


def _ownership(member: ConsumerMember | None) -> tuple[OwnedPartitions, OwnedPartitions, int]:
    if member is None:
        return NOTHING_OWNED, NOTHING_OWNED, 0
    return member.assigned, member.pending_revocation, member.member_epoch

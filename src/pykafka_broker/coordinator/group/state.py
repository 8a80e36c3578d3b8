"""What the group coordinator knows: groups of all kinds, and committed offsets.

`Groups` is the state of one shard, that is, of one partition of `__consumer_offsets`. All of it is immutable:
named tuples (they are cheap to declare at start and to make on the hot path), versioned maps for the two
tables that grow, and plain mappings inside a group that nobody changes in place.

A classic group's durable part is what its newest GroupMetadata record says; `joining`, `syncing`,
`pending_members` and the progress of a rebalance are soft and die with the shard.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, Union

from pykafka_broker.coordinator.group.consumer.state import ConsumerGroup
from pykafka_broker.coordinator.group.pending import PendingOffsets
from pykafka_broker.coordinator.group.topics import NO_TOPICS, TopicDirectory
from pykafka_broker.coordinator.versioned_map import VersionedMap

#: The protocol type of consumers; the coordinator reads the subscriptions of no other type.
CONSUMER_PROTOCOL_TYPE = "consumer"
#: How long a member that has just been added may wait for the rebalance without having sent a heartbeat.
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
NO_TOPIC_ID = bytes(16)


class MigrationPolicy(enum.Enum):
    """May a live group change between the classic and the consumer protocol, and which way?"""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def allows_upgrade(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def allows_downgrade(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


class ConsumerGroupSettings(NamedTuple):
    """What may be set for each consumer group on its own."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000


class GroupCoordinatorConfig(NamedTuple):
    """The configuration values the coordinator acts on; may be swapped while it runs."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2_147_483_647
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    offsets_retention_check_interval_ms: int = 600_000
    #: The number of a compression codec (0: none); for the records, not for the topic.
    offsets_topic_compression_codec: int = 0
    consumer_group: ConsumerGroupSettings = ConsumerGroupSettings()
    #: Settings of single groups, by group id.
    consumer_group_overrides: Mapping[str, ConsumerGroupSettings] = MappingProxyType({})
    consumer_group_max_size: int = 2_147_483_647
    #: The first is used where members do not ask for another.
    consumer_group_assignors: tuple[str, ...] = ("uniform", "range")
    consumer_group_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    consumer_group_regex_refresh_interval_ms: int = 600_000

    def consumer_settings(self, group_id: str) -> ConsumerGroupSettings:
        """What holds for one consumer group."""
        return self.consumer_group_overrides.get(group_id, self.consumer_group)


class Phase(enum.Enum):
    """The states of a classic group, by the names Kafka shows."""

    #: No members; only committed offsets, if any.
    EMPTY = "Empty"
    #: Members are asked to join again; their JoinGroup requests are parked.
    PREPARING_REBALANCE = "PreparingRebalance"
    #: Everybody has joined; SyncGroup requests are parked until the leader sends the assignment.
    COMPLETING_REBALANCE = "CompletingRebalance"
    #: Every member can have its assignment.
    STABLE = "Stable"
    #: What a group that does not exist is called; no group is ever stored in this state.
    DEAD = "Dead"


class Protocol(NamedTuple):
    """One assignment protocol a member supports, and what the member says to the leader in it."""

    name: str
    metadata: bytes


class Member(NamedTuple):
    """A member of a classic group."""

    member_id: str
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    #: What it supports, best first, each name once.
    protocols: tuple[Protocol, ...]
    group_instance_id: str | None = None
    assignment: bytes = b""
    #: True until its first join is answered: such a member cannot send heartbeats yet, so being parked does
    #: not keep it alive for ever.
    is_new: bool = False

    def metadata(self, protocol_name: str | None) -> bytes:
        """What the member said for `protocol_name`."""
        said = (protocol.metadata for protocol in self.protocols if protocol.name == protocol_name)
        return next(said, b"")

    def vote(self, candidates: frozenset[str]) -> str:
        """The first of the member's protocols that everybody supports."""
        return next(protocol.name for protocol in self.protocols if protocol.name in candidates)


_NOTHING: Mapping[str, int] = MappingProxyType({})
_NO_MEMBERS: Mapping[str, Member] = MappingProxyType({})
_NO_NAMES: Mapping[str, str] = MappingProxyType({})


class ClassicGroup(NamedTuple):
    """A group whose members assign the partitions among themselves (the protocol before KIP-848)."""

    group_id: str
    phase: Phase = Phase.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    #: When the phase began; an empty group's offsets age from here (KIP-211). -1: written by an old broker.
    phase_began_ms: int = -1
    members: Mapping[str, Member] = _NO_MEMBERS
    #: group.instance.id -> member id of the static members.
    static_members: Mapping[str, str] = _NO_NAMES
    #: How many members support each protocol, so that a join need not ask them all.
    supporters: Mapping[str, int] = _NOTHING
    #: Topics the members of a consumer group subscribe to; None when that cannot be known.
    subscribed_topics: frozenset[str] | None = None

    #: Member ids given out with MEMBER_ID_REQUIRED and not used yet.
    pending_members: frozenset[str] = frozenset()
    #: Parked JoinGroup and SyncGroup requests: member id -> token.
    joining: Mapping[str, int] = _NOTHING
    syncing: Mapping[str, int] = _NOTHING
    #: Members that have not sent SyncGroup in this generation.
    unsynced: frozenset[str] = frozenset()
    #: The rebalance under way began from an empty group: it waits for `initial_delay_ms`, and again as long
    #: as members keep coming (`member_added`) and `initial_remaining_ms` is not used up.
    is_initial_rebalance: bool = False
    member_added: bool = False
    initial_delay_ms: int = 0
    initial_remaining_ms: int = 0

    @property
    def is_simple(self) -> bool:
        """True for a group that only stores offsets and has never had a member."""
        return self.protocol_type is None and self.phase is Phase.EMPTY and not self.pending_members

    @property
    def is_consumer_group(self) -> bool:
        """True if the members speak Kafka's consumer protocol, which the coordinator can read."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def all_members_joined(self) -> bool:
        """True once nobody has to be waited for any more."""
        return len(self.joining) == len(self.members) and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The group waits as long as its most patient member asks for."""
        return max((0, *(member.rebalance_timeout_ms for member in self.members.values())))

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Can somebody with these protocols be a member? The first may bring any, later ones one all have."""
        if self.phase is Phase.EMPTY:
            return bool(protocol_type and protocols)
        return self.protocol_type == protocol_type and any(
            self.supporters.get(protocol.name, 0) == len(self.members) for protocol in protocols
        )

    def chosen_protocol(self) -> str:
        """The common protocol most members prefer; between equals the longest-standing member decides."""
        candidates = frozenset(
            name for name, supporters in self.supporters.items() if supporters == len(self.members)
        )
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def is_subscribed_to(self, topic: str) -> bool:
        """Is somebody reading `topic`? A consumer group that cannot be understood may read anything."""
        if self.subscribed_topics is not None:
            return topic in self.subscribed_topics
        return self.is_consumer_group


class CommittedOffset(NamedTuple):
    """One committed offset."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = -1
    #: When the commit carried its own retention (OffsetCommit v2-4); -1 otherwise.
    expire_timestamp_ms: int = -1
    topic_id: bytes = NO_TOPIC_ID

    def is_for(self, topic_id: bytes) -> bool:
        """False if the offset was committed to another topic that had the same name."""
        return topic_id == self.topic_id or NO_TOPIC_ID in (topic_id, self.topic_id)


PartitionOffsets = VersionedMap[int, CommittedOffset]
TopicOffsets = VersionedMap[str, PartitionOffsets]

#: The kinds of groups. Share groups (KIP-932) and streams groups (KIP-1071) would stand here too.
Group = Union[ClassicGroup, ConsumerGroup]


class Groups(NamedTuple):
    """Everything one shard knows.

    `offsets` is keyed by group, topic, partition. Offsets of open transactions stand beside it, in `pending`,
    and move over when their marker arrives.
    """

    groups: VersionedMap[str, Group]
    offsets: VersionedMap[str, TopicOffsets]
    #: The ids of those groups that depend on the cluster's topics.
    consumer_group_ids: VersionedMap[str, bool]
    pending: PendingOffsets
    #: The cluster's topics, as the coordinator was last told, and the version that last had new ones. Soft.
    topics: TopicDirectory = NO_TOPICS
    new_topics_version: int = -1
    #: Groups that the search for old offsets, which is under way, has still to look at. Soft.
    expiry_backlog: tuple[str, ...] = ()

    @classmethod
    def empty(cls) -> Groups:
        """The state of a shard whose partition is empty."""
        return cls(VersionedMap(), VersionedMap(), VersionedMap(), PendingOffsets.empty())

    def classic(self, group_id: str) -> ClassicGroup | None:
        """The group if it is a classic one."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def consumer(self, group_id: str) -> ConsumerGroup | None:
        """The group if it is a consumer group."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def committed(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """The offset committed for a partition, if there is one."""
        topics = self.offsets.get(group_id)
        partitions = topics.get(topic) if topics is not None else None
        return partitions.get(partition) if partitions is not None else None

    def has_offset(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether a partition has an offset, or may get one by a marker."""
        return self.committed(group_id, topic, partition) is not None or bool(
            self.pending.at(group_id, topic, partition)
        )

    def with_group(self, group: Group) -> Groups:
        """The state with `group` put in or replaced."""
        group_id, ids = group.group_id, self.consumer_group_ids
        is_consumer = isinstance(group, ConsumerGroup)
        if is_consumer != (group_id in ids):
            ids = ids.with_item(group_id, True) if is_consumer else ids.without(group_id)
        return self._replace(groups=self.groups.with_item(group_id, group), consumer_group_ids=ids)

    def without_group(self, group_id: str) -> Groups:
        """The state without a group; its offsets stay."""
        ids = self.consumer_group_ids
        return self._replace(
            groups=self.groups.without(group_id),
            consumer_group_ids=ids.without(group_id) if group_id in ids else ids,
        )

    def with_offsets(
        self, group_id: str, changes: Mapping[str, Mapping[int, CommittedOffset | None]]
    ) -> Groups:
        """The state after commits and, where the new value is None, deletions in one group.

        What open transactions have for these partitions comes too late to count, or is deleted with them.
        """
        state = self.with_committed(group_id, changes)
        if group_id not in self.pending.by_group:
            return state
        pending = self.pending
        for topic, partitions in changes.items():
            for partition, offset in partitions.items():
                place = topic, partition
                if offset is None:
                    pending = pending.without_place(group_id, place)
                else:
                    pending = pending.superseded(group_id, place)
        return state._replace(pending=pending)

    def with_committed(
        self, group_id: str, changes: Mapping[str, Mapping[int, CommittedOffset | None]]
    ) -> Groups:
        """The state with other committed offsets, whatever is pending."""
        topics = self.offsets.get(group_id) or VersionedMap()
        changed_topics: dict[str, PartitionOffsets] = {}
        emptied_topics: list[str] = []
        for topic, partitions in changes.items():
            before = topics.get(topic) or VersionedMap()
            after = before.with_changes(
                {partition: offset for partition, offset in partitions.items() if offset is not None},
                [partition for partition, offset in partitions.items() if offset is None],
            )
            if after:
                changed_topics[topic] = after
            else:
                emptied_topics.append(topic)
        topics = topics.with_changes(changed_topics, emptied_topics)
        if topics:
            return self._replace(offsets=self.offsets.with_item(group_id, topics))
        return self._replace(offsets=self.offsets.without(group_id))

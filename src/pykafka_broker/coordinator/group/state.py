"""What the group coordinator knows: groups of all kinds, and committed offsets.

`Groups` is the state of one shard, that is, of one partition of `__consumer_offsets`. All of it is immutable:
named tuples (they are cheap to declare at start and to make on the hot path), versioned maps for the two
tables that grow, and plain mappings inside a group that nobody changes in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Union

from pykafka_broker.coordinator.group.classic.state import ClassicGroup
from pykafka_broker.coordinator.group.consumer.state import ConsumerGroup
from pykafka_broker.coordinator.group.pending import PendingOffsets, Place
from pykafka_broker.coordinator.group.topics import NO_TOPICS, TopicDirectory
from pykafka_broker.coordinator.versioned_map import VersionedMap

NO_TOPIC_ID = bytes(16)
NO_EXPIRY = -1


class CommittedOffset(NamedTuple):
    """One committed offset."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = -1
    #: When the commit carried its own retention (OffsetCommit v2-4).
    expire_timestamp_ms: int = NO_EXPIRY
    topic_id: bytes = NO_TOPIC_ID

    def is_for(self, topic_id: bytes) -> bool:
        """False if the offset was committed to another topic that had the same name."""
        return topic_id == self.topic_id or NO_TOPIC_ID in (topic_id, self.topic_id)


#: A group's offsets; `pending.py` has the place's meaning.
GroupOffsets = VersionedMap[Place, CommittedOffset]

#: The kinds of groups. Share groups (KIP-932) and streams groups (KIP-1071) would stand here too.
Group = Union[ClassicGroup, ConsumerGroup]


class Groups(NamedTuple):
    """Everything one shard knows.

    `offsets` is keyed by group, then by topic and partition. Offsets of open transactions stand beside it,
    in `pending`, and move over when their marker arrives.
    """

    groups: VersionedMap[str, Group]
    offsets: VersionedMap[str, GroupOffsets]
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
        offsets = self.offsets.get(group_id)
        return None if offsets is None else offsets.get((topic, partition))

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

    def with_offsets(self, group_id: str, committed: Mapping[Place, CommittedOffset]) -> Groups:
        """The state after commits in one group: what open transactions have there comes too late to count."""
        state = self.with_committed(group_id, committed)
        if group_id not in self.pending.by_group:
            return state
        pending = self.pending
        for place in committed:
            pending = pending.superseded(group_id, place)
        return state._replace(pending=pending)

    def with_committed(self, group_id: str, committed: Mapping[Place, CommittedOffset]) -> Groups:
        """The state with other committed offsets in one group, whatever is pending."""
        offsets = self.offsets
        before = offsets.get(group_id)
        after = VersionedMap.owning(dict(committed)) if before is None else before.with_changes(committed)
        return Groups(
            self.groups,
            offsets.with_item(group_id, after),
            self.consumer_group_ids,
            self.pending,
            self.topics,
            self.new_topics_version,
            self.expiry_backlog,
        )

    def without_offsets(self, group_id: str, places: Iterable[Place]) -> Groups:
        """The state after deletions in one group; what open transactions have there goes too."""
        pending = self.pending
        for place in places if group_id in pending.by_group else ():
            pending = pending.without_place(group_id, place)
        offsets = self.offsets
        before = offsets.get(group_id)
        if before is not None:
            after = before.with_changes({}, places)
            offsets = offsets.with_item(group_id, after) if after else offsets.without(group_id)
        return self._replace(offsets=offsets, pending=pending)

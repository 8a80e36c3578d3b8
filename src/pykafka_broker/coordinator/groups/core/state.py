"""The state of the group coordinator: groups of all kinds, and committed offsets.

`Groups` is the state of one shard, that is, of one partition of `__consumer_offsets`. All of it is immutable:
named tuples (they are cheap to declare at start and to make on the hot path), versioned maps for the two
tables that grow, and plain mappings inside a group that are never changed in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Union

from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup
from pykafka_broker.coordinator.groups.core.committed_offset import CommittedOffset
from pykafka_broker.coordinator.groups.core.consumer.state import ConsumerGroup
from pykafka_broker.coordinator.groups.core.pending import PendingOffsets
from pykafka_broker.coordinator.groups.core.share.state import ShareGroup
from pykafka_broker.coordinator.groups.core.streams.state import StreamsGroup
from pykafka_broker.coordinator.groups.core.topics import NO_TOPICS, TopicDirectory
from pykafka_broker.machine.versioned_map import VersionedMap
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.system.named_tuple import NamedTuple

#: A group's offsets, by (topic, partition).
GroupOffsets = VersionedMap[PartitionKey, CommittedOffset]

#: The kinds of groups.
Group = Union[ClassicGroup, ConsumerGroup, ShareGroup, StreamsGroup]


#: The number of offsets that each group has committed to each topic: by topic, then by group.
OffsetCounts = VersionedMap[str, VersionedMap[str, int]]


class Deletion(NamedTuple):
    """A group whose deletion goes on slice by slice, and the requests about it that wait for its end."""

    #: The token of the deletion request; None once it is answered.
    token: int | None
    #: Events, in the order in which they came.
    waiting: tuple[Any, ...] = ()
    #: The deletion is over; only the waiting requests are left to handle.
    is_done: bool = False


class DeletedTopic(NamedTuple):
    """A topic whose offsets are being forgotten, and the groups still to be checked."""

    topic: str
    topic_ids: tuple[bytes, ...]
    #: When it was deleted: offsets committed later without a topic id are for a new topic of that name.
    deleted_ms: int
    group_ids: tuple[str, ...]


class Groups(NamedTuple):
    """Everything one shard knows.

    `offsets` is keyed by group, then by topic and partition. Offsets of open transactions are in `pending`
    until their marker arrives. `offset_counts` tells which groups have offsets of a topic.
    """

    groups: VersionedMap[str, Group]
    offsets: VersionedMap[str, GroupOffsets]
    offset_counts: OffsetCounts
    #: The ids of all groups but classic ones: they depend on the cluster's topics.
    consumer_group_ids: VersionedMap[str, bool]
    pending: PendingOffsets
    #: The cluster's topics, as the coordinator was last told, and the metadata version that last added one.
    #: Soft.
    topics: TopicDirectory = NO_TOPICS
    new_topics_version: int = -1
    #: Groups that the running search for old offsets still has to check. Soft.
    expiry_backlog: tuple[str, ...] = ()
    #: Groups that are being deleted. Soft.
    deletions: Mapping[str, Deletion] = {}
    #: Deleted topics that still have offsets. Soft.
    deleted_topics: tuple[DeletedTopic, ...] = ()

    @classmethod
    def empty(cls) -> Groups:
        """The state of a shard whose partition is empty."""
        return cls(VersionedMap(), VersionedMap(), VersionedMap(), VersionedMap(), PendingOffsets.empty())

    def classic(self, group_id: str) -> ClassicGroup | None:
        """The group if it is a classic one."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def consumer(self, group_id: str) -> ConsumerGroup | None:
        """The group if it is a consumer group."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def share(self, group_id: str) -> ShareGroup | None:
        """The group if it is a share group."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ShareGroup) else None

    def streams(self, group_id: str) -> StreamsGroup | None:
        """The group if it is a streams group."""
        group = self.groups.get(group_id)
        return group if isinstance(group, StreamsGroup) else None

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
        follows_topics = not isinstance(group, ClassicGroup)
        if follows_topics != (group_id in ids):
            ids = ids.with_item(group_id, True) if follows_topics else ids.without(group_id)
        return self._replace(groups=self.groups.with_item(group_id, group), consumer_group_ids=ids)

    def without_group(self, group_id: str) -> Groups:
        """The state without a group; its offsets stay."""
        ids = self.consumer_group_ids
        return self._replace(
            groups=self.groups.without(group_id),
            consumer_group_ids=ids.without(group_id) if group_id in ids else ids,
        )

    def with_offsets(self, group_id: str, committed: Mapping[PartitionKey, CommittedOffset]) -> Groups:
        """The state after commits in one group, which supersede the pending offsets of their partitions."""
        state = self.with_committed(group_id, committed)
        if group_id not in self.pending.by_group:
            return state
        pending = self.pending
        for place in committed:
            pending = pending.superseded(group_id, place)
        return state._replace(pending=pending)

    def with_committed(self, group_id: str, committed: Mapping[PartitionKey, CommittedOffset]) -> Groups:
        """The state with other committed offsets in one group, whatever is pending."""
        offsets = self.offsets
        before = offsets.get(group_id)
        added: Iterable[PartitionKey] = ()
        if before is None:
            after = VersionedMap.owning(dict(committed))
            added = committed
        else:
            count = len(before)
            after = before.with_changes(committed)
            if len(after) > count:
                added = before.added_next()
        counts = self.offset_counts
        return Groups(
            self.groups,
            offsets.with_item(group_id, after),
            _counted(counts, group_id, added, 1) if added else counts,
            self.consumer_group_ids,
            self.pending,
            self.topics,
            self.new_topics_version,
            self.expiry_backlog,
            self.deletions,
            self.deleted_topics,
        )

    def without_offsets(self, group_id: str, places: Iterable[PartitionKey]) -> Groups:
        """The state after deletions in one group; offsets of open transactions there go too."""
        pending = self.pending
        for place in places if group_id in pending.by_group else ():
            pending = pending.without_place(group_id, place)
        offsets, counts = self.offsets, self.offset_counts
        before = offsets.get(group_id)
        if before is not None:
            after = before.with_changes({}, places)
            counts = _counted(counts, group_id, before.removed_next(), -1)
            offsets = offsets.with_item(group_id, after) if after else offsets.without(group_id)
        return self._replace(offsets=offsets, offset_counts=counts, pending=pending)


def _counted(
    counts: OffsetCounts, group_id: str, places: Iterable[PartitionKey], change: int
) -> OffsetCounts:
    """The counts after a group has got, or lost, an offset at each of `places`."""
    changes: dict[str, int] = {}
    for topic, _ in places:
        changes[topic] = changes.get(topic, 0) + change
    for topic, by in changes.items():
        groups: VersionedMap[str, int] = counts.get(topic) or VersionedMap()
        count = groups.get(group_id, 0) + by
        groups = groups.with_item(group_id, count) if count else groups.without(group_id)
        counts = counts.with_item(topic, groups) if groups else counts.without(topic)
    return counts

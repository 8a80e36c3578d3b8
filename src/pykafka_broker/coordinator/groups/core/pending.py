"""Offsets committed in transactions whose outcome is not known yet.

Each partition of a group keeps them in the order in which they were written. When a transaction commits, its
offset counts unless an offset that was written later already counts. The offset written last wins, not the
one decided last, as in Apache Kafka 4.3.
"""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.committed_offset import CommittedOffset
from pykafka_broker.machine.versioned_map import VersionedMap
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.system.named_tuple import NamedTuple


class PendingOffset(NamedTuple):
    """The offset that one producer is to commit for one partition."""

    producer_id: int
    committed: CommittedOffset
    #: A later offset counts already, so this one never will; readers still have to wait for its marker.
    is_superseded: bool = False


Places = VersionedMap[PartitionKey, tuple[PendingOffset, ...]]


class PendingOffsets(NamedTuple):
    """All pending offsets of a shard."""

    by_group: VersionedMap[str, Places]
    #: The (group, topic, partition) of each producer's pending offsets.
    by_producer: VersionedMap[int, VersionedMap[tuple[str, str, int], bool]]

    @classmethod
    def empty(cls) -> PendingOffsets:
        return cls(VersionedMap(), VersionedMap())

    def at(self, group_id: str, topic: str, partition: int) -> tuple[PendingOffset, ...]:
        """The pending offsets of one partition, oldest first."""
        places = self.by_group.get(group_id)
        return () if places is None else places.get((topic, partition), ())

    def places_of(self, group_id: str) -> tuple[PartitionKey, ...]:
        """The partitions for which a group has something pending."""
        return tuple(self.by_group.get(group_id) or ())

    def with_offset(
        self, producer_id: int, group_id: str, place: PartitionKey, committed: CommittedOffset
    ) -> PendingOffsets:
        """The state after a producer's commit, which replaces the producer's earlier one."""
        others = tuple(each for each in self.at(group_id, *place) if each.producer_id != producer_id)
        changed = self._with_place(group_id, place, (*others, PendingOffset(producer_id, committed)))
        where = changed.by_producer.get(producer_id) or VersionedMap()
        where = where.with_item((group_id, *place), True)
        return changed._replace(by_producer=changed.by_producer.with_item(producer_id, where))

    def superseded(self, group_id: str, place: PartitionKey) -> PendingOffsets:
        """Mark all offsets pending for a partition as superseded: a later commit stands."""
        pending = self.at(group_id, *place)
        if not pending:
            return self
        return self._with_place(group_id, place, tuple(each._replace(is_superseded=True) for each in pending))

    def without_place(self, group_id: str, place: PartitionKey) -> PendingOffsets:
        """The state after the offset of a partition has been deleted: nothing comes back by a marker."""
        state = self
        for each in self.at(group_id, *place):
            state = state._without_producer_at(each.producer_id, group_id, place)
        return state._with_place(group_id, place, ())

    def ended(
        self, producer_id: int, *, commit: bool
    ) -> tuple[PendingOffsets, list[tuple[str, PartitionKey, CommittedOffset]]]:
        """The state after a producer's marker, and the offsets that count from now on."""
        state = self
        counting: list[tuple[str, PartitionKey, CommittedOffset]] = []
        for group_id, topic, partition in sorted(self.by_producer.get(producer_id, ())):
            place = topic, partition
            pending = state.at(group_id, topic, partition)
            index = next(i for i, each in enumerate(pending) if each.producer_id == producer_id)
            earlier, later = pending[:index], pending[index + 1 :]
            if commit and not pending[index].is_superseded:
                counting.append((group_id, place, pending[index].committed))
                earlier = tuple(each._replace(is_superseded=True) for each in earlier)
            state = state._with_place(group_id, place, earlier + later)
        return state._replace(by_producer=state.by_producer.without(producer_id)), counting

    def _with_place(
        self, group_id: str, place: PartitionKey, pending: tuple[PendingOffset, ...]
    ) -> PendingOffsets:
        places = self.by_group.get(group_id) or VersionedMap()
        places = places.with_item(place, pending) if pending else places.without(place)
        if places:
            return self._replace(by_group=self.by_group.with_item(group_id, places))
        return self._replace(by_group=self.by_group.without(group_id))

    def _without_producer_at(self, producer_id: int, group_id: str, place: PartitionKey) -> PendingOffsets:
        where = self.by_producer[producer_id].without((group_id, *place))
        if where:
            return self._replace(by_producer=self.by_producer.with_item(producer_id, where))
        return self._replace(by_producer=self.by_producer.without(producer_id))

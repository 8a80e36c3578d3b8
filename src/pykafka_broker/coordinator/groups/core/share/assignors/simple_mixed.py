"""SimpleAssignor for members with different subscriptions (Apache Kafka 4.3).

Each topic is assigned by itself to its subscribers, as `simple.py` does for all topics at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pykafka_broker.coordinator.groups.core.share.assignors.spec import (
    Assigned,
    GroupSpec,
    desired_counts,
    desired_sharing,
)
from pykafka_broker.coordinator.groups.core.share.assignors.tables import (
    NextMember,
    Owned,
    Table,
    numbers,
    roomy,
)
from pykafka_broker.protocol.java_hash import int_hash, uuid_hash


def assign_mixed(spec: GroupSpec) -> Mapping[str, Assigned]:
    """The partitions of each member; empty if no topic exists."""
    topic_ids: Table[bytes, None] = Table(uuid_hash)
    subscribers: dict[bytes, list[int]] = {}
    for index, member in enumerate(spec.members.values()):
        for topic_id in member.topic_ids:
            topic_ids.put(topic_id, None)
            subscribers.setdefault(topic_id, []).append(index)
    if not subscribers:
        return {}
    before = [member.assigned for member in spec.members.values()]
    owned = [Owned(dict(assigned)) for assigned in before]
    for topic_id in topic_ids.in_order():
        partitions = spec.assignable.get(topic_id, ())
        _TopicAssignment(topic_id, partitions, subscribers[topic_id], before, owned).make()
    return dict(zip(spec.members, (each.result() for each in owned), strict=True))


class _TopicAssignment:
    """The partitions of one topic. Members are numbers, their places in the group's order."""

    def __init__(
        self,
        topic_id: bytes,
        targets: Sequence[int],
        subscribers: list[int],
        before: Sequence[Assigned],
        owned: list[Owned],
    ) -> None:
        self._topic_id = topic_id
        self._targets = targets
        self._subscribers = subscribers
        self._before = before
        self._owned = owned
        self._sharing = desired_sharing(len(subscribers), len(targets))
        counts = desired_counts(len(subscribers), len(targets))
        #: Only of subscribers: other members get nothing.
        self._counts = dict(zip(subscribers, counts, strict=True))
        self._by_partition: Table[int, Table[int, None]] = Table(int_hash, roomy(len(targets)))
        self._by_member: Table[int, Table[int, None]] = Table(int_hash, roomy(len(subscribers)))

    def make(self) -> None:
        """Take surplus partitions from members, then give partitions to members that have too few."""
        for member, assigned in enumerate(self._before):
            for partition in assigned.get(self._topic_id, ()):
                self._by_partition.setdefault(partition, numbers).put(member, None)
                self._by_member.setdefault(member, numbers).put(partition, None)
        for member in self._by_member.in_order():
            self._take_the_surplus(member)
        for partition in self._by_partition.in_order():
            self._share_less(partition)
        for partition in self._targets:
            self._by_partition.setdefault(partition, lambda: numbers(capacity=roomy(len(self._subscribers))))
        self._give_the_rest()

    def _take_the_surplus(self, member: int) -> None:
        partitions = self._by_member.items[member]
        surplus = max(len(partitions.items) - self._counts.get(member, 0), 0)
        for partition in partitions.in_order()[:surplus]:
            self._owned[member].discard(self._topic_id, partition)
            del self._by_partition.items[partition].items[member]
            del partitions.items[partition]

    def _share_less(self, partition: int) -> None:
        """Take a partition from members until it has no more members than it needs."""
        members = self._by_partition.items[partition]
        for member in members.in_order()[: max(len(members.items) - self._sharing, 0)]:
            self._owned[member].discard(self._topic_id, partition)
            del members.items[member]
            del self._by_member.items[member].items[partition]

    def _give_the_rest(self) -> None:
        """Give partitions to members that have too few, one to each in turn.

        A partition that needs another member stays as it is if all members with too few have it already.
        """
        unfilled = numbers(
            (member for member in self._subscribers if self._count_of(member) < self._counts[member]),
            roomy(len(self._owned)),
        )
        turns = NextMember(unfilled)
        for partition in self._by_partition.in_order():
            members = self._by_partition.items[partition]
            missing = self._sharing - len(members.items)
            if missing > 0:
                for member in turns.candidates():
                    if member in members.items:
                        continue
                    self._owned[member].add(self._topic_id, partition)
                    self._by_member.setdefault(member, numbers).put(partition, None)
                    turns.gave(member, is_full=self._count_of(member) >= self._counts[member])
                    missing -= 1
                    if not missing:
                        break
            if not unfilled.items:
                break

    def _count_of(self, member: int) -> int:
        partitions = self._by_member.items.get(member)
        return 0 if partitions is None else len(partitions.items)

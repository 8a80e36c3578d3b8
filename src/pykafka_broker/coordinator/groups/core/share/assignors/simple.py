"""SimpleAssignor for members that all subscribe to the same topics (Apache Kafka 4.3).

Balance comes first: the members' numbers of partitions differ by at most one, and no partition has more
members than it needs. Stickiness comes second: a member keeps the partitions that it has.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.coordinator.groups.core.share.assignors.spec import (
    Assigned,
    GroupSpec,
    desired_counts,
    desired_sharing,
)
from pykafka_broker.coordinator.groups.core.share.assignors.tables import (
    NextMember,
    Owned,
    Place,
    Table,
    numbers,
    place_hash,
    roomy,
)


def assign_alike(spec: GroupSpec) -> Mapping[str, Assigned]:
    """The partitions of each member; empty if no topic exists."""
    topic_ids = next(iter(spec.members.values())).topic_ids
    if not topic_ids:
        return {}
    return _Assignment(spec, topic_ids).made()


class _Assignment:
    """Members are numbers, their places in the group's order."""

    def __init__(self, spec: GroupSpec, topic_ids: tuple[bytes, ...]) -> None:
        self._spec = spec
        self._topic_ids = frozenset(topic_ids)
        self._targets: list[Place] = [
            (topic_id, partition) for topic_id in topic_ids for partition in spec.assignable.get(topic_id, ())
        ]
        count = len(spec.members)
        self._sharing = desired_sharing(count, len(self._targets))
        self._counts = desired_counts(count, len(self._targets))
        self._owned = [Owned(dict(member.assigned)) for member in spec.members.values()]
        self._by_place: Table[Place, Table[int, None]] = Table(place_hash, roomy(len(self._targets)))
        self._by_member: list[Table[Place, None]] = [Table(place_hash) for _ in spec.members]
        self._unfilled = numbers(capacity=roomy(count))
        self._overfilled = numbers(capacity=roomy(count))

    def made(self) -> Mapping[str, Assigned]:
        """Take surplus partitions from members, then give partitions to members that have too few."""
        for member, spec in enumerate(self._spec.members.values()):
            self._keep_what_is_subscribed(member, spec.assigned)
        for member in self._overfilled.in_order():
            self._take_the_surplus(member)
        for place in self._by_place.in_order():
            self._share_less(place)
        for place in self._targets:
            self._by_place.setdefault(place, numbers)
        self._give_the_rest()
        return dict(zip(self._spec.members, (owned.result() for owned in self._owned), strict=True))

    def _keep_what_is_subscribed(self, member: int, assigned: Assigned) -> None:
        count = 0
        for topic_id, partitions in assigned.items():
            if topic_id not in self._topic_ids:
                self._owned[member].forget(topic_id)
                continue
            for partition in partitions:
                place = topic_id, partition
                self._by_place.setdefault(place, numbers).put(member, None)
                self._by_member[member].put(place, None)
                count += 1
                if count >= self._counts[member]:
                    self._owned[member].copied()
        if count < self._counts[member]:
            self._unfilled.put(member, None)
        elif count > self._counts[member]:
            self._overfilled.put(member, None)

    def _take_the_surplus(self, member: int) -> None:
        places = self._by_member[member]
        for topic_id, partition in places.in_order()[: len(places.items) - self._counts[member]]:
            self._owned[member].discard(topic_id, partition)
            del self._by_place.items[topic_id, partition].items[member]
            del places.items[topic_id, partition]

    def _share_less(self, place: Place) -> None:
        """Take a partition from members until it has no more members than it needs."""
        members = self._by_place.items[place]
        for member in members.in_order()[: max(len(members.items) - self._sharing, 0)]:
            self._owned[member].discard(*place)
            del members.items[member]
            del self._by_member[member].items[place]
            self._unfilled.put(member, None)

    def _give_the_rest(self) -> None:
        """Give partitions to members that have too few, one to each in turn.

        A partition that needs another member stays as it is if all members with too few have it already.
        """
        if not self._unfilled.items:
            return
        turns = NextMember(self._unfilled)
        for place in self._by_place.in_order():
            members = self._by_place.items[place]
            missing = self._sharing - len(members.items)
            if missing > 0:
                for member in turns.candidates():
                    if member in members.items:
                        continue
                    self._owned[member].add(*place)
                    self._by_member[member].put(place, None)
                    turns.gave(member, is_full=len(self._by_member[member].items) >= self._counts[member])
                    missing -= 1
                    if not missing:
                        break
            if not self._unfilled.items:
                break

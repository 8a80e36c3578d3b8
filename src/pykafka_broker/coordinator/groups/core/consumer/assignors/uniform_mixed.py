"""The `uniform` assignor for groups whose members subscribe to different topics.

First members lose partitions of topics that they no longer subscribe to. Then free partitions go to the
members with the fewest, topic by topic, topics with the most partitions per subscriber first. Then topics are
balanced one by one until a whole round changes nothing, or after `MAX_ROUNDS` rounds. The members then have
equal numbers of partitions as far as their subscriptions allow, or nearly so.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from pykafka_broker.coordinator.groups.core.consumer.assignors.spec import Assignment, GroupSpec
from pykafka_broker.protocol.java_hash import string_hash, walked

#: Each round is assumed to halve the imbalance.
MAX_ROUNDS = 16
NO_OWNER = -1


def assign_mixed(spec: GroupSpec) -> Mapping[str, Assignment]:
    """Assign all partitions of the subscribed topics."""
    return _Mixed(spec).build()


class _Mixed:
    """One run. Members are known by their place in `member_ids`, which breaks ties between them."""

    def __init__(self, spec: GroupSpec) -> None:
        self.spec = spec
        self.member_ids = walked(spec.members, string_hash)
        #: The members that subscribe to each topic, in order.
        self.subscribers: dict[bytes, list[int]] = {}
        for place, member_id in enumerate(self.member_ids):
            for topic_id in spec.members[member_id].topic_ids:
                self.subscribers.setdefault(topic_id, []).append(place)
        #: The owner of each partition of each topic.
        self.owners = {
            topic_id: [NO_OWNER] * spec.partition_counts[topic_id] for topic_id in self.subscribers
        }
        #: The number of partitions of each member.
        self.sizes = [0] * len(self.member_ids)

    def build(self) -> Mapping[str, Assignment]:
        if not self.subscribers:
            return {}
        for place, member_id in enumerate(self.member_ids):
            member = self.spec.members[member_id]
            for topic_id, partitions in member.assignment.items():
                if topic_id in member.topic_ids:
                    for partition in partitions:
                        self._give(topic_id, partition, place)
        self._assign_free_partitions()
        shared = [topic_id for topic_id, members in self.subscribers.items() if len(members) >= 2]
        self._balance(self._by_load(shared))

        result: list[dict[bytes, set[int]]] = [{} for _ in self.member_ids]
        for topic_id, owners in self.owners.items():
            for partition, owner in enumerate(owners):
                result[owner].setdefault(topic_id, set()).add(partition)
        return {
            member_id: {topic_id: frozenset(partitions) for topic_id, partitions in result[place].items()}
            for place, member_id in enumerate(self.member_ids)
        }

    def _give(self, topic_id: bytes, partition: int, place: int) -> None:
        owners = self.owners[topic_id]
        if owners[partition] != NO_OWNER:
            self.sizes[owners[partition]] -= 1
        owners[partition] = place
        self.sizes[place] += 1

    def _by_load(self, topic_ids: Iterable[bytes]) -> list[bytes]:
        """Most partitions per subscriber first, then fewest subscribers, then by id."""

        def rank(topic_id: bytes) -> tuple[float, int, tuple[int, int]]:
            subscribers = len(self.subscribers[topic_id])
            return -len(self.owners[topic_id]) / subscribers, subscribers, struct.unpack(">qq", topic_id)

        return sorted(topic_ids, key=rank)

    def _assign_free_partitions(self) -> None:
        for topic_id in self._by_load(self.owners):
            free = [partition for partition, owner in enumerate(self.owners[topic_id]) if owner == NO_OWNER]
            if free:
                balancer = _Balancer(self.subscribers[topic_id], self.sizes)
                for partition in free:
                    self._give(topic_id, partition, balancer.next_least_loaded())

    def _balance(self, topic_ids: list[bytes]) -> None:
        last_changed: bytes | None = None
        for _ in range(MAX_ROUNDS):
            for topic_id in topic_ids:
                if topic_id == last_changed:
                    return  # nothing has moved in a whole round
                if self._balance_topic(topic_id) or last_changed is None:
                    last_changed = topic_id

    def _balance_topic(self, topic_id: bytes) -> bool:
        """Move partitions from the most to the least loaded members; did any move?"""
        balancer = _Balancer(self.subscribers[topic_id], self.sizes)
        if balancer.imbalance <= 1:
            return False
        owned: dict[int, list[int]] = {}
        for partition, owner in enumerate(self.owners[topic_id]):
            owned.setdefault(owner, []).append(partition)
        moved = False
        while not balancer.balanced():
            giver = balancer.next_most_loaded()
            while giver is not None and not owned.get(giver):
                balancer.exclude_most_loaded()
                giver = balancer.next_most_loaded()
            if giver is None:
                break
            partition = owned[giver].pop()
            taker = balancer.next_least_loaded()
            if balancer.balanced():
                break
            self._give(topic_id, partition, taker)
            moved = True
        return moved


class _Balancer:
    """Two ranges over the members in order of their number of partitions, growing towards each other.

    In the least loaded range (from the left) each member receives one partition; in the most loaded range
    (from the right) each gives one away. When every member of a range has had its turn, the range's level
    moves by one, and the range takes in the neighbours on that level.

        partitions          [.....]##     <- excluded: most partitions, but none of this topic
                          ##[#####]##
              [..   ]#####[#####]##
              [#####]#####[#####]##
               least        most

    It counts from the sizes at its creation, and the partitions that it has moved since.
    """

    def __init__(self, members: list[int], sizes: list[int]) -> None:
        self._sizes = sizes
        self._sorted = sorted(members, key=lambda place: (sizes[place], place))
        self._least_end = 0
        self._least_level = sizes[self._sorted[0]] - 1
        self._next_least = 0
        self._most_start = self._most_end = len(self._sorted)
        self._most_level = sizes[self._sorted[-1]] + 1
        self._next_most = len(self._sorted) - 1
        self.imbalance = sizes[self._sorted[-1]] - sizes[self._sorted[0]]

    def balanced(self) -> bool:
        return self._most_level - self._least_level <= 1

    def next_least_loaded(self) -> int:
        """The member that is to get the next partition."""
        if self._next_least >= self._least_end:
            self._least_level += 1
            while (
                self._least_end < len(self._sorted)
                and self._sizes[self._sorted[self._least_end]] == self._least_level
            ):
                self._least_end += 1
            self._next_least = 0
        found = self._sorted[self._next_least]
        self._next_least += 1
        return found

    def next_most_loaded(self) -> int | None:
        """The member that is to give a partition away; None if no member is left that could."""
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                # All members in the range were excluded: go on at the level of the next.
                self._most_level = self._sizes[self._sorted[self._most_start - 1]]
            else:
                self._most_level -= 1
            while (
                self._most_start > 0 and self._sizes[self._sorted[self._most_start - 1]] == self._most_level
            ):
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return None
        found = self._sorted[self._next_most]
        self._next_most -= 1
        return found

    def exclude_most_loaded(self) -> None:
        """The member just returned has no partition of this topic: leave it out from now on."""
        place = self._next_most + 1
        self._most_end -= 1
        swapped = self._sorted[self._most_end]
        self._sorted[self._most_end], self._sorted[place] = self._sorted[place], swapped

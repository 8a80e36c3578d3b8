"""The order of Java's hash tables, which decides which partition a member gives up, and which gets the next.

A Python dict keeps the order of insertion; Java iterates bucket by bucket, and within a bucket in the order
of insertion or reversed. A table grows when it is more than three quarters full and never shrinks. (A bucket
that has become a tree, with more than eight keys, may have another order.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from pykafka_broker.protocol.java_hash import INITIAL_CAPACITY, int_hash, uuid_hash

K = TypeVar("K")
V = TypeVar("V")

#: A topic id and a partition.
Place = tuple[bytes, int]


def place_hash(place: Place) -> int:
    """The hash of Apache Kafka's `TopicIdPartition`, as an unsigned 32-bit number."""
    return (31 * uuid_hash(place[0]) + int_hash(place[1])) & 0xFFFFFFFF


def capacity_for(count: int) -> int:
    """The number of buckets of a table made with a capacity of `count`."""
    return 1 if count <= 1 else 1 << (count - 1).bit_length()


def roomy(count: int) -> int:
    """The number of buckets of a table that an assignor makes for `count` keys."""
    return capacity_for(int((count + 1) / 0.75 + 1))


class Table(Generic[K, V]):
    """A `HashMap`, or with values that do not matter a `HashSet`."""

    def __init__(self, hash_of: Callable[[K], int], capacity: int = INITIAL_CAPACITY) -> None:
        self.items: dict[K, V] = {}
        self._hash_of = hash_of
        self._capacity = capacity
        #: The order of keys within a bucket.
        self._ranks: dict[K, int] = {}
        self._count = 0

    def put(self, key: K, value: V) -> None:
        """`put`: a new key comes last in its bucket, one that is there keeps its place."""
        if key not in self.items:
            self._count += 1
            self._ranks[key] = self._count
        self.items[key] = value
        self._grow()

    def setdefault(self, key: K, make: Callable[[], V]) -> V:
        """`computeIfAbsent`: a new key comes first in its bucket, and the table grows at the next call."""
        self._grow()
        if key not in self.items:
            self._count += 1
            self._ranks[key] = -self._count
            self.items[key] = make()
        return self.items[key]

    def _grow(self) -> None:
        if len(self.items) > int(self._capacity * 0.75):
            self._capacity *= 2

    def in_order(self) -> list[K]:
        """The keys in Java's iteration order."""
        mask = self._capacity - 1

        def bucket(key: K) -> tuple[int, int]:
            value = self._hash_of(key)
            return (value ^ (value >> 16)) & mask, self._ranks[key]

        return sorted(self.items, key=bucket)


def numbers(given: Iterable[int] = (), capacity: int = INITIAL_CAPACITY) -> Table[int, None]:
    """A set of partitions, or of members by their place, with these in it."""
    table: Table[int, None] = Table(int_hash, capacity)
    for number in given:
        table.put(number, None)
    return table


class Owned:
    """A member's partitions by topic, copied at the first change."""

    def __init__(self, before: dict[bytes, tuple[int, ...]]) -> None:
        self._before = before
        self._copy: Table[bytes, Table[int, None]] | None = None

    def copied(self) -> Table[bytes, Table[int, None]]:
        """The copy that may be changed."""
        if self._copy is None:
            self._copy = Table(uuid_hash, capacity_for(len(self._before)))
            for topic_id, partitions in self._before.items():
                room = max(int(len(partitions) / 0.75) + 1, INITIAL_CAPACITY)
                self._copy.put(topic_id, numbers(partitions, capacity_for(room)))
        return self._copy

    def add(self, topic_id: bytes, partition: int) -> None:
        """Give the member a partition."""
        self.copied().setdefault(topic_id, numbers).put(partition, None)

    def discard(self, topic_id: bytes, partition: int) -> bool:
        """Take a partition from the member; False if it has not got it."""
        partitions = self.copied().items.get(topic_id)
        if partitions is None or partition not in partitions.items:
            return False
        del partitions.items[partition]
        return True

    def forget(self, topic_id: bytes) -> None:
        """Take a whole topic from the member."""
        self.copied().items.pop(topic_id, None)

    def result(self) -> dict[bytes, tuple[int, ...]]:
        """The member's partitions in Java's order, including topics without partitions left."""
        if self._copy is None:
            return self._before
        return {topic_id: tuple(self._copy.items[topic_id].in_order()) for topic_id in self._copy.in_order()}


class NextMember:
    """Iterates over members with too few partitions, in Java's order, until none takes any in a round."""

    def __init__(self, unfilled: Table[int, None]) -> None:
        self._unfilled = unfilled
        self._round = iter(unfilled.in_order())
        self._has_given = False

    def candidates(self) -> Iterable[int]:
        """The next members, one after the other; ends after a round in which none took anything."""
        while True:
            yield from self._round
            if not self._has_given:
                return
            self._round = iter(self._unfilled.in_order())
            self._has_given = False

    def gave(self, member: int, *, is_full: bool) -> None:
        """The member that was named last has taken a partition."""
        self._has_given = True
        if is_full:
            del self._unfilled.items[member]

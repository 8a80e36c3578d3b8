"""Java's strings and hashes, as far as they show: the partition of a group, and the iteration order of sets.

Apache Kafka keeps members, topics and partitions in hash tables. Their iteration order stays where it shows:

* It decides: which member gets a partition; which protocol, assignor or error of several is taken.
* Clients read by position: the entries of DescribeConfigs, the results of CreatePartitions.
* Comparisons with Apache Kafka go by it: other lists in answers, and the records of share and streams groups.

Lists that clients look up by a key, and that are compared in any order, have no such order: the topics of
an assignment, the members and endpoints of a streams group, the start offsets of a share group, the results
of an election of all partitions. Nor have the records of consumer groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

Key = TypeVar("Key")

#: A new table has this many buckets; it doubles when it is more than three quarters full.
INITIAL_CAPACITY = 16


#: The most strings whose hashes are cached, and their most characters: clients may choose names of 32 KiB.
REMEMBERED_STRINGS = 65_536
REMEMBERED_LENGTH = 256


def string_length(text: str) -> int:
    """`String.length()`: the number of UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def string_hash(text: str) -> int:
    """`String.hashCode()`, as an unsigned 32-bit number."""
    return _remembered_hash(text) if len(text) <= REMEMBERED_LENGTH else _string_hash(text)


def _string_hash(text: str) -> int:
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8) + low) & 0xFFFFFFFF
    return value


_remembered_hash = lru_cache(maxsize=REMEMBERED_STRINGS)(_string_hash)


#: The initial number of slots of Apache Kafka's tables of a coordinator's state.
INITIAL_SLOTS = 2
_FIBONACCI = -7046029254386353131


def state_walked(keys: Iterable[str]) -> list[str]:
    """`keys` in the iteration order of a `TimelineHashMap` into which they were put one by one.

    (A table that once held more keys has more slots, and may have another order.)
    """
    listed = list(keys)
    slots = INITIAL_SLOTS
    while len(listed) * 0.75 > slots:
        slots *= 2
    shift = 65 - slots.bit_length()

    def slot(key: str) -> int:
        value = string_hash(key)
        signed = value if value < 0x80000000 else value - 0x100000000
        return (signed * _FIBONACCI & 0xFFFFFFFFFFFFFFFF) >> shift

    # Entries in the same slot are iterated from the last to the first.
    listed.reverse()
    listed.sort(key=slot)
    return listed


def string_hash_abs(text: str) -> int:
    """`Utils.abs(text.hashCode())`: the smallest int, which has no positive counterpart, becomes 0."""
    value = string_hash(text)
    return value if value < 0x80000000 else (0x100000000 - value) & 0x7FFFFFFF


def uuid_hash(uuid: bytes) -> int:
    """`Uuid.hashCode()` of Kafka, as an unsigned 32-bit number."""
    mixed = int.from_bytes(uuid[:8]) ^ int.from_bytes(uuid[8:])
    return (mixed >> 32) ^ (mixed & 0xFFFFFFFF)


def int_hash(number: int) -> int:
    """`Integer.hashCode()`, as an unsigned 32-bit number."""
    return number & 0xFFFFFFFF


def walked(
    keys: Iterable[Key],
    hash_of: Callable[[Key], int],
    *,
    sized: bool = False,
    made_for: int | None = None,
) -> list[Key]:
    """`keys` in the iteration order of a `HashMap` or `HashSet` into which they were put one by one.

    `sized`: the set was made from a collection, with room for all its elements from the start. `made_for`:
    the table was made with at least this many buckets instead of 16. (A bucket of more than eight keys, which
    becomes a tree, may have another order.)
    """
    listed = list(keys)
    capacity = INITIAL_CAPACITY if made_for is None else 1
    wanted = int(len(listed) / 0.75) + 1 if sized else made_for or 0
    while len(listed) > capacity * 0.75 or capacity < wanted:
        capacity *= 2

    def bucket(key: Key) -> int:
        value = hash_of(key)
        return (value ^ (value >> 16)) & (capacity - 1)

    listed.sort(key=bucket)
    return listed


def scala_walked(keys: Iterable[str]) -> list[str]:
    """`keys` in the iteration order of a copy of a mutable `HashMap` of Scala 2.13.

    Unlike Java's, it keeps a bucket sorted by hash.
    """
    listed = list(keys)
    capacity = INITIAL_CAPACITY
    wanted = int((len(listed) + 1) / 0.75)
    while capacity < wanted:
        capacity *= 2

    def place(key: str) -> tuple[int, int]:
        value = string_hash(key)
        value ^= value >> 16
        return value & (capacity - 1), value if value < 0x80000000 else value - 0x100000000

    listed.sort(key=place)
    return listed

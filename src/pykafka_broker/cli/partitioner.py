"""The partition of a record, chosen as the Java client does, so that keys keep their partitions."""

from __future__ import annotations

import random

_MASK = 0xFFFFFFFF
_SEED = 0x9747B28C
_M = 0x5BD1E995


def murmur2(data: bytes) -> int:
    """The 32-bit hash of Kafka's default partitioner, as an unsigned number."""
    length = len(data)
    h = (_SEED ^ length) & _MASK
    whole = length & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = h * _M & _MASK ^ k
    if whole < length:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def partition_for(key: bytes, partitions: int) -> int:
    """The partition of a key."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class Partitioner:
    """Keyed records by hash; the others stick to one partition until the next batch, one that has a leader if
    there is any.
    """

    def __init__(self, partitions: list[int], led: list[int]) -> None:
        self._partitions = partitions
        self._available = led or partitions
        self._sticky = random.choice(self._available)

    def next_batch(self) -> None:
        """Choose a new partition for records without a key."""
        self._sticky = random.choice(self._available)

    def choose(self, key: bytes | None) -> int:
        if key is None:
            return self._sticky
        return partition_for(key, len(self._partitions))

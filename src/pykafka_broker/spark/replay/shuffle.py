"""Keys that Spark's hash partitioning sends to one task each. Pure.

`repartition(n, column)` puts a row into the task with the number Murmur3(column) modulo n. With the keys 0 to
n - 1, a third of the tasks would get no partition and others two or three. So the keys are chosen by their
hashes.
"""

from __future__ import annotations

#: The seed of Spark's hash().
SEED = 42
_MASK = 0xFFFFFFFF


def keys_of_tasks(tasks: int) -> list[int]:
    """The key of each task."""
    keys: list[int] = [-1] * tasks
    left, number = tasks, 0
    while left:
        task = spark_hash(number) % tasks
        if keys[task] < 0:
            keys[task] = number
            left -= 1
        number += 1
    return keys


def spark_hash(number: int, seed: int = SEED) -> int:
    """Spark's `hash` of an INT: Murmur3 (x86, 32 bits) of its four bytes, signed."""
    mixed = _rotated(number * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    state = (_rotated(seed ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    state ^= 4
    state ^= state >> 16
    state = state * 0x85EBCA6B & _MASK
    state ^= state >> 13
    state = state * 0xC2B2AE35 & _MASK
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> (32 - bits)) & _MASK

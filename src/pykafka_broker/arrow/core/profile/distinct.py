"""How many different keys there are: HyperLogLog over hashes of 64 bits. Pure.

Each hash chooses one of 2^14 registers, which keeps the longest row of zeros at the beginning of the rest of
a hash: 16 KiB, however many keys there are. The estimate is the improved one of Otmar Ertl ("New cardinality
estimation algorithms for HyperLogLog sketches", 2017, algorithm 6), which needs no correction for few keys.
"""

from __future__ import annotations

import math

import numpy as np

from pykafka_broker.arrow.core.profile.murmur3 import Hashes

REGISTER_BITS = 14
REGISTERS = 1 << REGISTER_BITS
#: The standard error of an estimate, as a part of it.
STANDARD_ERROR = round(1.04 / math.sqrt(REGISTERS), 4)

_REST_BITS = 64 - REGISTER_BITS
_REST = np.uint64((1 << _REST_BITS) - 1)


class DistinctKeys:
    """Counts the different hashes that were added."""

    __slots__ = ("_registers",)

    def __init__(self) -> None:
        self._registers = np.zeros(REGISTERS, np.uint8)

    def add(self, hashes: Hashes) -> None:
        """Count these hashes."""
        register = (hashes >> np.uint64(_REST_BITS)).astype(np.intp)
        # The rest has 50 bits, so a float64 has it exactly, and its exponent is the number of bits in use.
        rank = _REST_BITS + 1 - np.frexp((hashes & _REST).astype(np.float64))[1]
        # After the first keys, few hashes change a register.
        higher = np.flatnonzero(rank > self._registers[register])
        np.maximum.at(self._registers, register[higher], rank[higher].astype(np.uint8))

    def merge(self, other: DistinctKeys) -> None:
        """Count the hashes of another one."""
        np.maximum(self._registers, other._registers, out=self._registers)

    def estimate(self) -> int:
        """About how many there are, with `STANDARD_ERROR`."""
        counts = np.bincount(self._registers, minlength=_REST_BITS + 2).tolist()
        if counts[0] == REGISTERS:
            return 0
        total = REGISTERS * _tau(1 - counts[-1] / REGISTERS)
        for count in reversed(counts[1:-1]):
            total = (total + count) / 2
        total += REGISTERS * _sigma(counts[0] / REGISTERS)
        return round(REGISTERS * REGISTERS / (2 * math.log(2) * total))


def _sigma(share: float) -> float:
    """The part of the registers that no hash has chosen; `share` is below 1."""
    total, weight = share, 1.0
    while True:
        share *= share
        before = total
        total += share * weight
        weight += weight
        if total == before:
            return total


def _tau(share: float) -> float:
    """The part of the registers that cannot grow."""
    if share in (0, 1):
        return 0.0
    total, weight = 1 - share, 1.0
    while True:
        share = math.sqrt(share)
        before = total
        weight /= 2
        total -= (1 - share) ** 2 * weight
        if total == before:
            return total / 3

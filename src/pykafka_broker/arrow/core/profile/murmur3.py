"""MurmurHash3 of many byte strings at once (x64, 128 bits, seed 0; the first 64 bits of each). Pure.

These are the numbers of `mmh3.hash64(key, signed=False)[0]`. No step works on a single string: each takes 16
bytes of all that have so many left. A string longer than `LONGEST_BYTES` would need many steps for itself, so
its BLAKE2b digest of 16 bytes is hashed in its place.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from pykafka_broker.arrow.core.varints import Octets, Positions

Hashes = npt.NDArray[np.uint64]

LONGEST_BYTES = 512
_DIGEST_BYTES = 16
_BLOCK_BYTES = 16

_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_FIVE = np.uint64(5)
_ADD1, _ADD2 = np.uint64(0x52DCE729), np.uint64(0x38495AB5)
_MIX1, _MIX2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_HALF = np.uint64(33)
#: The lowest n bytes of a word.
_LOW = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)


def hash64(octets: Octets, at: Positions, ends: Positions) -> Hashes:
    """The hash of the bytes between each two positions."""
    lengths = ends - at
    digests = b""
    long = np.flatnonzero(lengths > LONGEST_BYTES)
    if long.size:
        digests = b"".join(
            blake2b(octets[at[row] : ends[row]].tobytes(), digest_size=_DIGEST_BYTES).digest()
            for row in long.tolist()
        )
        at = at.copy()
        at[long] = len(octets) + np.arange(0, len(digests), _DIGEST_BYTES)
        lengths[long] = _DIGEST_BYTES
    # A word is read at any position, also where the last string ends.
    padded = np.concatenate([octets, np.frombuffer(digests + bytes(_BLOCK_BYTES), np.uint8)])
    words = np.ndarray((len(padded) - 7,), "<u8", padded, 0, (1,))

    first, second = np.zeros((2, len(at)), np.uint64)
    blocks = lengths >> 4
    rows = np.flatnonzero(blocks)
    step = 0
    while rows.size:
        place = at[rows] + step * _BLOCK_BYTES
        one, two = first[rows], second[rows]
        one ^= _scrambled(words[place], _C1, 31, _C2)
        one = (_turned(one, 27) + two) * _FIVE + _ADD1
        two ^= _scrambled(words[place + 8], _C2, 33, _C1)
        two = (_turned(two, 31) + one) * _FIVE + _ADD2
        first[rows], second[rows] = one, two
        step += 1
        rows = rows[blocks[rows] > step]

    tail = at + (blocks << 4)
    left = lengths & 15
    first ^= _scrambled(words[tail] & _LOW[np.minimum(left, 8)], _C1, 31, _C2)
    if (left > 8).any():
        second ^= _scrambled(words[tail + 8] & _LOW[np.maximum(left - 8, 0)], _C2, 33, _C1)
    sizes = lengths.astype(np.uint64)
    first ^= sizes
    second ^= sizes
    first += second
    second += first
    return mixed(first) + mixed(second)


def mixed(numbers: Hashes) -> Hashes:
    """The numbers, each changed into one that looks random and no other number becomes."""
    numbers = (numbers ^ (numbers >> _HALF)) * _MIX1
    numbers = (numbers ^ (numbers >> _HALF)) * _MIX2
    return numbers ^ (numbers >> _HALF)


def _scrambled(words: Hashes, before: np.uint64, turn: int, after: np.uint64) -> Hashes:
    return _turned(words * before, turn) * after


def _turned(words: Hashes, count: int) -> Hashes:
    return (words << np.uint64(count)) | (words >> np.uint64(64 - count))

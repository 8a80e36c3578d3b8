"""Hashes of many strings at once are those of MurmurHash3."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.arrow.core.profile.murmur3 import LONGEST_BYTES, hash64, mixed

MASK = (1 << 64) - 1


def hashes(strings: Sequence[bytes]) -> list[int]:
    """The hashes of strings that lie one behind the other."""
    ends = np.cumsum(np.array([len(each) for each in strings], np.int64))
    at = ends - np.array([len(each) for each in strings], np.int64)
    found: list[int] = hash64(np.frombuffer(b"".join(strings), np.uint8), at, ends).tolist()
    return found


def turned(word: int, count: int) -> int:
    return (word << count | word >> (64 - count)) & MASK


def of_one(data: bytes) -> int:
    """The algorithm, step by step for one string."""
    one, two = 0, 0
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
    for at in range(0, len(data) + 1, 16):
        low, high = (int.from_bytes(data[at + skip : at + skip + 8], "little") for skip in (0, 8))
        one ^= turned(low * c1 & MASK, 31) * c2 & MASK
        if at + 16 <= len(data):
            one = ((turned(one, 27) + two) * 5 + 0x52DCE729) & MASK
        two ^= turned(high * c2 & MASK, 33) * c1 & MASK
        if at + 16 <= len(data):
            two = ((turned(two, 31) + one) * 5 + 0x38495AB5) & MASK
    one, two = one ^ len(data), two ^ len(data)
    one = (one + two) & MASK
    two = (two + one) & MASK
    finished = []
    for word in (one, two):
        word = (word ^ word >> 33) * 0xFF51AFD7ED558CCD & MASK
        word = (word ^ word >> 33) * 0xC4CEB9FE1A85EC53 & MASK
        finished.append(word ^ word >> 33)
    return sum(finished) & MASK


def test_known_strings_have_the_hashes_that_the_package_mmh3_gives_them() -> None:
    assert hashes([b"foo", b"", b"order-17", bytes(range(16)), bytes(range(100))]) == [
        0xE271865701F54561,
        0,
        0xE5A6BF344520013A,
        0x444924B591903F30,
        0xB06F9999C14051CA,
    ]


@given(st.lists(st.binary(max_size=70) | st.binary(min_size=LONGEST_BYTES - 20, max_size=LONGEST_BYTES)))
def test_every_string_has_the_hash_that_it_has_alone(strings: list[bytes]) -> None:
    assert hashes(strings) == [of_one(each) for each in strings]


def test_a_long_string_is_hashed_by_its_digest() -> None:
    long = b"k" * (LONGEST_BYTES + 1)
    digest = blake2b(long, digest_size=16).digest()
    assert hashes([b"a", long, b"b"]) == [of_one(b"a"), of_one(digest), of_one(b"b")]


def test_mixing_keeps_numbers_apart() -> None:
    assert len(set(mixed(np.arange(100_000, dtype=np.uint64)).tolist())) == 100_000

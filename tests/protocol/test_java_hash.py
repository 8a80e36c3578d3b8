"""Java's hashes, and the order in which its tables are walked."""

from __future__ import annotations

import pytest

from pykafka_broker.protocol import java_hash as hashes
from pykafka_broker.protocol.java_hash import string_hash_abs


@pytest.mark.parametrize(
    ("group_id", "java_hash"),
    [
        ("", 0),
        ("a", 97),
        ("console-consumer-12345", 158455506),
        ("Käse 😀", 186795928),
        ("polygenelubricants", 0),  # the smallest int
    ],
)
def test_group_ids_hash_as_in_java(group_id: str, java_hash: int) -> None:
    assert string_hash_abs(group_id) == java_hash


def test_long_names_are_hashed_as_short_ones_and_not_remembered() -> None:
    remembered = hashes._remembered_hash.cache_info
    before = remembered()
    assert string_hash_abs("aB" * 1_000) == 397756648
    assert remembered() == before

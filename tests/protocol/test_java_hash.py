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


def test_a_scala_map_is_walked_by_bucket_and_in_a_bucket_by_hash() -> None:
    """As Apache Kafka 4.3.1 answered, which keeps the configs of all brokers in such a map."""
    answered = [
        *("compression.type", "message.max.bytes", "num.io.threads", "log.cleaner.delete.retention.ms"),
        *("min.insync.replicas", "log.cleaner.threads", "log.index.interval.bytes"),
        *("log.cleaner.backoff.ms", "log.segment.bytes", "log.index.size.max.bytes", "log.retention.bytes"),
        *("log.cleanup.policy", "log.segment.delete.delay.ms", "compression.gzip.level"),
        *("log.preallocate", "max.connections.per.ip", "background.threads"),
    ]
    assert hashes.scala_walked(sorted(answered)) == answered

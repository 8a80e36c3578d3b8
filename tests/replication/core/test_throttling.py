"""Which replicas are slowed down, and when."""

from __future__ import annotations

from pykafka_broker.replication.core.throttling import RateLimit, is_throttled


def test_a_topic_names_the_replicas_that_are_slowed_down() -> None:
    named = ("0:1", "2:3")
    assert [is_throttled(named, 0, 1), is_throttled(named, 2, 3)] == [True, True]
    assert [is_throttled(named, 0, 3), is_throttled(named, 1, 1)] == [False, False]
    assert is_throttled(("*",), 7, 9)
    assert not is_throttled((), 0, 1)


def test_more_bytes_than_allowed_in_a_second_are_too_many_until_enough_time_has_passed() -> None:
    limit = RateLimit(1_000, samples=10, sample_ms=1_000)
    assert not limit.is_exceeded(0)
    limit.count(1_000, 0)
    assert not limit.is_exceeded(0)
    limit.count(1_000, 500)
    assert limit.is_exceeded(500)
    assert limit.is_exceeded(1_999)
    assert not limit.is_exceeded(2_000)


def test_what_was_long_ago_does_not_count() -> None:
    limit = RateLimit(1_000, samples=10, sample_ms=1_000)
    limit.count(1_000_000, 0)
    assert limit.is_exceeded(9_999)
    assert not limit.is_exceeded(10_000)
    limit.count(1_001, 10_000)
    assert limit.is_exceeded(10_000)


def test_a_changed_rate_is_in_force_at_once() -> None:
    limit = RateLimit(1_000, samples=10, sample_ms=1_000)
    limit.count(5_000, 0)
    assert limit.is_exceeded(0)
    limit.bytes_per_second = 5_000
    assert not limit.is_exceeded(0)
    limit.bytes_per_second = 0
    assert limit.is_exceeded(0)

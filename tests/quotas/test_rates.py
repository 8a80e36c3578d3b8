"""Rates over samples, and buckets of tokens. Times are milliseconds; the window is ten whole seconds."""

from __future__ import annotations

from math import inf, nan

import pytest

from pykafka_broker.quotas.rates import MAX_THROTTLE_MS, Rate, TokenBucket, Window

WINDOW = Window(samples=11, sample_ms=1_000)
START_MS = 1_000_000


def rate_of(*uses: tuple[int, float]) -> Rate:
    """A rate with these amounts, each used so many milliseconds after the start."""
    rate = Rate()
    for after_ms, amount in uses:
        rate.record(WINDOW, amount, START_MS + after_ms)
    return rate


def test_a_new_rate_counts_as_if_nothing_had_been_used_before() -> None:
    assert rate_of((0, 1_000.0)).per_second(WINDOW, START_MS) == 100.0


def test_a_rate_that_was_never_used_is_zero() -> None:
    assert Rate().per_second(WINDOW, START_MS) == 0


def test_the_sample_that_is_being_filled_makes_the_window_longer() -> None:
    rate = rate_of((0, 1_000.0))

    assert rate.per_second(WINDOW, START_MS + 500) == 1_000 / 10.5
    assert rate.per_second(WINDOW, START_MS + 1_000) == 100.0


def test_a_sample_goes_when_it_was_last_used_a_window_ago() -> None:
    rate = rate_of((0, 1_000.0), (900, 500.0), (1_000, 200.0))

    assert rate.per_second(WINDOW, START_MS + 11_899) == 1_700 / 11.899
    assert rate.per_second(WINDOW, START_MS + 11_900) == 200 / 10.9


def test_steady_use_is_its_own_rate() -> None:
    rate = rate_of(*((second * 1_000, 300.0) for second in range(60)))

    assert rate.per_second(WINDOW, START_MS + 60_000) == pytest.approx(300, rel=0.1)


def test_what_is_taken_back_does_not_count() -> None:
    assert rate_of((0, 1_000.0), (0, -1_000.0)).per_second(WINDOW, START_MS) == 0


def test_the_wait_brings_the_sum_within_the_bound() -> None:
    rate = rate_of((0, 1_500.0))

    # 150 a second, half more than 100: as long again as half of the window.
    assert rate.wait_ms(WINDOW, 100.0, START_MS) == 5_000
    assert rate.wait_ms(WINDOW, 150.0, START_MS) == 0
    assert rate.wait_ms(WINDOW, inf, START_MS) == 0


def test_waits_are_rounded_as_by_java() -> None:
    assert rate_of((0, 10.0005)).wait_ms(WINDOW, 1.0, START_MS) == 1
    assert rate_of((0, 10.0004)).wait_ms(WINDOW, 1.0, START_MS) == 0


def test_no_wait_is_longer_than_an_answer_can_say() -> None:
    assert rate_of((0, 1e18)).wait_ms(WINDOW, 1e-9, START_MS) == MAX_THROTTLE_MS


def test_a_bound_that_is_no_number_makes_nobody_wait() -> None:
    assert rate_of((0, 1_000.0)).wait_ms(WINDOW, nan, START_MS) == 0
    assert TokenBucket().wait_ms(WINDOW, nan, START_MS) == 0


def test_a_window_of_one_sample_has_at_least_a_millisecond() -> None:
    single = Window(samples=1, sample_ms=1_000)
    rate = Rate()
    rate.record(single, 5.0, START_MS)

    assert rate.per_second(single, START_MS) == 5_000.0


def test_samples_are_used_again() -> None:
    rate = rate_of(*((second * 1_000, 1.0) for second in range(1_000)))

    assert len(rate._samples) == WINDOW.samples + 1


def test_a_bucket_begins_full_and_lends() -> None:
    bucket = TokenBucket()
    bucket.take(WINDOW, 10.0, 110, START_MS)
    assert bucket.wait_ms(WINDOW, 10.0, START_MS) == 0

    bucket.take(WINDOW, 10.0, 25, START_MS)
    assert bucket.wait_ms(WINDOW, 10.0, START_MS) == 2_500
    assert bucket.wait_ms(WINDOW, 10.0, START_MS + 2_499) == 1
    assert bucket.wait_ms(WINDOW, 10.0, START_MS + 2_500) == 0


def test_a_bucket_holds_no_more_than_a_window() -> None:
    bucket = TokenBucket()
    bucket.take(WINDOW, 10.0, 1, START_MS)
    bucket.take(WINDOW, 10.0, 111, START_MS + 1_000_000)

    assert bucket.wait_ms(WINDOW, 10.0, START_MS + 1_000_000) == 100

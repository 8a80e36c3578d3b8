"""When to try again: attempts a tenth of a second apart, and one at least."""

from __future__ import annotations

from pykafka_broker.client.core.conversation import Reply, Wait
from pykafka_broker.client.core.retries import Attempt, first_attempt, next_attempt


def test_attempts_begin_at_intervals_until_there_is_no_time_for_another() -> None:
    attempt = first_attempt(1_000, 350)
    began = [attempt.began_ms]
    while not attempt.is_last:
        attempt = attempt.again(attempt.next_ms)
        began.append(attempt.began_ms)
    assert began == [1_000, 1_100, 1_200, 1_300]


def test_every_time_out_allows_one_attempt() -> None:
    assert first_attempt(1_000, 0).is_last
    assert first_attempt(1_000, 100).is_last
    assert not first_attempt(1_000, 101).is_last


def test_an_attempt_that_took_long_is_followed_by_the_next_at_once() -> None:
    waiting = next_attempt(first_attempt(1_000, 10_000))
    assert next(waiting) == Wait(1_100)
    try:
        waiting.send(Reply(None, 4_321))
    except StopIteration as end:
        assert end.value == Attempt(4_321, 11_000)

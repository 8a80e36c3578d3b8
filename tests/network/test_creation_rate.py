"""How many connections may come at once, and when the next one may."""

from __future__ import annotations

from pykafka_broker.network.creation_rate import CreationRate


def test_a_creation_rate_allows_a_seconds_worth_at_once_and_then_one_by_one() -> None:
    rate = CreationRate(per_second=4, now_ms=0)
    assert waits(rate, 0, 6) == [0, 0, 0, 0, 250, 250]
    assert waits(rate, 250, 2) == [0, 250]
    assert waits(rate, 10_000, 5) == [0, 0, 0, 0, 250]
    assert waits(CreationRate(per_second=0, now_ms=0), 0, 1) == [1_000]


def waits(rate: CreationRate, now_ms: int, connections: int) -> list[int]:
    """What each of some connections has to wait that ask at the same time."""
    answers = []
    for _ in range(connections):
        answers.append(rate.wait_ms(now_ms))
        if not answers[-1]:
            rate.count()
    return answers

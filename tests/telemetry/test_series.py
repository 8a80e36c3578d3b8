"""The newest values that clients have pushed, within bounds."""

from __future__ import annotations

from pykafka_broker.telemetry.series import (
    MAX_CHARACTERS,
    MAX_SERIES,
    MAX_SERIES_OF_INSTANCE,
    Kind,
    Point,
    PushedSeries,
    Series,
)
from tests.support.pages import REPOSITORY

ONE, TWO, THREE = (bytes(15) + bytes([number]) for number in (11, 12, 13))
INTERVAL_MS = 1_000


def gauge(name: str, value: float = 1.0, **labels: str) -> Point:
    return Point(name, tuple(sorted(labels.items())), Kind.GAUGE, value)


def counter(name: str, value: float, *, is_delta: bool) -> Point:
    return Point(name, (), Kind.COUNTER, value, is_delta)


def push(series: PushedSeries, who: bytes, *points: Point | None, now_ms: int = 0) -> None:
    series.push(who, "orders", points, INTERVAL_MS, now_ms)


def values(series: PushedSeries, now_ms: int = 0) -> dict[str, float]:
    return {each.name: each.value for each in series.newest(now_ms)}


def test_a_series_has_the_ids_of_its_client_and_its_newest_value() -> None:
    series = PushedSeries()
    push(series, ONE, gauge("a", 1.0, topic="t"))
    push(series, ONE, gauge("a", 2.0, topic="t"), now_ms=500)

    assert list(series.newest(500)) == [
        Series("a", "AAAAAAAAAAAAAAAAAAAACw", "orders", (("topic", "t"),), Kind.GAUGE, 2.0, 500)
    ]


def test_what_an_instance_does_not_push_again_is_gone() -> None:
    series = PushedSeries()
    push(series, ONE, gauge("a"), gauge("b"))
    push(series, TWO, gauge("c"))
    push(series, ONE, gauge("b", 3.0))

    assert values(series) == {"b": 3.0, "c": 1.0}
    assert len(series) == 2
    push(series, ONE)
    assert values(series) == {"c": 1.0}


def test_changes_of_counters_are_added_up_and_totals_are_not() -> None:
    series = PushedSeries()
    for _ in range(3):
        push(series, ONE, counter("changes", 5.0, is_delta=True), counter("total", 5.0, is_delta=False))

    assert values(series) == {"changes": 15.0, "total": 5.0}


def test_an_instance_that_ends_or_is_silent_for_three_intervals_is_forgotten() -> None:
    series = PushedSeries()
    push(series, ONE, gauge("a"))
    push(series, TWO, gauge("b"))
    push(series, THREE, gauge("c"), now_ms=1)
    series.forget(TWO)
    series.forget(TWO)

    assert values(series, 2_999) == {"a": 1.0, "c": 1.0}
    assert values(series, 3_000) == {"c": 1.0}
    assert len(series) == 1


def test_there_are_no_more_series_than_the_limits_allow() -> None:
    series = PushedSeries(limit=5, limit_of_instance=3)
    push(series, ONE, *(gauge(f"a{number}") for number in range(9)))
    assert sorted(values(series)) == ["a0", "a1", "a2"]
    assert series.dropped == 1

    push(series, TWO, *(gauge(f"b{number}") for number in range(3)))
    push(series, THREE, gauge("c"))
    assert sorted(values(series)) == ["a0", "a1", "a2", "b0", "b1"]
    assert series.dropped == 3

    push(series, THREE, gauge("c"), now_ms=3_000)
    assert values(series, 3_000) == {"c": 1.0}


def test_an_instance_at_its_limit_may_push_the_same_again() -> None:
    series = PushedSeries(limit=2, limit_of_instance=2)
    for value in (1.0, 2.0):
        push(series, ONE, gauge("a", value), gauge("b", value))

    assert values(series) == {"a": 2.0, "b": 2.0}
    assert series.dropped == 0


def test_no_more_of_a_push_is_read_than_there_is_room_for() -> None:
    series = PushedSeries(limit_of_instance=3)
    read = iter([gauge("same")] * 100)
    series.push(ONE, "orders", read, INTERVAL_MS, 0)

    assert len(list(read)) == 96


def test_values_that_cannot_be_kept_and_long_texts_are_dropped_and_counted() -> None:
    series = PushedSeries()
    push(
        series,
        ONE,
        None,
        gauge("n" * (MAX_CHARACTERS - 5)),
        gauge("n" * (MAX_CHARACTERS - 6)),
        gauge("a", 1.0, label="v" * MAX_CHARACTERS),
    )
    series.push(TWO, "c" * MAX_CHARACTERS, [gauge("a")], INTERVAL_MS, 0)

    assert list(values(series)) == ["n" * (MAX_CHARACTERS - 6)]
    assert series.dropped == 4


def test_the_limits_are_those_of_the_page() -> None:
    series = PushedSeries()
    limits = (series.limit, series.limit_of_instance)

    assert limits == (MAX_SERIES, MAX_SERIES_OF_INSTANCE)
    page = (REPOSITORY / "docs" / "operations.md").read_text()
    assert "at most {:,} in all and {:,} of one client".format(*limits) in page

"""Filters of Spark 4.1 are carried out exactly or left to Spark."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from pykafka_broker.arrow.core.stored_batches import NO_END, OffsetRange
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.spark.kafka_log.filters import Narrowing, narrow


@dataclass(frozen=True)
class _Filter:
    attribute: tuple[str, ...]
    value: Any = None


class EqualTo(_Filter): ...


class GreaterThan(_Filter): ...


class GreaterThanOrEqual(_Filter): ...


class LessThan(_Filter): ...


class LessThanOrEqual(_Filter): ...


class In(_Filter): ...


class IsNotNull(_Filter): ...


@dataclass(frozen=True)
class Not:
    child: _Filter


TOPIC, PARTITION, OFFSET, TIMESTAMP = ("topic",), ("partition",), ("offset",), ("timestamp",)
ORDERS = [TopicPartition("orders", number) for number in range(4)]


def chosen(*filters: Any) -> list[int]:
    narrowing, rest = narrow(filters)
    assert rest == []
    return [name.partition for name in ORDERS if narrowing.has_partition(name)]


def test_filters_on_topic_and_partition_choose_folders() -> None:
    assert chosen(EqualTo(TOPIC, "orders"), In(PARTITION, (1, 3))) == [1, 3]
    assert chosen(GreaterThan(PARTITION, 0), LessThanOrEqual(PARTITION, 2)) == [1, 2]
    assert chosen(EqualTo(TOPIC, "other")) == []


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ([EqualTo(OFFSET, 7)], OffsetRange(7, 8)),
        ([GreaterThan(OFFSET, 7), LessThan(OFFSET, 9)], OffsetRange(8, 9)),
        ([GreaterThanOrEqual(OFFSET, 7), GreaterThan(OFFSET, 3)], OffsetRange(7, NO_END)),
        ([LessThanOrEqual(OFFSET, 7), LessThan(OFFSET, 100)], OffsetRange(0, 8)),
    ],
)
def test_filters_on_offsets_narrow_them(filters: list[Any], left: OffsetRange) -> None:
    assert narrow(filters) == (Narrowing(offsets=left), [])


def test_a_filter_on_time_moves_the_start_and_is_left_to_spark() -> None:
    noon = datetime(2026, 11, 22, 12, 0, 0, 1500, tzinfo=UTC)
    after, before = GreaterThan(TIMESTAMP, noon), LessThan(TIMESTAMP, noon)

    narrowing, rest = narrow([after, before])

    assert narrowing == Narrowing(least_ms=1_795_348_800_001)
    assert rest == [after, before]


@pytest.mark.parametrize(
    "each",
    [
        IsNotNull(OFFSET),
        EqualTo(("value",), b"x"),
        EqualTo(("headers", "key"), "x"),
        In(OFFSET, (1, 2)),
        EqualTo(OFFSET, None),
        EqualTo(TOPIC, 5),
        GreaterThan(TIMESTAMP, "today"),
        GreaterThan(TIMESTAMP, datetime(2026, 1, 1)),
        Not(EqualTo(PARTITION, 1)),
    ],
    ids=repr,
)
def test_every_other_filter_is_left_to_spark(each: Any) -> None:
    assert narrow([each]) == (Narrowing(), [each])


def test_a_range_that_is_narrowed_to_nothing_is_empty() -> None:
    narrowing, _ = narrow([GreaterThan(OFFSET, 50)])

    assert narrowing.within(OffsetRange(0, 10)) == OffsetRange(51, 51)

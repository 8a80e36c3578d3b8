"""Which records a replay takes, as SQL."""

from __future__ import annotations

import datetime as dt

import pytest

from pykafka_broker.spark.kafka_format import ARCHIVE_COLUMNS, KAFKA_COLUMNS
from pykafka_broker.spark.replay.window import EVERYTHING, OffsetRange, Window, bounds_of, conditions

NOON = dt.datetime(2026, 11, 22, 13, tzinfo=dt.timezone(dt.timedelta(hours=1)))
NOON_MS = 1_795_348_800_000


def test_everything_has_no_conditions() -> None:
    assert conditions(EVERYTHING, KAFKA_COLUMNS) == []
    assert bounds_of(EVERYTHING, "orders", 0) == ""


def test_each_bound_is_a_condition() -> None:
    window = Window(
        topics=["orders", "it's"],
        partitions=[0, 2],
        offsets=[OffsetRange("orders", 0, 5, 9), OffsetRange("orders", 2)],
        since=NOON,
        until=NOON + dt.timedelta(milliseconds=1),
    )
    assert conditions(window, KAFKA_COLUMNS) == [
        r"topic IN ('orders', 'it\'s')",
        "partition IN (0, 2)",
        "(topic = 'orders' AND partition = 0 AND offset >= 5 AND offset < 9)"
        " OR (topic = 'orders' AND partition = 2)",
        f"timestamp >= timestamp_millis({NOON_MS})",
        f"timestamp < timestamp_millis({NOON_MS + 1})",
    ]


def test_days_are_those_of_an_archive_or_of_the_timestamps() -> None:
    window = Window(first_day=dt.date(2026, 11, 1), last_day=dt.date(2026, 11, 2))
    assert conditions(window, ARCHIVE_COLUMNS) == ["day >= DATE'2026-11-01'", "day <= DATE'2026-11-02'"]
    assert all("unix_millis(timestamp)" in condition for condition in conditions(window, KAFKA_COLUMNS))


def test_a_topic_id_is_looked_for_where_there_are_some() -> None:
    window = Window(topic_ids=["abc"])
    assert conditions(window, ARCHIVE_COLUMNS) == ["topic_id IN ('abc')"]
    with pytest.raises(ValueError, match="the source has no column topic_id"):
        conditions(window, KAFKA_COLUMNS)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        conditions(Window(since=dt.datetime(2026, 11, 22)), KAFKA_COLUMNS)


def test_the_bounds_of_a_partition_are_the_same_text_however_others_are_chosen() -> None:
    window = Window(offsets=[OffsetRange("orders", 0, 5), OffsetRange("orders", 1, 7)], since=NOON)
    alone = window._replace(offsets=window.offsets[:1], topics=["orders"], partitions=[0])
    assert bounds_of(window, "orders", 0) == bounds_of(alone, "orders", 0)
    assert bounds_of(window, "orders", 0) == f'{{"offsets":[[5,null]],"since":{NOON_MS}}}'
    assert bounds_of(window, "orders", 1) != bounds_of(window, "orders", 0)

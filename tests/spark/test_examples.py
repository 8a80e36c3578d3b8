"""The pipelines in examples/ do what they say."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from examples import clickstream
from tests.spark.kafka import NOON, Kafka

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

#: Spark's timestamps carry no zone; the session's is UTC.
START = NOON.replace(tzinfo=None)


def test_the_clickstream_counts_clicks_per_minute_into_a_topic_and_parquet(
    spark: SparkSession, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clickstream, "CLICKS", kafka.new_name("clicks"))
    monkeypatch.setattr(clickstream, "COUNTS", kafka.new_name("counts"))
    clicks = clickstream.made_up_clicks(spark, START, minutes=4, seed=7).collect()
    # The watermark is one minute behind the newest click: the minutes that ended before it are closed.
    watermark = max(click.at for click in clicks) - dt.timedelta(minutes=1)
    closed = Counter(
        (minute, click.page)
        for click in clicks
        if (minute := click.at.replace(second=0)) + dt.timedelta(minutes=1) <= watermark
    )

    clickstream.run(spark, kafka.bootstrap, tmp_path, START, minutes=4, seed=7)

    stored = spark.read.parquet(str(tmp_path / "counts")).collect()
    assert {(row.minute, row.page): row["count"] for row in stored} == closed
    published = [json.loads(value) for value in kafka.values(clickstream.COUNTS)]
    assert Counter({(moment(row["minute"]), row["page"]): row["count"] for row in published}) == closed

    again = clickstream.first_free_minute(spark, kafka.bootstrap)
    assert again == START + dt.timedelta(minutes=4)
    clickstream.run(spark, kafka.bootstrap, tmp_path, again, minutes=4, seed=7)
    stored = spark.read.parquet(str(tmp_path / "counts")).collect()
    every_click = Counter(
        (click.at.replace(second=0) + later, click.page)
        for click in clicks
        for later in (dt.timedelta(0), dt.timedelta(minutes=4))
    )
    last_closed = max(minute for minute, _ in closed) + dt.timedelta(minutes=4)
    assert {(row.minute, row.page): row["count"] for row in stored} == {
        place: count for place, count in every_click.items() if place[0] <= last_closed
    }


def moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=None)

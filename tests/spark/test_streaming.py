"""Spark follows a topic: `readStream` and `writeStream`, with checkpoints that outlive queries and
brokers.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from tests.spark.conftest import Broker
from tests.spark.kafka import NOON, Kafka, offsets

pytestmark = [pytest.mark.gate("streams of Spark's own connector"), pytest.mark.acknowledged]

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def stream(spark: SparkSession, kafka: Kafka, **options: Any) -> DataFrame:
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap)
        .option("startingOffsets", "earliest")
        .options(**{name: str(value) for name, value in options.items()})
        .load()
        .selectExpr("CAST(value AS STRING) AS value", "topic", "partition", "offset", "timestamp")
    )


class Table:
    """A folder that a query writes Parquet files to, and its checkpoint beside it."""

    def __init__(self, folder: Path) -> None:
        self.rows_folder, self.checkpoint = str(folder / "rows"), str(folder / "checkpoint")

    def fed_by(self, frame: DataFrame) -> DataStreamWriter:
        return (
            frame.writeStream.format("parquet")
            .option("path", self.rows_folder)
            .option("checkpointLocation", self.checkpoint)
        )

    def values(self, spark: SparkSession) -> list[str]:
        return [
            row.value for row in spark.read.parquet(self.rows_folder).orderBy("partition", "offset").collect()
        ]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def run_to_the_end(writer: DataStreamWriter) -> StreamingQuery:
    """One `availableNow` run: everything that is there now, then stop."""
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(300), "the query did not end"
    return query


@contextlib.contextmanager
def running(writer: DataStreamWriter) -> Iterator[StreamingQuery]:
    query = writer.trigger(processingTime="0 seconds").start()
    try:
        yield query
    finally:
        query.stop()


def rows_per_batch(query: StreamingQuery) -> list[int]:
    return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]


def test_available_now_reads_what_is_there_in_limited_slices(
    spark: SparkSession, kafka: Kafka, table: Table
) -> None:
    topic = kafka.topic(partitions=3)
    for partition, count in enumerate((101, 11, 1)):
        kafka.send(topic, (f"{partition}-{n:03}" for n in range(count)), partition=partition)

    query = run_to_the_end(table.fed_by(stream(spark, kafka, subscribe=topic, maxOffsetsPerTrigger=30)))

    batches = rows_per_batch(query)
    assert sum(batches) == 113
    assert len(batches) >= 4
    assert max(batches) <= 30
    assert len(set(table.values(spark))) == 113


def test_a_restart_from_the_checkpoint_continues_across_a_broker_restart(
    spark: SparkSession, broker: Broker, kafka: Kafka, table: Table
) -> None:
    topic = kafka.topic(partitions=2)
    kafka.send(topic, range(10))
    run_to_the_end(table.fed_by(stream(spark, kafka, subscribe=topic)))

    kafka.send(topic, range(10, 20), partition=1)
    with kafka.away():
        broker.restart()
    kafka.send(topic, range(20, 30))
    query = run_to_the_end(table.fed_by(stream(spark, kafka, subscribe=topic)))

    assert sum(rows_per_batch(query)) == 20
    assert sorted(map(int, table.values(spark))) == list(range(30))


def test_a_running_query_survives_a_broker_restart(
    spark: SparkSession, broker: Broker, kafka: Kafka, table: Table
) -> None:
    topic = kafka.topic(partitions=2)
    kafka.send(topic, range(5))

    with running(table.fed_by(stream(spark, kafka, subscribe=topic))) as query:
        query.processAllAvailable()
        with kafka.away():
            broker.restart()
        kafka.send(topic, range(5, 10), partition=1)
        query.processAllAvailable()

    assert sorted(map(int, table.values(spark))) == list(range(10))


def test_a_stream_copied_to_another_topic_arrives_with_every_row_once(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    source, target = kafka.topic(partitions=4), kafka.topic(partitions=3)
    for partition in range(4):
        kafka.send(source, range(partition * 1000, partition * 1000 + 500), partition=partition)

    run_to_the_end(
        stream(spark, kafka, subscribe=source, maxOffsetsPerTrigger=700)
        .select("value")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap)
        .option("topic", target)
        .option("checkpointLocation", str(tmp_path))
    )

    assert Counter(kafka.values(target)) == Counter(kafka.values(source))


def test_windows_on_event_time_count_what_happened_in_them(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    """A window closes when the watermark passes its end."""
    topic = kafka.topic(partitions=2)
    clicks = {0: "a", 30: "b", 59: "a", 60: "a", 119: "a", 185: "b", 600: "end"}
    for second, page in clicks.items():
        at = NOON + dt.timedelta(seconds=second)
        kafka.send(topic, [page], timestamp_ms=int(at.timestamp() * 1000))
    counted: list[tuple[int, str, int]] = []

    def collect(frame: DataFrame, _batch: int) -> None:
        counted.extend(
            ((row.window.start.replace(tzinfo=dt.UTC) - NOON).seconds // 60, row.page, row["count"])
            for row in frame.orderBy("window", "page").collect()
        )

    from pyspark.sql import functions as f

    run_to_the_end(
        stream(spark, kafka, subscribe=topic)
        .withWatermark("timestamp", "1 minute")
        .groupBy(f.window("timestamp", "1 minute"), f.col("value").alias("page"))
        .count()
        .writeStream.outputMode("append")
        .option("checkpointLocation", str(tmp_path))
        .foreachBatch(collect)
    )

    assert counted == [(0, "a", 2), (0, "b", 1), (1, "a", 2), (3, "b", 1)]


def test_partitions_added_to_a_topic_are_read_from_their_beginning(
    spark: SparkSession, kafka: Kafka, table: Table
) -> None:
    topic = kafka.topic(partitions=1)
    kafka.send(topic, range(3))

    with running(
        table.fed_by(stream(spark, kafka, subscribe=topic, **{"kafka.metadata.max.age.ms": 1}))
    ) as query:
        query.processAllAvailable()
        kafka.add_partitions(topic, 3)
        kafka.send(topic, range(3, 6), partition=2)
        kafka.eventually(lambda: last_end_offsets(query).get(topic, {}).get("2") == 3)
        query.processAllAvailable()

    assert table.values(spark) == [str(n) for n in range(6)]


def last_end_offsets(query: StreamingQuery) -> dict[str, dict[str, int]]:
    progress = query.lastProgress
    found: dict[str, dict[str, int]] = (
        json.loads(progress["sources"][0]["endOffset"] or "{}") if progress else {}
    )
    return found


def test_a_topic_that_appears_later_and_matches_the_pattern_is_read(
    spark: SparkSession, kafka: Kafka, table: Table
) -> None:
    family = kafka.new_name("late")
    kafka.send(kafka.create(f"{family}-a"), ["first"])
    frame = stream(spark, kafka, subscribePattern=f"{family}-.*", **{"kafka.metadata.max.age.ms": 1})

    with running(table.fed_by(frame)) as query:
        query.processAllAvailable()
        kafka.send(kafka.create(f"{family}-b"), ["second"])
        kafka.eventually(lambda: last_end_offsets(query).get(f"{family}-b") == {"0": 1})
        query.processAllAvailable()

    assert sorted(table.values(spark)) == ["first", "second"]


def test_a_topic_deleted_and_created_again_is_noticed_as_lost_data(
    spark: SparkSession, kafka: Kafka, table: Table
) -> None:
    topic = kafka.topic()
    kafka.send(topic, range(5))
    run_to_the_end(table.fed_by(stream(spark, kafka, subscribe=topic)))

    kafka.delete(topic)
    kafka.create(topic)
    kafka.send(topic, ["again-0", "again-1"])

    with pytest.raises(StreamingQueryException, match="offset was changed from 5 to 2"):
        run_to_the_end(table.fed_by(stream(spark, kafka, subscribe=topic)))


def test_a_topic_created_again_is_read_from_its_start_where_loss_is_allowed(
    spark: SparkSession, kafka: Kafka, table: Table
) -> None:
    topic = kafka.topic()
    kafka.send(topic, range(2))
    run_to_the_end(table.fed_by(stream(spark, kafka, subscribe=topic)))

    kafka.delete(topic)
    kafka.create(topic)
    kafka.send(topic, [f"again-{n}" for n in range(4)])
    tolerant = stream(spark, kafka, subscribe=topic, failOnDataLoss=False)
    run_to_the_end(table.fed_by(tolerant))

    # What lies between the old end and the new end is read; what lies before it cannot be told from what was
    # read.
    assert sorted(table.values(spark)) == ["0", "1", "again-2", "again-3"]


def test_assigned_partitions_are_followed_from_given_offsets(
    spark: SparkSession, kafka: Kafka, table: Table
) -> None:
    topic = kafka.topic(partitions=3)
    for partition in range(3):
        kafka.send(topic, range(partition * 10, partition * 10 + 4), partition=partition)

    run_to_the_end(
        table.fed_by(
            stream(
                spark,
                kafka,
                assign=f'{{"{topic}": [0, 2]}}',
                startingOffsets=offsets(**{topic: {0: 3, 2: -2}}),
            )
        )
    )

    assert table.values(spark) == ["3", "20", "21", "22", "23"]


def test_a_stream_may_begin_at_a_timestamp(spark: SparkSession, kafka: Kafka, table: Table) -> None:
    topic = kafka.topic(partitions=2)
    noon_ms = int(NOON.timestamp() * 1000)
    for second in range(4):
        kafka.send(topic, [second], partition=second % 2, timestamp_ms=noon_ms + second * 1000)

    run_to_the_end(table.fed_by(stream(spark, kafka, subscribe=topic, startingTimestamp=noon_ms + 1500)))

    assert table.values(spark) == ["2", "3"]


def test_records_deleted_between_two_runs_are_skipped_where_loss_is_allowed(
    spark: SparkSession, kafka: Kafka, table: Table
) -> None:
    topic = kafka.topic()
    kafka.send(topic, range(5))
    run_to_the_end(table.fed_by(stream(spark, kafka, subscribe=topic)))
    kafka.send(topic, range(5, 15))

    kafka.delete_records(topic, before=10)
    run_to_the_end(table.fed_by(stream(spark, kafka, subscribe=topic, failOnDataLoss=False)))

    assert table.values(spark) == [str(n) for n in (*range(5), *range(10, 15))]

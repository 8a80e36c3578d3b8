"""Spark reads and writes a topic as a table: `spark.read.format("kafka")` and `df.write.format("kafka")`."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.kafka import NOON, Kafka, offsets

pytestmark = pytest.mark.gate("Spark's own connector reads and writes what the broker serves")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MINUTE_MS = 60_000
NOON_MS = int(NOON.timestamp() * 1000)


def read(spark: SparkSession, kafka: Kafka, **options: Any) -> DataFrame:
    return (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap)
        .options(**{name: str(value) for name, value in options.items()})
        .load()
    )


def write(frame: DataFrame, kafka: Kafka, **options: Any) -> None:
    (
        frame.write.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap)
        .options(**{name: str(value) for name, value in options.items()})
        .save()
    )


def values(frame: DataFrame) -> list[str]:
    """The values in the order of their partitions and offsets."""
    rows = frame.selectExpr("partition", "offset", "CAST(value AS STRING) AS value").collect()
    return [row.value for row in sorted(rows, key=lambda row: (row.partition, row.offset))]


def rows(spark: SparkSession, *triples: tuple[Any, ...], schema: str) -> DataFrame:
    return spark.createDataFrame(list(triples), schema)


def test_a_record_is_read_with_all_its_columns(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, ["v"], key=b"k", timestamp_ms=NOON_MS)

    (row,) = read(spark, kafka, subscribe=topic, includeHeaders=True).collect()

    assert row.asDict() == {
        "key": bytearray(b"k"),
        "value": bytearray(b"v"),
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "timestamp": dt.datetime.fromtimestamp(NOON_MS / 1000),
        "timestampType": 0,
        "headers": None,
    }


def test_a_topic_with_log_append_time_says_so_in_the_timestamp_type(
    spark: SparkSession, kafka: Kafka
) -> None:
    topic = kafka.topic(message_timestamp_type="LogAppendTime")
    kafka.send(topic, ["v"], timestamp_ms=NOON_MS)

    (row,) = read(spark, kafka, subscribe=topic).collect()

    assert row.timestampType == 1
    assert row.timestamp > dt.datetime.fromtimestamp(NOON_MS / 1000)


def test_null_keys_and_null_values_survive_a_write_and_a_read(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic()
    pairs = [("k", "v"), (None, "v"), ("k", None), (None, None)]

    write(rows(spark, *pairs, schema="key STRING, value STRING"), kafka, topic=topic)

    found = read(spark, kafka, subscribe=topic).selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)")
    assert sorted(map(str, found.collect())) == sorted(f"Row(key={k!r}, value={v!r})" for k, v in pairs)


def test_headers_keep_their_order_and_their_duplicates(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic()
    headers = [("b", bytearray(b"1")), ("a", bytearray(b"2")), ("b", bytearray(b"3")), ("none", None)]
    schema = "value STRING, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"

    write(rows(spark, ("v", headers), schema=schema), kafka, topic=topic, includeHeaders=True)

    (row,) = read(spark, kafka, subscribe=topic, includeHeaders=True).collect()
    assert [(header.key, header.value) for header in row.headers] == headers


def test_the_topic_and_partition_columns_choose_where_a_row_goes(spark: SparkSession, kafka: Kafka) -> None:
    one, other = kafka.topic(partitions=3), kafka.topic(partitions=3)
    wanted = [(one, 2, "a"), (one, 0, "b"), (other, 1, "c")]

    write(rows(spark, *wanted, schema="topic STRING, partition INT, value STRING"), kafka)

    found = read(spark, kafka, subscribe=f"{one},{other}").selectExpr(
        "topic", "partition", "CAST(value AS STRING)"
    )
    assert {tuple(row) for row in found.collect()} == set(wanted)


def test_writing_to_a_topic_that_does_not_exist_creates_it(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.new_name()

    write(spark.range(100).selectExpr("CAST(id AS STRING) AS value"), kafka, topic=topic)

    assert sorted(map(int, kafka.values(topic))) == list(range(100))


def test_large_rows_pass_through_a_small_producer_buffer(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    frame = spark.range(300).selectExpr("rpad(CAST(id AS STRING), 15000, 'x') AS value")

    write(frame, kafka, topic=topic, **{"kafka.buffer.memory": 16384, "kafka.batch.size": 16384})

    found = read(spark, kafka, subscribe=topic).selectExpr("count(*)", "sum(length(value))").collect()
    assert [tuple(row) for row in found] == [(300, 300 * 15000)]


def test_a_read_sees_the_rows_that_arrived_before_its_action(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic(partitions=3)
    kafka.send(topic, range(5))
    frame = read(spark, kafka, subscribe=topic)
    assert frame.count() == 5

    kafka.send(topic, range(5, 8), partition=2)

    assert frame.count() == 8
    assert frame.union(frame).count() == 16


def test_reading_between_explicit_offsets(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic(partitions=3)
    for partition in range(3):
        kafka.send(topic, range(partition * 10, partition * 10 + 5), partition=partition)

    frame = read(
        spark,
        kafka,
        subscribe=topic,
        startingOffsets=offsets(**{topic: {0: -2, 1: 3, 2: 1}}),
        endingOffsets=offsets(**{topic: {0: 2, 1: -1, 2: 4}}),
    )

    assert values(frame) == ["0", "1", "13", "14", "21", "22", "23"]


def test_reading_between_timestamps_of_each_partition(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    for minute in range(4):
        for partition in range(2):
            kafka.send(
                topic,
                [f"{partition}:{minute}"],
                partition=partition,
                timestamp_ms=NOON_MS + minute * MINUTE_MS,
            )

    frame = read(
        spark,
        kafka,
        subscribe=topic,
        startingOffsetsByTimestamp=offsets(**{topic: {0: NOON_MS + 1, 1: NOON_MS}}),
        endingOffsetsByTimestamp=offsets(**{topic: {0: NOON_MS + 3 * MINUTE_MS, 1: NOON_MS + 2 * MINUTE_MS}}),
    )

    assert values(frame) == ["0:1", "0:2", "1:0", "1:1"]


def test_one_timestamp_for_all_partitions(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    for minute in range(3):
        for partition in range(2):
            kafka.send(
                topic,
                [f"{partition}:{minute}"],
                partition=partition,
                timestamp_ms=NOON_MS + minute * MINUTE_MS,
            )

    frame = read(
        spark,
        kafka,
        subscribe=topic,
        startingTimestamp=NOON_MS + MINUTE_MS,
        endingTimestamp=NOON_MS + 2 * MINUTE_MS,
    )

    assert values(frame) == ["0:1", "1:1"]


def test_a_start_after_the_last_record_fails_or_means_the_end(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, ["old"], timestamp_ms=NOON_MS)
    after = {"subscribe": topic, "startingTimestamp": NOON_MS + 1}

    with pytest.raises(Exception, match="No offset matched from request of topic-partition"):
        read(spark, kafka, **after).collect()
    assert read(spark, kafka, **after, startingOffsetsByTimestampStrategy="latest").collect() == []


def test_assign_reads_the_named_partitions_only(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic(partitions=3)
    for partition in range(3):
        kafka.send(topic, [partition], partition=partition)

    assert values(read(spark, kafka, assign=f'{{"{topic}": [0, 2]}}')) == ["0", "2"]


def test_a_pattern_reads_every_topic_that_matches_but_no_internal_one(
    spark: SparkSession, kafka: Kafka
) -> None:
    family = kafka.new_name("family")
    for member in ("a", "b"):
        kafka.send(kafka.create(f"{family}-{member}"), [member])
    kafka.send(kafka.topic(prefix="stranger"), ["stranger"])

    frame = read(spark, kafka, subscribePattern=f"{family}-.*|__consumer_offsets")

    assert {(row.topic, bytes(row.value)) for row in frame.collect()} == {
        (f"{family}-a", b"a"),
        (f"{family}-b", b"b"),
    }


def test_a_partition_split_over_several_tasks_gives_each_row_once(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    for partition in range(2):
        kafka.send(topic, range(partition * 75, partition * 75 + 75), partition=partition)

    frame = read(spark, kafka, subscribe=topic, minPartitions=6)

    assert frame.rdd.getNumPartitions() >= 6
    assert values(frame) == [str(n) for n in range(150)]


def test_a_read_starts_after_the_records_that_were_deleted(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, range(10))
    frame = read(spark, kafka, subscribe=topic)

    kafka.delete_records(topic, before=6)

    assert values(frame) == ["6", "7", "8", "9"]


def test_deleted_records_that_were_asked_for_are_reported_as_lost(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, range(10))
    kafka.delete_records(topic, before=6)
    gone = {"subscribe": topic, "startingOffsets": offsets(**{topic: {0: 2}})}

    with pytest.raises(Exception, match="data may have been lost"):
        read(spark, kafka, **gone).collect()
    assert values(read(spark, kafka, **gone, failOnDataLoss=False)) == ["6", "7", "8", "9"]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_spark_reads_back_what_it_compressed(spark: SparkSession, kafka: Kafka, codec: str) -> None:
    topic = kafka.topic(partitions=2)

    write(
        spark.range(2000).selectExpr("CAST(id AS STRING) AS value"),
        kafka,
        topic=topic,
        **{"kafka.compression.type": codec},
    )

    total = read(spark, kafka, subscribe=topic).selectExpr(
        "count(*)", "sum(CAST(CAST(value AS STRING) AS LONG))"
    )
    assert [tuple(row) for row in total.collect()] == [(2000, sum(range(2000)))]

"""`format("kafka_log")` in a session: folders that a broker writes, of ours and of Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pykafka_broker.spark import register_kafka_log
from pykafka_broker.spark.replay import ReplayError, Target, replay
from pykafka_broker.testing.apache.broker import ApacheBroker
from tests.arrow.cluster import Cluster
from tests.spark.conftest import Broker
from tests.spark.kafka import Kafka

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


@pytest.fixture(scope="module", autouse=True)
def registered(spark: SparkSession) -> None:
    register_kafka_log(spark)


def folder(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    given = {name.replace("__", "."): str(value) for name, value in options.items()}
    return spark.read.format("kafka_log").options(**given).load(str(path))


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """All columns of all rows, by partition and offset."""
    columns = ("partition", "offset", "key", "value", "topic", "timestamp", "timestampType", "headers")
    return sorted(map(tuple, frame.select(*columns).collect()))


def fill(cluster: Cluster, topic: str) -> None:
    """A topic with batches of every codec with and without headers, and of transactions that were committed,
    aborted and left open.
    """
    cluster.create(topic, 3, internal_segment_bytes="20000", index_interval_bytes="500", retention_ms="-1")
    producer = cluster.producer(transactional_id=topic, linger_ms=5, compression_type="lz4")
    producer.init_transactions(60)
    for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        values: list[bytes | None] = [b"%d" % each * each for each in range(200)]
        cluster.fill(topic, values, compression_type=codec, batch_num_messages=20)
        producer.begin_transaction()
        for part in range(40):
            headers: list[tuple[str, str | bytes | None]] | None = None
            if part % 2:
                headers = [("part", b"%d" % part), ("none", None)]
            producer.produce(topic, b"%d-%d" % (number, part), None, part % 3, headers=headers)
        producer.flush(60)
        if number == 4:
            return
        if number % 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)


def insist_on_the_same(spark: SparkSession, address: str, data_dir: Path, topic: str) -> None:
    """The folder has what Spark's own source reads from the topic, in several tasks."""
    for level in ("read_uncommitted", "read_committed"):
        of_topic = (
            spark.read.format("kafka")
            .option("kafka.bootstrap.servers", address)
            .option("kafka.isolation.level", level)
            .option("includeHeaders", "true")
            .option("subscribe", topic)
            .load()
        )
        of_folder = folder(
            spark, data_dir, subscribe=topic, kafka__isolation__level=level, maxPartitionBytes=20_000
        )
        assert of_folder.dtypes == of_topic.dtypes
        assert of_folder.rdd.getNumPartitions() > 3
        assert rows(of_folder) == rows(of_topic)


def test_a_folder_has_the_rows_that_the_topic_has(spark: SparkSession, broker: Broker, kafka: Kafka) -> None:
    topic = kafka.new_name()
    fill(Cluster(broker.address, broker.data_dir), topic)

    insist_on_the_same(spark, broker.address, broker.data_dir, topic)


def test_a_folder_of_apache_kafka_has_the_rows_that_its_topic_has(
    spark: SparkSession, kafka_jars: Path, tmp_path: Path
) -> None:
    with ApacheBroker(folder=tmp_path) as apache:
        cluster = Cluster(apache.address, apache.data_dir)
        fill(cluster, "orders")
        insist_on_the_same(spark, apache.address, apache.data_dir, "orders")
        running = rows(folder(spark, apache.data_dir, subscribe="orders"))

    assert rows(folder(spark, apache.data_dir, subscribe="orders")) == running
    one = folder(spark, apache.data_dir / "orders-1", columns="topic_id, producerEpoch,offset")
    ((topic_id, epoch, count),) = one.selectExpr(
        "min(topic_id)", "max(producerEpoch)", "count(offset)"
    ).collect()
    metadata = (apache.data_dir / "orders-1" / "partition.metadata").read_text()
    assert (metadata.split("topic_id: ")[1].strip(), 0) == (topic_id, epoch)
    assert count == sum(partition == 1 for partition, *_ in running)


def test_what_is_wrong_is_said_in_a_sentence(spark: SparkSession, broker: Broker, kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, range(3))
    refused: list[tuple[dict[str, str], str]] = [
        ({"subscribr": "x"}, "kafka_log has no option 'subscribr'. Did you mean subscribe?"),
        ({"subscribe": "nowhere"}, "There is no folder of topic 'nowhere' in "),
        ({"subscribe": topic, "endingOffsets": f'{{"{topic}": {{"0": 4}}}}'}, f"{topic}-0 has no offset 4"),
    ]
    for options, sentence in refused:
        with pytest.raises(Exception) as error:
            folder(spark, broker.data_dir, **options).count()
        assert sentence in str(error.value)
    frame, target = folder(spark, broker.data_dir, subscribe=topic), Target(kafka.bootstrap, "again")
    with pytest.raises(ReplayError, match=r"^The source is format\('kafka_log'\) without .* aborted"):
        replay(frame, target)


def test_a_stream_goes_on_where_it_was_in_batches_of_some_offsets(
    spark: SparkSession, broker: Broker, kafka: Kafka, tmp_path: Path
) -> None:
    topic = kafka.topic(partitions=2)
    kafka.send(topic, range(20))

    def running() -> StreamingQuery:
        return (
            spark.readStream.format("kafka_log")
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", 8)
            .load(str(broker.data_dir))
            .selectExpr("partition", "CAST(value AS STRING) AS value")
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "copied"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )

    def batches(meanwhile: Callable[[], None]) -> list[int]:
        query = running()
        try:
            query.processAllAvailable()
            meanwhile()
            query.processAllAvailable()
        finally:
            query.stop()
        return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]

    assert batches(lambda: kafka.send(topic, range(20, 26), partition=1)) == [8, 8, 4, 6]
    kafka.send(topic, range(26, 40))
    assert batches(lambda: None) == [8, 6]
    copied = spark.read.parquet(str(tmp_path / "copied"))
    assert sorted(int(row["value"]) for row in copied.collect()) == list(range(40))

    kafka.send(topic, range(40, 50))
    kafka.delete_records(topic, before=40)
    checkpoint = broker.data_dir / "log-start-offset-checkpoint"
    kafka.eventually(lambda: f"{topic} 0 40" in checkpoint.read_text())
    with pytest.raises(Exception, match=f"Offsets 34 to 39 of {topic}-0 were deleted before the stream"):
        batches(lambda: None)

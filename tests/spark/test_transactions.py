"""Spark over transactional topics: aborted records and the offsets that markers take are gaps for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka import KafkaProducer

from tests.spark.kafka import Kafka
from tests.spark.test_batch import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READ_COMMITTED = {"kafka.isolation.level": "read_committed"}
TRANSACTIONS = 12
PER_TRANSACTION = 25
#: Every third one is aborted.
COMMITTED = [number for number in range(TRANSACTIONS) if number % 3 != 2]


def transact(kafka: Kafka, topic: str, partitions: int) -> KafkaProducer:
    """Transactions over all partitions, some aborted, the last one still open; its producer."""
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id=f"writer-of-{topic}")
    producer.init_transactions()
    for number in range(TRANSACTIONS + 1):
        producer.begin_transaction()
        sent = [
            producer.send(topic, f"{number}-{count}".encode(), partition=count % partitions)
            for count in range(PER_TRANSACTION)
        ]
        for future in sent:
            future.get(timeout=30)
        if number == TRANSACTIONS:
            break
        if number in COMMITTED:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    return producer


def values(frame: DataFrame) -> list[str]:
    return sorted(row.value for row in frame.selectExpr("CAST(value AS STRING) AS value").collect())


def expected() -> list[str]:
    return sorted(f"{number}-{count}" for number in COMMITTED for count in range(PER_TRANSACTION))


def test_a_batch_of_committed_records_is_exact(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    producer = transact(kafka, topic, 2)

    frame = read(spark, kafka, subscribe=topic, **READ_COMMITTED)
    assert values(frame) == expected()
    assert frame.count() == len(COMMITTED) * PER_TRANSACTION
    everything = read(spark, kafka, subscribe=topic)
    assert everything.count() == (TRANSACTIONS + 1) * PER_TRANSACTION

    producer.abort_transaction()
    producer.close()
    assert values(read(spark, kafka, subscribe=topic, **READ_COMMITTED)) == expected()


def test_a_stream_of_committed_records_is_exact_over_many_small_batches(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic = kafka.topic(partitions=2)
    producer = transact(kafka, topic, 2)
    producer.abort_transaction()
    producer.close()
    options: dict[str, Any] = {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": 40,
        **READ_COMMITTED,
    }
    stream = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap)
        .options(**{name: str(value) for name, value in options.items()})
        .load()
        .selectExpr("CAST(value AS STRING) AS value")
    )
    seen = tmp_path / "seen"
    query = (
        stream.writeStream.format("parquet")
        .option("path", str(seen))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)

    assert values(spark.read.parquet(str(seen))) == expected()

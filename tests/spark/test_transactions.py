"""Spark over transactional topics: aborted records and the offsets that markers take are gaps for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka import KafkaProducer

from tests.spark.kafka import Kafka
from tests.spark.test_batch import read
from tests.spark.test_streaming import Table, rows_per_batch, run_to_the_end, running, stream

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
            future.get(timeout=90)
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
    followed = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap)
        .options(**{name: str(value) for name, value in options.items()})
        .load()
        .selectExpr("CAST(value AS STRING) AS value")
    )
    seen = tmp_path / "seen"
    query = (
        followed.writeStream.format("parquet")
        .option("path", str(seen))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)

    assert values(spark.read.parquet(str(seen))) == expected()


def test_a_batch_cut_into_many_tasks_reads_over_the_gaps_between_them(
    spark: SparkSession, kafka: Kafka
) -> None:
    topic = kafka.topic(partitions=2)
    producer = transact(kafka, topic, 2)
    producer.abort_transaction()
    producer.close()

    frame = read(spark, kafka, subscribe=topic, minPartitions=16, **READ_COMMITTED)

    assert frame.rdd.getNumPartitions() >= 16
    assert values(frame) == expected()


def test_a_stream_waits_for_the_end_of_a_transaction_and_goes_on_from_its_checkpoint(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic = kafka.topic()
    table = Table(tmp_path)
    followed = stream(spark, kafka, subscribe=topic, **READ_COMMITTED)
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id=f"writer-of-{topic}")
    producer.init_transactions()

    def begin(numbers: range) -> None:
        producer.begin_transaction()
        for future in [producer.send(topic, str(number).encode()) for number in numbers]:
            future.get(timeout=90)

    begin(range(3))
    producer.commit_transaction()
    with running(table.fed_by(followed)) as query:
        query.processAllAvailable()
        begin(range(3, 6))
        # Records without a transaction wait behind an open one.
        kafka.send(topic, range(6, 9))
        query.processAllAvailable()
        assert table.values(spark) == ["0", "1", "2"]
        producer.commit_transaction()
        kafka.eventually(lambda: sum(rows_per_batch(query)) == 9)
    begin(range(100, 110))
    producer.abort_transaction()
    begin(range(9, 12))
    producer.commit_transaction()
    begin(range(110, 120))
    producer.abort_transaction()
    producer.close()

    query = run_to_the_end(table.fed_by(followed))

    assert sum(rows_per_batch(query)) == 3
    assert table.values(spark) == [str(number) for number in range(12)]

"""Clicks -> counts per page and minute -> a Kafka topic and Parquet files, with Spark's own Kafka connector.

Start a broker, then run this with a Python that has PySpark (`pip install 'pyspark==4.0.0'`):

    pykafka-broker start --data-dir pykafka-data
    python examples/clickstream.py --bootstrap 127.0.0.1:9092 --output clickstream

It puts a few minutes of made-up clicks into the topic `clicks`, counts them per page and minute of their
event time, and writes each closed minute both to the topic `clicks-per-minute` (JSON, keyed by page, so that
other programs can follow it) and to Parquet files below the output folder. A second run continues at
the checkpoint, with new clicks of the minutes after the last ones.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import random
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

CLICKS, COUNTS = "clicks", "clicks-per-minute"
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
CLICK_SCHEMA = "page STRING, user STRING, at TIMESTAMP"


def made_up_clicks(spark: SparkSession, start: dt.datetime, minutes: int, seed: int) -> DataFrame:
    """Ten clicks a minute, the same ones for the same seed."""
    dice = random.Random(seed)
    clicks = [
        (
            dice.choice(["/home", "/search", "/cart"]),
            f"user-{dice.randrange(20)}",
            start + dt.timedelta(minutes=minute, seconds=dice.randrange(60)),
        )
        for minute in range(minutes)
        for _ in range(10)
    ]
    return spark.createDataFrame(clicks, CLICK_SCHEMA)


def first_free_minute(spark: SparkSession, bootstrap: str) -> dt.datetime:
    """The minute after the newest click in the topic. Clicks of minutes that are closed would not count."""
    newest = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", CLICKS)
        .load()
        .select(f.from_json(f.col("value").cast("string"), CLICK_SCHEMA).alias("click"))
        .agg(f.max("click.at"))
        .collect()[0][0]
    )
    minute: dt.datetime = newest.replace(second=0, microsecond=0) + dt.timedelta(minutes=1)
    return minute


def send_clicks(clicks: DataFrame, bootstrap: str) -> None:
    """One JSON record per click, keyed by user, so that a user's clicks keep their order."""
    (
        clicks.select(f.col("user").alias("key"), f.to_json(f.struct("*")).alias("value"))
        .write.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", CLICKS)
        .save()
    )


def counts_per_minute(spark: SparkSession, bootstrap: str) -> DataFrame:
    """Clicks per page and minute of event time. A minute closes when a click one minute later has been
    seen.
    """
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", CLICKS)
        .option("startingOffsets", "earliest")
        .load()
        .select(f.from_json(f.col("value").cast("string"), CLICK_SCHEMA).alias("click"))
        .select("click.*")
        .withWatermark("at", "1 minute")
        .groupBy(f.window("at", "1 minute"), "page")
        .count()
        .select(f.col("window.start").alias("minute"), "page", "count")
    )


def publish(counts: DataFrame, bootstrap: str, output: Path) -> StreamingQuery:
    """Write every closed minute to both places. The Parquet folder of a batch is replaced if the batch is
    repeated.
    """

    def write(batch: DataFrame, batch_id: int) -> None:
        batch.persist()
        batch.write.mode("overwrite").parquet(str(output / "counts" / f"batch={batch_id}"))
        (
            batch.select(f.col("page").alias("key"), f.to_json(f.struct("*")).alias("value"))
            .write.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", COUNTS)
            .save()
        )
        batch.unpersist()

    return (
        counts.writeStream.outputMode("append")
        .option("checkpointLocation", str(output / "checkpoint"))
        .foreachBatch(write)
        .trigger(availableNow=True)
        .start()
    )


def run(
    spark: SparkSession, bootstrap: str, output: Path, start: dt.datetime, minutes: int, seed: int
) -> None:
    send_clicks(made_up_clicks(spark, start, minutes, seed), bootstrap)
    publish(counts_per_minute(spark, bootstrap), bootstrap, output).awaitTermination()


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--bootstrap", default="127.0.0.1:9092", help="address of the broker")
    options.add_argument(
        "--output", type=Path, default=Path("clickstream"), help="folder for Parquet and checkpoint"
    )
    options.add_argument("--minutes", type=int, default=5, help="how many minutes of clicks to make up")
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()

    spark = (
        SparkSession.builder.master("local[2]")
        .appName("clickstream")
        .config("spark.jars.packages", CONNECTOR)
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    start = dt.datetime.now().replace(second=0, microsecond=0)
    if (chosen.output / "checkpoint").exists():
        start = max(start, first_free_minute(spark, chosen.bootstrap))
    run(spark, chosen.bootstrap, chosen.output, start, chosen.minutes, chosen.seed)

    counts = spark.read.parquet(str(chosen.output / "counts")).orderBy("minute", "page")
    for row in counts.collect():
        print(json.dumps({"minute": row.minute.isoformat(), "page": row.page, "count": row["count"]}))
    spark.stop()


if __name__ == "__main__":
    main()

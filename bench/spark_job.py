"""The Spark rows of the bench as one program: write rows, read them, copy them as a stream; times as JSON.

    python -m bench.spark_job --bootstrap 127.0.0.1:9092 --rows 2000000 --ivy .cache/ivy

It runs with a pyspark of its own (`spark_lane.py`), and so without the packages of this project.

Each step runs once small before it is timed, so that starting the JVM and compiling the plans are not
counted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable

import pyspark
from pyspark.sql import SparkSession


def session(jars: str | None, ivy: str) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("bench")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.jars.ivy", ivy)
    )
    if jars:
        builder = builder.config("spark.jars", jars)
    else:
        connector = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
        builder = builder.config("spark.jars.packages", connector)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def write(spark: SparkSession, bootstrap: str, topic: str, rows: int) -> None:
    (
        spark.range(rows, numPartitions=4)
        .selectExpr("lpad(CAST(id AS STRING), 100, 'x') AS value")
        .write.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", topic)
        .save()
    )


def read(spark: SparkSession, bootstrap: str, topic: str, rows: int) -> None:
    frame = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .load()
    )
    ((count, size),) = frame.selectExpr("count(*)", "sum(length(value))").collect()
    assert (count, size) == (rows, rows * 100), (count, size)


def copy(spark: SparkSession, bootstrap: str, source: str, target: str) -> None:
    with tempfile.TemporaryDirectory() as checkpoint:
        (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .load()
            .select("value")
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", target)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        )


def timed(step: Callable[[], None]) -> float:
    started = time.perf_counter()
    step()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--jars", help="comma-separated jars instead of spark.jars.packages")
    parser.add_argument("--ivy", required=True, help="the folder of spark.jars.packages")
    options = parser.parse_args()
    spark = session(options.jars, options.ivy)
    run = f"spark-{os.getpid()}"

    def steps(prefix: str, rows: int) -> dict[str, float]:
        source, target = f"{prefix}-source", f"{prefix}-target"
        return {
            "write_s": timed(lambda: write(spark, options.bootstrap, source, rows)),
            "read_s": timed(lambda: read(spark, options.bootstrap, source, rows)),
            "copy_s": timed(lambda: copy(spark, options.bootstrap, source, target)),
        }

    steps(f"{run}-warm", 10_000)
    result = steps(run, options.rows)
    spark.stop()
    print(json.dumps({"spark": pyspark.__version__, **result}))


if __name__ == "__main__":
    main()

"""Run in a process of its own by `interop.spark.rolling_restarts`:

    rolling.py BOOTSTRAP VERSION PYSPARK_FOLDER SOURCE TARGET JAR...

Copies one topic to the other by a streaming query, and reads the first by one batch after the other. Prints
"running" when both have begun. The line "end" on stdin says that no more records come: prints one JSON object
with what the query has done ("problem" if it failed), and with the values in both topics as batches see them.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from typing import Any

BOOTSTRAP, VERSION, FOLDER, SOURCE, TARGET, *JARS = sys.argv[1:]
sys.path.insert(0, FOLDER)
os.environ["PYTHONPATH"] = FOLDER
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
os.environ.pop("SPARK_HOME", None)

import pyspark  # noqa: E402 - the release that was asked for
from pyspark.sql import SparkSession  # noqa: E402


def kafka(builder: Any, **options: str) -> Any:
    builder = builder.format("kafka").option("kafka.bootstrap.servers", BOOTSTRAP)
    return builder.options(**options)


def numbers(spark: SparkSession, topic: str) -> list[int]:
    """The number in each record of a topic."""
    rows = kafka(spark.read, subscribe=topic).load().selectExpr("CAST(value AS STRING) AS number").collect()
    return sorted(int(row.number) for row in rows)


def copy_and_read(spark: SparkSession, checkpoint: str) -> dict[str, Any]:
    stream = kafka(spark.readStream, subscribe=SOURCE, startingOffsets="earliest").load()
    writer = stream.select("key", "value").writeStream
    query = (
        kafka(writer, topic=TARGET, checkpointLocation=checkpoint)
        .trigger(processingTime="200 milliseconds")
        .start()
    )
    ended = threading.Event()

    def await_end() -> None:
        sys.stdin.readline()
        ended.set()

    threading.Thread(target=await_end, daemon=True).start()
    batches, seen, is_running = 0, 0, False
    while not ended.is_set():
        found = len(numbers(spark, SOURCE))
        assert found >= seen, f"a batch read {found} records after one of {seen}"
        batches, seen = batches + 1, found
        if not is_running and query.lastProgress is not None and query.lastProgress["numInputRows"]:
            is_running = True
            print("running", flush=True)
    query.processAllAvailable()
    query_batches = query.lastProgress["batchId"] + 1
    query.stop()
    assert query.exception() is None, str(query.exception())
    return {
        "batches": batches,
        "query_batches": query_batches,
        "source": numbers(spark, SOURCE),
        "target": numbers(spark, TARGET),
    }


def main() -> None:
    assert pyspark.__version__ == VERSION, pyspark.__version__
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(JARS))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as checkpoint:
        try:
            told = copy_and_read(spark, checkpoint)
        except Exception as error:
            told = {"problem": str(error)[:3000]}
    spark.stop()
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()

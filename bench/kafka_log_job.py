"""A topic read by Spark's own connector, and its folder by `format("kafka_log")`: records for each second of
processor time, as JSON.

    python -m bench.kafka_log_job 127.0.0.1:9092 data topic 2000000

One session of the installed PySpark runs the same query over all of them: how many rows, and how many bytes
of values. Rounds are interleaved, the first three of each do not count, and of the others the median does.
Processor time is that of the driver, the JVM and all of its Python workers.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bench.process import TICKS_PER_SECOND
from bench.spark_process import figures_of, local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WARM_UP, ROUNDS = 3, 3


def frames(spark: SparkSession, address: str, folder: str, topic: str) -> dict[str, DataFrame]:
    from pykafka_broker.spark import register_kafka_log

    connector = spark.read.format("kafka").option("kafka.bootstrap.servers", address)
    register_kafka_log(spark)
    log = spark.read.format("kafka_log").option("subscribe", topic)
    return {
        "connector": connector.option("subscribe", topic).load(),
        "all_columns": log.load(folder),
        "kafka_log": log.option("columns", "value").load(folder),
    }


def read(frame: DataFrame, records: int) -> None:
    ((count, size),) = frame.selectExpr("count(*)", "sum(length(value))").collect()
    assert count == records, (count, size)


def seconds_of_tree() -> float:
    """Processor time of this process and of all that it has started, also of those that have ended."""
    fields: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            _, _, rest = path.read_text().rpartition(") ")
            fields[int(path.parent.name)] = [int(each) for each in rest.split()[1:15]]
    ours = {os.getpid()}
    # Parents mostly have smaller numbers than their children, but numbers begin anew.
    while more := {pid for pid, (parent, *_) in fields.items() if parent in ours} - ours:
        ours |= more
    return sum(sum(fields[pid][10:14]) for pid in ours) / TICKS_PER_SECOND


def measured(address: str, folder: str, topic: str, records: int) -> dict[str, float]:
    """Records a second, and a second of processor time, of each reader, in a process of its own."""
    return figures_of("bench.kafka_log_job", address, folder, topic, str(records))


def main() -> None:
    address, folder, topic, records = sys.argv[1:]
    spark = local_session(conf={"spark.sql.shuffle.partitions": "2"})
    readers = frames(spark, address, folder, topic)
    rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in readers}
    for _ in range(WARM_UP + ROUNDS):
        for name, frame in readers.items():
            used, began = seconds_of_tree(), time.perf_counter()
            read(frame, int(records))
            rounds[name].append((time.perf_counter() - began, seconds_of_tree() - used))
    figures = {}
    for name, found in rounds.items():
        seconds, used = (statistics.median(each) for each in zip(*found[WARM_UP:], strict=True))
        figures[f"{name}_per_s"] = int(records) / seconds
        figures[f"{name}_per_core"] = int(records) / used
    spark.stop()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()

"""A replay of rows of 100 B from Parquet into a new topic of four partitions, as JSON: rows a second.

    python -m bench.replay_job --bootstrap 127.0.0.1:9092 --rows 2000000

A small replay before it starts the JVM, compiles the plans and imports the package in the workers. The rows
are then read twice: the replay looks at all of them before it writes the first.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.spark_process import figures_of, local_session

PARTITIONS = 4
VALUE_BYTES = 100


def measured(address: str, rows: int) -> dict[str, float]:
    """The figures of one replay, in a process of its own."""
    return figures_of("bench.replay_job", "--bootstrap", address, "--rows", str(rows))


def write_table(folder: Path, rows: int) -> None:
    """Rows in Spark's kafka format, with keys and without headers."""
    folder.mkdir()
    for partition in range(PARTITIONS):
        numbers = range(rows // PARTITIONS)
        count = len(numbers)
        table = pa.table(
            {
                "key": pa.array([b"%d" % (number % 1_000) for number in numbers], pa.binary()),
                "value": pa.array([b"%0100d" % number for number in numbers], pa.binary()),
                "topic": pa.array(["source"] * count),
                "partition": pa.array([partition] * count, pa.int32()),
                "offset": pa.array(numbers, pa.int64()),
                "timestamp": pa.array([1_700_000_000_000_000] * count, pa.timestamp("us", tz="UTC")),
                "timestampType": pa.array([0] * count, pa.int32()),
                "headers": pa.nulls(
                    count, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
                ),
            }
        )
        pq.write_table(table, folder / f"{partition}.parquet")


def main() -> None:
    """Run one replay after a warm-up, and print its figures."""
    from pykafka_broker.spark.replay import Preparation, Target, replay

    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--rows", type=int, default=2_000_000)
    options = parser.parse_args()
    spark = local_session()
    seconds = 0.0
    with tempfile.TemporaryDirectory() as name:
        for step, rows in (("warm", 20_000), ("run", options.rows)):
            folder = Path(name) / step
            write_table(folder, rows)
            target = Target(options.bootstrap, f"replay-{step}-{os.getpid()}", Preparation.CREATE)
            done = replay(spark.read.parquet(str(folder)), target)
            assert done.records == rows // PARTITIONS * PARTITIONS, done
            seconds = done.seconds
    spark.stop()
    print(json.dumps({"per_s": options.rows / seconds}))


if __name__ == "__main__":
    main()

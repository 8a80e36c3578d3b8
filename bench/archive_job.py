"""A topic archived to tables of Delta and Iceberg: records and bytes a second, as JSON.

    python -m bench.archive_job 127.0.0.1:9092 topic 1000000

`archive_topics` in one session of the installed PySpark, of two cores, from a new checkpoint to a new table.
The first round of each format does not count, and of the others the median does. The bytes are those of keys
and values. Jars are those of the Spark tests.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pykafka_broker.testing.cache import CACHE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pykafka_broker.spark.archive.settings import TableFormat

FORMATS: tuple[TableFormat, ...] = ("delta", "iceberg")
WARM_UP, ROUNDS = 1, 3
MB = 1_000_000


def session(folder: Path) -> SparkSession:
    from pykafka_broker.spark import kafka_session
    from pykafka_broker.spark.installation import look
    from pykafka_broker.spark.jars import fetch_jars
    from pykafka_broker.spark.releases import TABLES, packages
    from pykafka_broker.spark.repository import Repository

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    installed = look()
    jars = CACHE / f"spark-{installed.spark}" / "jars-tables"
    fetch_jars(jars, packages(installed.spark, installed.scala, TABLES), installed.jars, Repository())
    spark = kafka_session(
        "bench",
        master="local[2]",
        tables=TABLES,
        jars=jars,
        conf={
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
        },
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def archived(spark: SparkSession, address: str, topic: str, format_: TableFormat, folder: Path) -> int:
    """Archive the topic to a new table; how many bytes."""
    from pykafka_broker.spark.archive import Table, Topics, archive_topics

    name = f"lake.bench.{folder.name}" if format_ == "iceberg" else str(folder / "table")
    topics = Topics(address, (topic,))
    return archive_topics(spark, topics, Table(format_, name), str(folder / "checkpoint")).bytes


def measured(address: str, topic: str, records: int) -> dict[str, float]:
    """Records and bytes a second by format, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.archive_job", address, topic, str(records)],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"archiving with Spark failed: {done.stderr.strip()[-2000:]}")
    figures: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def main() -> None:
    address, topic, records = sys.argv[1:]
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as root:
        spark = session(Path(root))
        seconds: dict[TableFormat, list[float]] = {name: [] for name in FORMATS}
        for number in range(WARM_UP + ROUNDS):
            for name in FORMATS:
                folder = Path(root) / f"{name}_{number}"
                began = time.perf_counter()
                size = archived(spark, address, topic, name, folder)
                seconds[name].append(time.perf_counter() - began)
        for format_, found in seconds.items():
            median = statistics.median(found[WARM_UP:])
            figures[f"{format_}_per_s"] = int(records) / median
            figures[f"{format_}_mb_per_s"] = size / MB / median
        spark.stop()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()

"""A topic archived to tables of Delta and Iceberg: records and bytes a second, as JSON.

    python -m bench.archive_job 127.0.0.1:9092 topic 1000000

`archive_topics` in one session of the installed PySpark, of two cores, from a new checkpoint to a new table.
The first round of each format does not count, and of the others the median does. The bytes are those of keys
and values. Jars are those of the Spark tests.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.spark_process import figures_of, local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pykafka_broker.spark.archive.settings import TableFormat

FORMATS: tuple[TableFormat, ...] = ("delta", "iceberg")
WARM_UP, ROUNDS = 1, 3
MB = 1_000_000


def session(folder: Path) -> SparkSession:
    from pykafka_broker.spark.releases import TABLES

    return local_session(
        TABLES,
        {
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
        },
    )


def archived(spark: SparkSession, address: str, topic: str, format_: TableFormat, folder: Path) -> int:
    """Archive the topic to a new table; how many bytes."""
    from pykafka_broker.spark.archive import Table, Topics, archive_topics

    name = f"lake.bench.{folder.name}" if format_ == "iceberg" else str(folder / "table")
    topics = Topics(address, (topic,))
    return archive_topics(spark, topics, Table(format_, name), str(folder / "checkpoint")).bytes


def measured(address: str, topic: str, records: int) -> dict[str, float]:
    """Records and bytes a second by format, in a process of its own."""
    return figures_of("bench.archive_job", address, topic, str(records))


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

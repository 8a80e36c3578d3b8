"""compact(): many small files of an archive become few large ones, with the same rows.

No job appends to the days before today, so each day is rewritten once. The rewrite is a commit of its own,
which running jobs do not notice. The old files stay until VACUUM (Delta) or `expire_snapshots` (Iceberg)
removes them, for readers of older versions of the table.

A folder of Parquet is refused: its `_spark_metadata` names every file, and readers that ignore it would find
each row twice while both old and new files are there.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from pykafka_broker.spark.archive.settings import Table
from pykafka_broker.spark.archive.tables import require_archive, table_of
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.kafka_format import DAY
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Compacted(NamedTuple):
    """The numbers of files that a compaction removed and added."""

    removed: int
    added: int


def compact(spark: SparkSession, table: Table, before: dt.date | None = None) -> Compacted:
    """Rewrite the files of the days before `before`; None is today in UTC.

    Raises:
        SparkError: the table is no archive, or a folder of Parquet.
    """
    target = table_of(spark, table)
    if target.table.format == "parquet":
        raise SparkError(
            f"{table.name} is a folder of Parquet, whose files are named in its _spark_metadata and cannot "
            "be replaced in one step. Archive to Delta or Iceberg."
        )
    require_archive(target)
    day = (before or dt.datetime.now(dt.UTC).date()).isoformat()
    if target.table.format == "delta":
        [row] = spark.sql(f"OPTIMIZE {target.table.identifier} WHERE {DAY} < '{day}'").collect()
        return Compacted(row.metrics.numFilesRemoved, row.metrics.numFilesAdded)
    catalog, _, name = target.table.name.partition(".")
    [row] = spark.sql(
        f"CALL {catalog}.system.rewrite_data_files(table => '{name}', where => \"{DAY} < '{day}'\", "
        # A past day gets no more files, so two are enough to rewrite them.
        "options => map('min-input-files', '2'))"
    ).collect()
    return Compacted(row.rewritten_data_files_count, row.added_data_files_count)

"""The tables of an archive: made, looked at, and written by the sink of their format.

The native sinks of Delta and Iceberg keep query and batch with each commit, and skip a batch that they have.
Parquet keeps them in its folder `_spark_metadata`, which only Spark reads: files of an interrupted batch stay
beside the others, and other readers take them for records.

A table has an archive id among its properties, which the checkpoint knows too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from pyspark.sql.types import DateType, StringType, StructField, StructType

from pykafka_broker.spark.archive.classic import exists
from pykafka_broker.spark.archive.evolution import Addition, quoted, sql_type
from pykafka_broker.spark.archive.settings import Pace, Table
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.kafka_format import DAY, TOPIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

#: The property with the id of an archive.
ARCHIVE_ID = "pykafka-broker.archive-id"
PARTITIONED_BY = (TOPIC, DAY)


class ArchiveTable(Protocol):
    """A table that may exist."""

    @property
    def table(self) -> Table:
        """Its format and its name."""

    def exists(self) -> bool:
        """Whether it was made already."""

    def create(self, columns: StructType, archive_id: str) -> None:
        """Make it, with these columns."""

    def columns(self) -> StructType | None:
        """The table's columns; None if each file has its own."""

    def add(self, additions: Sequence[Addition]) -> None:
        """Add columns and fields."""

    def archive_id(self) -> str | None:
        """The id that it was made with; None if it was not made as an archive."""

    @property
    def is_of_one_checkpoint(self) -> bool:
        """Whether it ignores the batches of every checkpoint but its first."""

    def rows(self) -> DataFrame:
        """All that is archived."""

    def write(self, frame: DataFrame, checkpoint: str, pace: Pace) -> StreamingQuery:
        """Start the query that appends the rows."""


def table_of(spark: SparkSession, table: Table) -> ArchiveTable:
    """The table of this name.

    Raises:
        SparkError: there can be none.
    """
    checked = table.checked()
    if checked.format == "delta":
        return SqlTable(spark, checked, Delta())
    if checked.format == "iceberg":
        return SqlTable(spark, checked, Iceberg())
    return ParquetFolder(spark, checked)


class TableKind(Protocol):
    """The operations that differ between table formats."""

    def exists(self, spark: SparkSession, table: Table) -> bool:
        """Whether the table was made already."""

    def prepare(self, spark: SparkSession, table: Table) -> None:
        """Make what the table needs before it is made."""

    def start(self, writer: DataStreamWriter, table: Table) -> StreamingQuery:
        """Start the query that appends to the table."""


class SqlTable:
    """A table that SQL can make, look at and alter."""

    __slots__ = ("_kind", "_spark", "table")
    is_of_one_checkpoint = False

    def __init__(self, spark: SparkSession, table: Table, kind: TableKind) -> None:
        self._spark = spark
        self.table = table
        self._kind = kind

    def exists(self) -> bool:
        return self._kind.exists(self._spark, self.table)

    def create(self, columns: StructType, archive_id: str) -> None:
        self._kind.prepare(self._spark, self.table)
        ddl = ", ".join(f"`{quoted(field.name)}` {sql_type(field.dataType)}" for field in columns.fields)
        self._spark.sql(
            f"CREATE TABLE {self.table.identifier} ({ddl}) USING {self.table.format} "
            f"PARTITIONED BY ({', '.join(PARTITIONED_BY)}) TBLPROPERTIES ('{ARCHIVE_ID}' = '{archive_id}')"
        )

    def columns(self) -> StructType | None:
        return self.rows().schema

    def add(self, additions: Sequence[Addition]) -> None:
        if additions:
            columns = ", ".join(addition.sql for addition in additions)
            self._spark.sql(f"ALTER TABLE {self.table.identifier} ADD COLUMNS ({columns})")

    def archive_id(self) -> str | None:
        rows = self._spark.sql(f"SHOW TBLPROPERTIES {self.table.identifier}").collect()
        return next((str(row.value) for row in rows if row.key == ARCHIVE_ID), None)

    def rows(self) -> DataFrame:
        return self._spark.table(self.table.identifier)

    def write(self, frame: DataFrame, checkpoint: str, pace: Pace) -> StreamingQuery:
        return self._kind.start(_writer(frame, self.table, checkpoint, pace), self.table)


class Delta:
    """Tables of Delta, at a path or in a catalog."""

    def exists(self, spark: SparkSession, table: Table) -> bool:
        from pyspark.errors import AnalysisException

        try:
            return spark.catalog.tableExists(table.identifier)
        except AnalysisException as error:
            if "DELTA_MISSING_DELTA_TABLE" in str(error):
                return False
            raise

    def prepare(self, spark: SparkSession, table: Table) -> None:
        """Nothing to do: a path needs nothing, and the user makes the namespaces of a catalog."""

    def start(self, writer: DataStreamWriter, table: Table) -> StreamingQuery:
        return writer.start(table.name) if table.is_path else writer.toTable(table.name)


class Iceberg:
    """Tables of Iceberg, in a catalog."""

    def exists(self, spark: SparkSession, table: Table) -> bool:
        return spark.catalog.tableExists(table.identifier)

    def prepare(self, spark: SparkSession, table: Table) -> None:
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {table.name.rpartition('.')[0]}")

    def start(self, writer: DataStreamWriter, table: Table) -> StreamingQuery:
        # A task may have records of several topics, and their files stay open beside each other.
        return writer.option("fanout-enabled", "true").toTable(table.name)


class ParquetFolder:
    """A folder of Parquet files, in place of a table."""

    __slots__ = ("_spark", "table")
    is_of_one_checkpoint = True

    def __init__(self, spark: SparkSession, table: Table) -> None:
        self._spark = spark
        self.table = table

    def exists(self) -> bool:
        """Whether it has a batch."""
        return exists(self._spark, f"{self.table.name}/_spark_metadata")

    def create(self, columns: StructType, archive_id: str) -> None:
        """The first batch makes it."""

    def columns(self) -> StructType | None:
        return None

    def add(self, additions: Sequence[Addition]) -> None:
        """Files have the columns that they were written with."""

    def archive_id(self) -> str | None:
        return self.table.name

    def rows(self) -> DataFrame:
        found = self._spark.read.option("mergeSchema", "true").parquet(self.table.name).schema
        # From the names of folders, Spark would take a topic named 2026 for a number.
        by_folder = {TOPIC: StringType(), DAY: DateType()}
        fields = [StructField(f.name, by_folder.get(f.name, f.dataType)) for f in found.fields]
        return self._spark.read.schema(StructType(fields)).parquet(self.table.name)

    def write(self, frame: DataFrame, checkpoint: str, pace: Pace) -> StreamingQuery:
        return (
            _writer(frame, self.table, checkpoint, pace).partitionBy(*PARTITIONED_BY).start(self.table.name)
        )


def _writer(frame: DataFrame, table: Table, checkpoint: str, pace: Pace) -> DataStreamWriter:
    writer = (
        frame.writeStream.format(table.format)
        .outputMode("append")
        .queryName(f"archive to {table.name}")
        .option("checkpointLocation", checkpoint)
    )
    if pace.is_endless:
        return writer.trigger(processingTime=f"{round(pace.every_s * 1000)} milliseconds")
    return writer.trigger(availableNow=True)


def require_archive(table: ArchiveTable) -> None:
    """Refuse a table that does not exist, or that no archive job made.

    Raises:
        SparkError: the table is refused.
    """
    if not table.exists():
        raise SparkError(f"There is no table {table.table.name}.")
    if table.archive_id() is None:
        raise SparkError(f"{table.table.name} was not made by an archive job.")


def made_as_archive(table: ArchiveTable) -> str:
    """The id of an existing table that a job is to fill.

    Raises:
        SparkError: no archive job made it.
    """
    archive_id = table.archive_id()
    if archive_id is None:
        raise SparkError(
            f"{table.table.name} was not made by an archive job: name a table that does not exist yet."
        )
    return archive_id

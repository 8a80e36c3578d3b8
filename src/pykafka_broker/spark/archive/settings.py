"""The settings of an archive job: topics, a table, and its rate. Pure."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Literal

from pykafka_broker.spark.errors import SparkError
from pykafka_broker.system.named_tuple import NamedTuple

TableFormat = Literal["delta", "iceberg", "parquet"]
TABLE_FORMATS: tuple[TableFormat, ...] = ("delta", "iceberg", "parquet")

#: The options of Spark's source that the job sets itself.
_OWN_OPTIONS = frozenset(
    {
        "assign",
        "endingoffsets",
        "failondataloss",
        "includeheaders",
        "kafka.bootstrap.servers",
        "startingoffsets",
        "subscribe",
        "subscribepattern",
    }
)


class Topics(NamedTuple):
    """The topics that are archived."""

    bootstrap_servers: str
    names: tuple[str, ...]
    #: Other options of Spark's Kafka source, such as `minPartitions` or `kafka.fetch.max.bytes`. The job's
    #: own client takes `kafka.security.protocol`, `kafka.sasl.*` and `kafka.ssl.*` from them too.
    options: Mapping[str, str] = {}

    def __repr__(self) -> str:
        """The fields without the values of options, some of which are secrets."""
        return f"Topics({self.bootstrap_servers!r}, {self.names!r}, [{', '.join(self.options)}])"

    def checked(self) -> Topics:
        """The same.

        Raises:
            SparkError: no topic is named, or one twice, or an option is the job's own or not served.
        """
        if not self.names:
            raise SparkError("No topic is named.")
        if twice := next((name for name in self.names if self.names.count(name) > 1), None):
            raise SparkError(f"Topic '{twice}' is named twice.")
        if own := next((option for option in self.options if option.lower() in _OWN_OPTIONS), None):
            raise SparkError(f"The option {own} is set by the job itself.")
        return self


class Table(NamedTuple):
    """The table that takes the records.

    A table of Delta is a path or a name in a catalog, one of Iceberg a name with its catalog
    (`lake.raw.events`), Parquet is a folder. A name with a slash is a path.
    """

    format: TableFormat
    name: str

    def checked(self) -> Table:
        """The same, with an absolute path.

        Raises:
            SparkError: the format is unknown, or the name is none of this format.
        """
        if self.format not in TABLE_FORMATS:
            raise SparkError(f"{self.format!r} is no table format here: {', '.join(TABLE_FORMATS)}.")
        if self.format == "iceberg" and (self.is_path or self.name.count(".") < 2):
            raise SparkError(
                f"{self.name!r} is no table of Iceberg: give CATALOG.NAMESPACE.TABLE, with a catalog that "
                "the session has."
            )
        if self.format == "parquet" and not self.is_path:
            return self._replace(name=os.path.abspath(self.name))
        if self.is_path and "://" not in self.name and not self.name.startswith("file:"):
            return self._replace(name=os.path.abspath(self.name))
        return self

    @property
    def jars(self) -> list[str]:
        """The table formats whose jars a session needs."""
        return [] if self.format == "parquet" else [self.format]

    @property
    def is_path(self) -> bool:
        """Whether it is named by its path."""
        return "/" in self.name

    @property
    def identifier(self) -> str:
        """The table's name in SQL."""
        if self.format == "delta" and self.is_path:
            return f"delta.`{self.name.replace('`', '``')}`"
        return self.name


class Start(StrEnum):
    """The beginning of a job whose checkpoint is new."""

    #: Begin with the first record of each topic; refused if the table has records of the topic.
    EARLIEST = "earliest"
    #: Begin with the records from now on; refused if the table has records of the topic.
    LATEST = "latest"
    #: Begin after the last record of each partition in the table: the way on after a lost checkpoint.
    BEHIND_TABLE = "behind-table"
    #: As BEHIND_TABLE; if the topic has lost records in between, begin with the first record left.
    BEHIND_TABLE_WITH_GAPS = "behind-table-with-gaps"

    @property
    def is_behind_table(self) -> bool:
        """Whether the table says where to begin."""
        return self in (Start.BEHIND_TABLE, Start.BEHIND_TABLE_WITH_GAPS)


def never() -> bool:
    """A `Pace.until` that never tells the job to end."""
    return False


class Pace(NamedTuple):
    """When a job reads, how much at once, and until when."""

    #: False: it ends when everything that was there at its start is archived (available-now).
    is_endless: bool = False
    #: Seconds between the beginnings of batches of an endless job.
    every_s: float = 10.0
    #: The most records (offsets) of a batch; None: no limit.
    batch_records: int | None = None
    #: Called about once a second; when it is true, the job ends after the batch that it is writing.
    until: Callable[[], bool] = never

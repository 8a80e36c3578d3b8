"""The checkpoint of an archive job: the job's progress, and the files that the job adds to Spark's.

    kafka-topic-ids.json   the ids of the topics that are read, as `spark checkpoint inspect --remember` keeps
    archive-table.json     {"archive_id": ...}: the table that the job fills

The folder lies where Hadoop's file systems reach: on a disk of the driver, on HDFS or in an object store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pykafka_broker.spark.archive.classic import classic_jvm
from pykafka_broker.spark.archive.guard import Archive, Progress, committed
from pykafka_broker.spark.archive.settings import Table
from pykafka_broker.spark.archive.tables import require_archive, table_of
from pykafka_broker.spark.checkpoint.files import (
    TOPIC_IDS,
    Offsets,
    kafka_offsets,
    read_checkpoint,
    read_topic_ids,
    write_topic_ids,
    write_whole,
)
from pykafka_broker.spark.errors import SparkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE_TABLE = "archive-table.json"
#: The file with the offsets where a query began, which Spark writes before its first batch.
_INITIAL = "sources/0/0"
_LOCAL = "file"


def committed_offsets(
    spark: SparkSession, checkpoint: str, table: Table, topic: str, topic_id: str = ""
) -> dict[int, tuple[int, int]]:
    """The first and the end offset that an archive job has committed, of each partition.

    Args:
        spark: A classic session.
        checkpoint: The checkpoint of the job.
        table: The table that the job fills.
        topic: The name of the topic.
        topic_id: Its id, as Kafka's tools print it; "" is not compared.

    Raises:
        SparkError: the checkpoint is not of a job that archives this topic to this table.
    """
    target = table_of(spark, table)
    require_archive(target)
    progress = CheckpointFolder(spark, checkpoint).progress()
    if progress is None:
        raise SparkError(f"{checkpoint} is no checkpoint of a job that has begun.")
    return committed(progress, topic, topic_id, Archive(target.table.name, target.archive_id(), {}))


# -- a folder on this machine
# ---------------------------


def read_progress(folder: Path, name: str) -> Progress | None:
    """The progress noted by the checkpoint in a folder; None if no query has begun with it.

    Raises:
        SparkError: its format is not known here.
    """
    topic_ids, archive_id = read_topic_ids(folder), _read_archive_id(folder)
    if not any(path.name.isdecimal() for path in folder.glob("offsets/*")):
        initial = _initial_offsets(folder)
        return None if initial is None else Progress(name, {0: initial}, {}, topic_ids, archive_id, initial)
    found, initial = read_checkpoint(folder), _initial_offsets(folder) or {}
    positions = found.positions() if found.is_done or found.before is not None else {0: initial}
    return Progress(name, positions, found.last.kafka_sources(), topic_ids, archive_id, initial)


def write_memory(folder: Path, topic_ids: Mapping[str, str], archive_id: str) -> None:
    """Write the ids that a later start compares."""
    folder.mkdir(parents=True, exist_ok=True)
    write_topic_ids(folder, topic_ids)
    write_whole(folder / ARCHIVE_TABLE, json.dumps({"archive_id": archive_id}) + "\n")


def _read_archive_id(folder: Path) -> str | None:
    path = folder / ARCHIVE_TABLE
    return str(json.loads(path.read_text())["archive_id"]) if path.exists() else None


def _initial_offsets(folder: Path) -> Offsets | None:
    """Where the query began. Spark puts a byte of 0 and a line with a version in front."""
    path = folder / _INITIAL
    if not path.exists():
        return None
    return kafka_offsets(path.read_text().lstrip("\0").partition("\n")[2])


# -- wherever it lies
# -------------------


class CheckpointFolder:
    """The checkpoint at a path or URI of Hadoop's."""

    __slots__ = ("_files", "_path_of", "name")

    def __init__(self, spark: SparkSession, name: str) -> None:
        """Raises SparkError: the session is one of Spark Connect, which does not reach the folder."""
        self._path_of: Callable[[str], Any] = classic_jvm(spark).org.apache.hadoop.fs.Path
        settings = spark._jsparkSession.sessionState().newHadoopConf()
        self._files: Any = self._path_of(name).getFileSystem(settings)
        self.name = name

    def progress(self) -> Progress | None:
        """The progress of the job; None for a new checkpoint; raises the errors of `read_progress`."""
        if (local := self._local()) is not None:
            return read_progress(local, self.name)
        with TemporaryDirectory() as copy:
            for part in ("offsets", "commits", "sources", TOPIC_IDS, ARCHIVE_TABLE):
                path = self._child(part)
                if self._files.exists(path):
                    self._files.copyToLocalFile(
                        False, path, self._path_of((Path(copy) / part).as_uri()), True
                    )
            return read_progress(Path(copy), self.name)

    def remember(self, topic_ids: Mapping[str, str], archive_id: str) -> None:
        """Write the ids that a later start compares."""
        if (local := self._local()) is not None:
            write_memory(local, topic_ids, archive_id)
            return
        with TemporaryDirectory() as copy:
            write_memory(Path(copy), topic_ids, archive_id)
            for part in (TOPIC_IDS, ARCHIVE_TABLE):
                written = self._path_of((Path(copy) / part).as_uri())
                self._files.copyFromLocalFile(False, True, written, self._child(part))

    def _local(self) -> Path | None:
        """The folder, if it is on this machine."""
        if self._files.getScheme() != _LOCAL:
            return None
        return Path(self._files.makeQualified(self._path_of(self.name)).toUri().getPath())

    def _child(self, name: str) -> Any:
        return self._path_of(f"{self.name.rstrip('/')}/{name}")

"""archive_topics(): topics to a table of Delta or Iceberg, or to a folder of Parquet files.

An interrupted start can be repeated, because of its order: the guard checks topics, checkpoint and table; the
table is made, if there is none; the checkpoint gets the ids of topics and table; the query starts. While it
runs, the topics' ids are checked every `GUARD_S`, because Spark knows topics only by name.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StructField, StructType

from pykafka_broker.protocol.errors import KafkaError, ProtocolError
from pykafka_broker.spark.archive import guard, progress, rows
from pykafka_broker.spark.archive.checkpoints import CheckpointFolder
from pykafka_broker.spark.archive.cluster import Cluster
from pykafka_broker.spark.archive.evolution import additions
from pykafka_broker.spark.archive.settings import Pace, Start, Table, Topics
from pykafka_broker.spark.archive.tables import ArchiveTable, made_as_archive, table_of
from pykafka_broker.spark.checkpoint.files import Offsets
from pykafka_broker.spark.checkpoint.topics import Topic
from pykafka_broker.spark.kafka_format import ARCHIVE_DDL, OFFSET, PARTITION, TOPIC, TOPIC_ID
from pykafka_broker.spark.python_packages import MAP_IN_ARROW, insist_on
from pykafka_broker.spark.security import properties_in
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from pykafka_broker.arrow.core.values import Format
    from pykafka_broker.spark.archive.decoding import Decoder

#: Seconds between two looks at a running job, and between two at its topics.
LOOK_S, GUARD_S = 1, 2.0
#: Seconds between two looks at the last batch of a job that is told to end.
LAST_LOOK_S = 0.05
_UNANSWERED = (KafkaError, OSError, ProtocolError)

Report = Callable[[progress.Batch], None]


def archive_topics(
    spark: SparkSession,
    topics: Topics,
    table: Table,
    checkpoint: str,
    *,
    start: Start = Start.EARLIEST,
    pace: Pace = Pace(),  # noqa: B008 - a frozen value
    decode: Mapping[str, Format] = MappingProxyType({}),
    report: Report | None = None,
) -> progress.Archived:
    """Append the records of topics to a table, exactly once; returns when the job has ended.

    Args:
        spark: A classic session with the Kafka connector and the jars of the table.
        topics: The topics to archive.
        table: The table to fill; made if it does not exist.
        checkpoint: A folder of the job's own, with its progress.
        start: Where a job with a new checkpoint begins.
        pace: How much it reads at once, and when it ends.
        decode: How `key` or `value` are encoded, by the formats of `pykafka_broker.arrow`: they become the
            columns `value_data` and `value_error`, beside the bytes.
        report: Called with each batch that is archived.

    Raises:
        SparkError: it would lose or repeat records, or its topics do not exist (any more).
        KafkaError, OSError: the brokers cannot be asked.
        StreamingQueryException: the query failed for another reason.
    """
    cluster = Cluster(topics.checked().bootstrap_servers, properties_in(topics.options))
    target = table_of(spark, table)
    folder = CheckpointFolder(spark, checkpoint)
    found = cluster.topics(topics.names)
    guard.refuse_missing(topics.names, found)
    beginning = examine(folder, target, found, start)
    topic_ids = {name: topic.topic_id for name, topic in found.items()}
    decoder = _decoder(decode, topics.names) if decode else None
    archive_id = _made_or_grown(spark, target, [] if decoder is None else decoder.fields)
    folder.remember(topic_ids, archive_id)
    columns = target.columns()
    stream = rows.stream(spark, topics, beginning.offsets, pace)
    if decoder is not None:
        stream = decoder.applied(stream, columns)
    frame = rows.in_columns(rows.archived(stream, topic_ids), columns)
    query = target.write(frame, checkpoint, pace)
    watch = _Watch(query, cluster, topic_ids, beginning.verified, report or (lambda batch: None))
    try:
        return watch.until_end(pace.until)
    except StreamingQueryException:
        # Spark's errors about lost records do not say which are lost.
        with suppress(*_UNANSWERED):
            found = cluster.topics(topics.names)
            guard.refuse_missing(topics.names, found)
            examine(folder, target, found, start)
        raise
    finally:
        query.stop()


class Beginning(NamedTuple):
    """The beginning of a job."""

    #: The value of `startingOffsets` for a new checkpoint.
    offsets: str
    #: Offsets below these are of the topics that the checkpoint remembers.
    verified: Offsets


def examine(
    folder: CheckpointFolder, target: ArchiveTable, topics: Mapping[str, Topic], start: Start
) -> Beginning:
    """Return the beginning of the job; refuse one that would lose or repeat records."""
    known = folder.progress()
    archive = None
    if target.exists():
        ends = {} if known is None else known.ends
        archive = guard.Archive(
            target.table.name,
            made_as_archive(target),
            _ends_in_table(target, topics, ends),
            target.is_of_one_checkpoint,
        )
    if known is None:
        return Beginning(guard.starting_offsets(start, topics, archive), {})
    guard.refuse_to_go_on(known, topics, archive)
    # Spark goes on where its checkpoint says, and begins new topics and partitions at their beginning.
    return Beginning(Start.EARLIEST.value, known.ends)


def _decoder(formats: Mapping[str, Format], topics: Sequence[str]) -> Decoder:
    insist_on(MAP_IN_ARROW, "Decoding needs")
    from pykafka_broker.spark.archive.decoding import Decoder  # needs packages that nothing else here needs

    return Decoder.of(formats, topics)


def _made_or_grown(spark: SparkSession, target: ArchiveTable, decoded: Sequence[StructField]) -> str:
    """Make the table if there is none, or add what it lacks; return the table's id.

    Raises:
        SparkError: the table is not one of an archive, or has a column of another type.
    """
    plain = spark.createDataFrame([], ARCHIVE_DDL).schema  # StructType.fromDDL came with Spark 4
    wanted = StructType([*plain.fields, *decoded])
    if not target.exists():
        target.create(wanted, str(uuid.uuid4()))
    archive_id = made_as_archive(target)
    target.add(list(additions(target.columns() or wanted, wanted)))
    return archive_id


def _ends_in_table(
    target: ArchiveTable, topics: Mapping[str, Topic], known: Offsets
) -> dict[guard.Place, int]:
    """The offset after the last record of each place, for places where that offset is after the known end.

    Tables know the smallest and the largest offset of each file, so that records after the ends of a
    checkpoint cost little to look for. For a new checkpoint all files of the topics are looked at.
    """
    wanted = F.lit(False)
    for name, topic in topics.items():
        ends = [known[name, number] for number in topic.partitions if (name, number) in known]
        least = min(ends) if len(ends) == len(topic.partitions) else 0
        has_id = F.col(TOPIC_ID) == topic.topic_id if topic.topic_id else F.col(TOPIC_ID).isNull()
        wanted |= (F.col(TOPIC) == name) & has_id & (F.col(OFFSET) >= least)
    found = (
        target.rows()
        .where(wanted)
        .groupBy(TOPIC, TOPIC_ID, PARTITION)
        .agg(F.max(OFFSET).alias(OFFSET))
        .collect()
    )
    return {guard.Place(row[TOPIC], row[TOPIC_ID] or "", row[PARTITION]): row[OFFSET] + 1 for row in found}


class _Watch:
    """Watches a running query: reports its batches, and stops it if one of its topics is another one."""

    def __init__(
        self,
        query: StreamingQuery,
        cluster: Cluster,
        topic_ids: Mapping[str, str],
        verified: Offsets,
        report: Report,
    ) -> None:
        self._query = query
        self._cluster = cluster
        self._topic_ids = topic_ids
        self._report = report
        self._total = progress.Archived()
        self._last_batch = -1
        self._verified = verified
        self._guarded_s = time.monotonic()

    def until_end(self, is_told_to_end: Callable[[], bool]) -> progress.Archived:
        """Wait until the query ends; return the totals that it has archived."""
        has_ended = False
        while not has_ended:
            has_ended = bool(self._query.awaitTermination(LOOK_S))
            if not has_ended and is_told_to_end():
                self._end_after_batch()
                has_ended = True
            reached = self._report_batches()
            if has_ended or time.monotonic() - self._guarded_s >= GUARD_S:
                self._guard(reached)
        return self._total

    def _end_after_batch(self) -> None:
        """Stop the query when it has committed the batch that it is writing. Spark gives up the next one,
        which is not reported. The next run writes what was not committed; no row is there twice.
        """
        last = self._number_of_last_batch()
        while self._query.status["isTriggerActive"] and self._number_of_last_batch() == last:
            time.sleep(LAST_LOOK_S)
        self._query.stop()
        # Raises the error of a query that has failed meanwhile.
        self._query.awaitTermination(LOOK_S)

    def _number_of_last_batch(self) -> int | None:
        last = self._query.lastProgress
        return None if last is None else _told(last)["batchId"]

    def _report_batches(self) -> Offsets:
        """Report the new batches; return the end offsets of the last one."""
        reached = self._verified
        for told in map(_told, self._query.recentProgress):
            # An idle query reports its last batch again, without rows.
            if told["batchId"] <= self._last_batch or not told.get("numInputRows"):
                continue
            reached = progress.ends_of(told)
            batch = progress.batch_of(told, (rows.OBSERVED, rows.BYTES), self._log_ends(reached))
            self._last_batch = batch.number
            self._total = self._total.plus(batch)
            self._report(batch)
        return reached

    def _log_ends(self, partitions: Collection[tuple[str, int]]) -> Offsets | None:
        try:
            return self._cluster.ends(partitions)
        except _UNANSWERED:
            return None

    def _guard(self, reached: Offsets) -> None:
        try:
            now = self._cluster.topic_ids(list(self._topic_ids))
        except _UNANSWERED:
            return  # while brokers are away, no topic is read either
        guard.refuse_changed(self._topic_ids, now, self._verified)
        self._verified, self._guarded_s = reached, time.monotonic()


def _told(reported: Any) -> dict[str, Any]:
    """The values of a progress: a dictionary in Spark 3.5, later an object that has them as JSON."""
    told: dict[str, Any] = json.loads(reported.json) if hasattr(reported, "json") else reported
    return told

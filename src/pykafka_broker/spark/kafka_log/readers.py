"""The readers of `format("kafka_log")`, as Spark 4.0 and 4.1 have them.

A reader is pickled twice, for the planning process and for the executors, so it holds only the caller's
options.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.spark.kafka_log.batch import NOTHING_LEFT_OUT, plan_batch
from pykafka_broker.spark.kafka_log.filters import narrow
from pykafka_broker.spark.kafka_log.import_caches import forget_zip_files
from pykafka_broker.spark.kafka_log.offsets import Json, Positions, from_json, to_json
from pykafka_broker.spark.kafka_log.options import LogOptions
from pykafka_broker.spark.kafka_log.planning import Split, isolation_level
from pykafka_broker.spark.kafka_log.records import Reading, record_batches
from pykafka_broker.spark.kafka_log.stream import LogStream

#: The pause before Spark is told that nothing is new. Otherwise it would ask a hundred times a second, and
#: each time folders are listed.
IDLE_PAUSE_S = 0.1


class KafkaLogReader(DataSourceReader):
    """Reads a batch."""

    def __init__(self, options: LogOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._common = common(options, columns)
        self._narrowing = NOTHING_LEFT_OUT

    def partitions(self) -> list[InputPartition]:
        splits = plan_batch(OsFileSystem(), self._options, self._narrowing)
        forget_zip_files()
        return inputs(splits)

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        return read(partition, self._common)


class FilteringKafkaLogReader(KafkaLogReader):
    """Reads what the filters of the query leave."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Take filters before the read is planned; returns those that Spark still has to apply."""
        self._narrowing, rest = narrow(filters)
        return rest


class KafkaLogStreamReader(DataSourceStreamReader):
    """Reads a stream. The instance that Spark plans with lives as long as the query runs."""

    def __init__(self, options: LogOptions, columns: tuple[str, ...]) -> None:
        self._common = common(options, columns)
        self.most_offsets = options.most_offsets
        self.stream = LogStream(OsFileSystem(), options)

    def initialOffset(self) -> Json:
        return to_json(self.stream.first())

    def latestOffset(self) -> Json:
        return to_json(self.advance(self.most_offsets))

    def advance(self, most: int | None) -> Positions:
        """The end of the next batch. If nothing is new, waits `IDLE_PAUSE_S` first, because Spark asks again
        at once.
        """
        before = self.stream.position
        position = self.stream.advance(most)
        if position == before:
            time.sleep(IDLE_PAUSE_S)
        return position

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        last = from_json(end)
        self.stream.at(last)
        return inputs(self.stream.splits(from_json(start), last))

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        return read(partition, self._common)


def common(options: LogOptions, columns: tuple[str, ...]) -> Reading:
    """The settings that all splits have in common."""
    return Reading(columns, isolation_level(options), options.fail_on_data_loss)


def inputs(splits: Iterable[Split]) -> list[InputPartition]:
    """Splits as Spark hands them to tasks."""
    return [InputPartition(split) for split in splits]


def read(partition: InputPartition | None, shared: Reading) -> Iterator[pa.RecordBatch]:
    """The records of a split; without a split, Spark runs one task with None."""
    try:
        if partition is not None:
            yield from record_batches(OsFileSystem(), partition.value, shared)
    finally:
        forget_zip_files()

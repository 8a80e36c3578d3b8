"""The classes that Spark is given, without a JVM: pickled as Spark pickles them, planned and read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.kafka_format import KAFKA_DDL
from pykafka_broker.spark.kafka_log.data_source import KafkaLog
from pykafka_broker.spark.kafka_log.readers import (
    FilteringKafkaLogReader,
    KafkaLogReader,
    KafkaLogStreamReader,
)
from tests.spark.pure.kafka_log.logs import fill, new_partition, numbered, options

T = TypeVar("T")

#: PySpark's has no types.
dumps: Callable[[object], bytes] = cloudpickle.dumps
COLUMNS = StructType().add("offset", LongType()).add("value", BinaryType())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log directory with a partition of 40 records."""
    fill(new_partition(OsFileSystem(), directory=str(tmp_path), segment_bytes=300), 40).close()
    return tmp_path


def source(folder: Path, **given: str) -> KafkaLog:
    return sent(KafkaLog({"path": str(folder), "subscribe": "orders", **given}))


def sent(value: T) -> T:
    """The value as it arrives in another process."""
    arrived: T = cloudpickle.loads(dumps(value))
    return arrived


def read_by_tasks(reader: Any, partitions: list[InputPartition]) -> list[tuple[int, bytes]]:
    """What the tasks read, each with a reader and a split that were sent to it."""
    batches = [batch for partition in partitions for batch in sent(reader).read(sent(partition))]
    return [(row["offset"], row["value"]) for row in pa.Table.from_batches(batches).to_pylist()]


def test_the_format_has_the_columns_of_sparks_kafka_format(folder: Path) -> None:
    assert KafkaLog.name() == "kafka_log"
    assert issubclass(KafkaLog, DataSource)
    assert source(folder).schema() == KAFKA_DDL
    assert source(folder, columns="offset,leaderEpoch").schema() == "offset BIGINT, leaderEpoch INT"


def test_a_batch_is_planned_on_the_driver_and_read_on_executors(folder: Path) -> None:
    reader = source(folder, minPartitions="5").reader(COLUMNS)

    partitions = reader.partitions()

    assert isinstance(partitions, list)
    assert len(partitions) >= 5
    assert read_by_tasks(reader, partitions) == numbered(*range(40))
    assert list(reader.read(None)) == []  # type: ignore[arg-type]


def test_only_names_of_classes_are_pickled(folder: Path) -> None:
    """Executors import the package, they are not sent it."""
    reader = source(folder).reader(COLUMNS)

    assert len(dumps(reader)) < 2000
    assert len(dumps(reader.partitions()[0])) < 500


def test_a_schema_chooses_columns_and_changes_no_types(folder: Path) -> None:
    with pytest.raises(SparkError, match="kafka_log has value as BINARY, not as string: cast it behind load"):
        source(folder).reader(StructType().add("value", StringType()))
    with pytest.raises(SparkError, match="kafka_log has no column 'payload'"):
        source(folder).reader(StructType().add("payload", BinaryType()))


def test_filters_are_pushed_into_the_plan(folder: Path) -> None:
    class GreaterThan:
        attribute, value = ("offset",), 36

    plain = source(folder).reader(COLUMNS)
    assert isinstance(plain, KafkaLogReader)
    reader = FilteringKafkaLogReader(plain._options, ("offset", "value"))

    assert list(reader.pushFilters([GreaterThan()])) == []
    assert read_by_tasks(reader, reader.partitions()) == numbered(37, 38, 39)


def test_a_stream_is_planned_from_checkpoint_to_checkpoint(folder: Path) -> None:
    given = options(str(folder), subscribe="orders", startingOffsets="earliest", maxOffsetsPerTrigger="15")
    # As Spark 4.0 has it; 4.2 is given another one.
    reader = sent(KafkaLogStreamReader(given, ("offset", "value")))
    positions = [reader.initialOffset(), reader.latestOffset(), reader.latestOffset()]
    kept = [json.loads(json.dumps(position)) for position in positions]

    assert [position["orders"]["0"] for position in kept] == [0, 15, 30]
    assert reader.latestOffset()["orders"]["0"] == 40
    assert reader.latestOffset()["orders"]["0"] == 40

    restarted = sent(KafkaLogStreamReader(given, ("offset", "value")))
    # Spark tells a stream where it is before it asks for the next batch.
    assert restarted.partitions(kept[1], kept[1]) == []
    assert restarted.latestOffset() == positions[2]
    assert read_by_tasks(restarted, restarted.partitions(kept[1], kept[2])) == numbered(*range(15, 30))


def test_options_are_looked_at_before_anything_is_read(folder: Path) -> None:
    with pytest.raises(SparkError, match="maxOffsetsPerTrigger is for streams"):
        source(folder, maxOffsetsPerTrigger="5").reader(COLUMNS)
    with pytest.raises(SparkError, match="endingTimestamp is for batches"):
        source(folder, endingTimestamp="5").streamReader(COLUMNS)
    with pytest.raises(SparkError, match="has no option 'offset'"):
        source(folder, offset="5").schema()

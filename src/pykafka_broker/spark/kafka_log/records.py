"""The records of a split as RecordBatches of the types that Spark has. Runs on executors."""

from __future__ import annotations

import platform
from collections.abc import Iterator

import pyarrow as pa

from pykafka_broker.arrow.core.assembly import Assembly
from pykafka_broker.arrow.core.columns import schema_of
from pykafka_broker.arrow.core.limits import Limits
from pykafka_broker.arrow.core.stored_batches import OffsetRange
from pykafka_broker.arrow.folder import FolderReader
from pykafka_broker.arrow.partition_folder import PartitionFolder
from pykafka_broker.log.disk.files import FileSystem, directory_name
from pykafka_broker.log.disk.names import FolderName
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.kafka_format import HEADERS, TIMESTAMP, TOPIC_ID
from pykafka_broker.spark.kafka_log.losses import report_loss
from pykafka_broker.spark.kafka_log.planning import Split
from pykafka_broker.system.named_tuple import NamedTuple

LIMITS = Limits()

#: Spark has microseconds, and takes no array whose elements cannot be null for one whose elements can.
_TYPES = {
    TIMESTAMP: pa.timestamp("us", tz="UTC"),
    HEADERS: pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])),
}


class Reading(NamedTuple):
    """The settings that all splits of a read have in common."""

    columns: tuple[str, ...]
    isolation_level: int
    fail_on_data_loss: bool


def record_batches(files: FileSystem, split: Split, reading: Reading) -> Iterator[pa.RecordBatch]:
    """The records of a split.

    Raises:
        SparkError: the folder is not on this machine; records are missing, and that is an error; a time is
            beyond what Spark can hold.
        KafkaError: the log is damaged.
    """
    name, (start, end) = split.name, split.wanted
    if not files.exists(directory_name(split.path)):
        raise SparkError(
            f"There is no folder {split.path} on {platform.node()}: every executor needs it under this path."
        )
    folder = PartitionFolder(files, split.path, FolderName(name.topic, name.partition, ""))
    removed = f"The folder {split.path} was removed."
    if not files.exists(split.path):
        report_loss(removed, is_error=reading.fail_on_data_loss)
        return
    columns = _Columns(folder, reading.columns)
    assembly = Assembly(name.topic, columns.stored, LIMITS)
    while start < end:
        missing = f"{name} ends before offset {end}, which was there when the read was planned."
        try:
            reader = FolderReader(folder, OffsetRange(start, end), reading.isolation_level, LIMITS)
            for batches in reader.available():
                start = reader.next_offset
                for batch in assembly.record_batches(batches):
                    yield columns.for_spark(batch)
            if reader.is_finished:
                return
            start = end
        except FileNotFoundError:
            missing, start = removed, end
        except KafkaError as error:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            missing, start = error.message, max(start, folder.start_offset())
        report_loss(missing, is_error=reading.fail_on_data_loss)


class _Columns:
    """The wanted columns: those that arrow reads, and the id of the topic."""

    def __init__(self, folder: PartitionFolder, names: tuple[str, ...]) -> None:
        self._name = folder.name
        self._topic_id = folder.topic_id() if TOPIC_ID in names else None
        # An Arrow batch without columns has no rows.
        self.stored = schema_of([name for name in names if name != TOPIC_ID] or ["offset"])
        self._schema = pa.schema(
            [
                pa.field(name, pa.string())
                if name == TOPIC_ID
                else pa.field(name, _TYPES.get(name, self.stored.field(name).type))
                for name in names
            ]
        )

    def for_spark(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the columns that Spark wants, of its types."""
        arrays = []
        for field in self._schema:
            if field.name == TOPIC_ID:
                arrays.append(pa.repeat(pa.scalar(self._topic_id, pa.string()), batch.num_rows))
            elif field.name == TIMESTAMP:
                arrays.append(self._microseconds(batch.column(TIMESTAMP)))
            else:
                column = batch.column(field.name)
                arrays.append(column if column.type == field.type else column.cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _microseconds(self, timestamps: pa.Array) -> pa.Array:
        try:
            return timestamps.cast(_TYPES[TIMESTAMP])
        except pa.ArrowInvalid:
            raise SparkError(
                f"{self._name.topic}-{self._name.partition} has a timestamp that Spark cannot hold: Kafka's "
                "have milliseconds, and this one seems to have nanoseconds. Leave the column out with the "
                "option columns."
            ) from None

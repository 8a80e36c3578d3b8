"""Log directories for the tests of this folder: partitions whose record N has the value `N`, a second after
the one before.
"""

from __future__ import annotations

from typing import Any

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import FileSystem
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.spark.kafka_log.options import LogOptions, parse
from pykafka_broker.spark.kafka_log.planning import Split, isolation_level
from pykafka_broker.spark.kafka_log.records import Reading, record_batches
from tests.log.logs import NOW, TOPIC_ID, append, produce

LOGS = "/logs"
OTHER_ID = bytes(reversed(TOPIC_ID))
#: A batch of `fill`.
BATCH_BYTES = 72


def new_partition(
    files: FileSystem,
    topic: str = "orders",
    partition: int = 0,
    *,
    directory: str = LOGS,
    topic_id: bytes = TOPIC_ID,
    **settings: Any,
) -> PartitionLog:
    """An empty partition."""
    identity = LogIdentity(f"{directory}/{topic}-{partition}", topic, partition, topic_id)
    settings.setdefault("index_interval_bytes", 0)
    return create_log(Environment(files), identity, LogConfig(**settings))


def fill(log: PartitionLog, count: int) -> PartitionLog:
    """The log with so many batches of one record more."""
    for _ in range(count):
        offset = log.state.log_end_offset
        append(log, b"%03d" % offset, timestamp=NOW + 1000 * offset)
    return log


def transact(log: PartitionLog, producer_id: int, sequence: int) -> None:
    """Produce a record of a transaction."""
    produce(log, producer_id, sequence, b"%03d" % log.state.log_end_offset, transactional=True)


def options(path: str = LOGS, **given: str) -> LogOptions:
    """Options as a caller gives them; `_` stands for a dot."""
    return parse({"path": path, **{name.replace("_", "."): value for name, value in given.items()}})


def read(
    files: FileSystem, splits: list[Split], given: LogOptions, columns: tuple[str, ...] = ("offset", "value")
) -> list[Any]:
    """What the tasks read; of one column its values, of several their tuples."""
    reading = Reading(columns, isolation_level(given), given.fail_on_data_loss)
    rows = [
        tuple(row.values())
        for split in splits
        for batch in record_batches(files, split, reading)
        for row in batch.to_pylist()
    ]
    return [row[0] for row in rows] if len(columns) == 1 else rows


def numbered(*offsets: int) -> list[tuple[int, bytes]]:
    """Offset and value of these records."""
    return [(offset, b"%03d" % offset) for offset in offsets]

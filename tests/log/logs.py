"""Logs and batches for the tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.log.manager.settings import LogThreads
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producers import AppendOrigin
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.partition.transaction_guards import NO_GUARD
from pykafka_broker.log.partition.writer import AppendResult
from pykafka_broker.log.recovery.load_partition import open_log
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.log.recovery.offset_checkpoints import CheckpointedOffsets
from pykafka_broker.machine.threads import RunBlocking
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import BatchFields, Record, build_batch, iter_batches, read_records
from pykafka_broker.protocol.records.control import EndTransactionMarker, build_marker_batch
from pykafka_broker.testing.memory_files import MemoryFiles

NOW = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
FOLDER = "/logs/orders-0"
ORDERS = LogIdentity(FOLDER, "orders", 0, TOPIC_ID)


def new_log(files: MemoryFiles, *, environment: Environment | None = None, **settings: Any) -> PartitionLog:
    """An empty log of partition orders-0."""
    return create_log(environment or Environment(files), ORDERS, LogConfig(**settings))


def reopened(files: MemoryFiles, *, clean: bool = False, **settings: Any) -> PartitionLog:
    """The log as a new process finds it; checkpointed offsets may be among the settings."""
    offsets = {name: settings.pop(name) for name in tuple(settings) if name in CheckpointedOffsets._fields}
    checkpointed = CheckpointedOffsets(**offsets)
    return open_log(Environment(files), ORDERS, LogConfig(**settings), checkpointed, clean=clean, now_ms=NOW)


def batch(*values: bytes | None, timestamp: int = NOW, **header: Any) -> bytearray:
    """One batch, a record for each value."""
    return bytearray(build_batch([(timestamp, None, value, ()) for value in values], BatchFields(**header)))


def one_pool(run_blocking: RunBlocking) -> LogThreads:
    """The same threads for everything, whatever disk it waits for."""

    def run_on_disk(directory: str, job: Callable[[], Any]) -> Awaitable[Any]:
        return run_blocking(job)

    return LogThreads(run_blocking, run_on_disk, run_on_disk, run_blocking)


async def read_here(read: Callable[[], Any]) -> Any:
    """Where reads wait for the disk when no server has threads for them."""
    return read()


def append(log: PartitionLog, *values: bytes | None, epoch: int = 0, **header: Any) -> AppendResult:
    """Produce one batch and make it visible to consumers; a transactional one is verified first."""
    guard = confirmed(log, header) if header.get("transactional") else NO_GUARD
    result = log.writer.append(batch(*values, **header), leader_epoch=epoch, now_ms=NOW, guard=guard)
    log.state.advance_high_watermark(log.state.log_end_offset)
    return result


def confirmed(log: PartitionLog, header: Mapping[str, Any], *, bumps_epoch: bool = False) -> int:
    """The guard of a batch, once the coordinator has confirmed that the partition is in the transaction."""
    return log.writer.start_verification(
        header["producer_id"],
        header["producer_epoch"],
        header["base_sequence"],
        bumps_epoch=bumps_epoch,
        now_ms=NOW,
    )


def produce(
    log: PartitionLog, producer_id: int, sequence: int, *values: bytes, **header: Any
) -> AppendResult:
    """Produce one idempotent batch."""
    header.setdefault("producer_epoch", 0)
    return append(log, *values or (b"v",), producer_id=producer_id, base_sequence=sequence, **header)


def end_transaction(
    log: PartitionLog,
    producer_id: int,
    *,
    commit: bool,
    producer_epoch: int = 0,
    coordinator_epoch: int = 0,
    epoch: int = 0,
    transaction_version: int = 0,
) -> AppendResult:
    """Write the marker that the transaction coordinator would write."""
    marker = build_marker_batch(
        EndTransactionMarker(commit, coordinator_epoch),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        timestamp_ms=NOW,
    )
    return log.writer.append(
        marker,
        leader_epoch=epoch,
        now_ms=NOW,
        origin=AppendOrigin.COORDINATOR,
        transaction_version=transaction_version,
    )


def values(log: PartitionLog, offset: int | None = None, limit: Any = "log_end") -> list[bytes | None]:
    """The values of all records from `offset` (or the start) on, as a consumer reads them."""
    return [value for _, value in records(log, offset, limit)]


def records(
    log: PartitionLog, offset: int | None = None, limit: Any = "log_end"
) -> list[tuple[int, bytes | None]]:
    """(offset, value) of all data records from `offset` on, fetched piece by piece."""
    position = log.state.log_start_offset if offset is None else offset
    found: list[tuple[int, bytes | None]] = []
    while data := log.reader.plan_read(position, 1000, limit=limit).read():
        for at, header in iter_batches(data):
            if not header.is_control:
                found += [(r.offset, r.value) for r in read_records(data[at:]) if r.offset >= position]
            next_position = header.next_offset
        assert next_position > position
        position = next_position
    return found


def log_of_orders(manager: LogManager, partition: int = 0) -> PartitionLog:
    """The log of a partition that the manager has."""
    log = manager.get("orders", partition)
    assert log is not None
    return log


def names(files: MemoryFiles, folder: str = FOLDER) -> list[str]:
    """The files in a folder, sorted."""
    return sorted(os.path.basename(path) for path in files.inodes if os.path.dirname(path) == folder)


def served(log: PartitionLog) -> tuple[dict[int, Record], list[int]]:
    """Records by offset, without markers, and the offsets that are refused as damaged."""
    found: dict[int, Record] = {}
    refused: list[int] = []
    offset = log.state.log_start_offset
    while offset < log.state.log_end_offset:
        try:
            data = log.reader.plan_read(offset, 1, limit="log_end").read()
        except KafkaError as error:
            assert error.code is ErrorCode.CORRUPT_MESSAGE
            refused.append(offset)
            offset += 1
            continue
        if not data:
            break
        for at, header in iter_batches(data):
            if not header.is_control:
                found |= {record.offset: record for record in read_records(data[at:])}
            offset = header.next_offset
    return found, refused

"""Reads record batches for a share partition: only as many as its member may acquire.

A member asks for a number of records, and a few hundred need only a small part of the limits in bytes. So the
log is read piece by piece until there are enough records, from one segment as with any fetch. The answer
begins with the batch of the first acquired record and ends with that of the last.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, Optional

from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.records.batch import BatchHeader, iter_batches, read_records
from pykafka_broker.protocol.records.control import ControlRecordType, decode_key
from pykafka_broker.share.core.events import AbortedTransaction, AcquiredRecords, FetchedBatch
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafka_broker.apis.ports.node import NodePorts
    from pykafka_broker.log.partition.limit import Limit
    from pykafka_broker.log.partition.partition_log import PartitionLog
    from pykafka_broker.log.partition.read_plan import ReadPlan

#: The sizes of the first piece and of later ones.
FIRST_PIECE_BYTES = 64 * 1024
PIECE_BYTES = 256 * 1024
#: The longest wait for a disk; after it the partition is answered without records, until the read ends.
DISK_PATIENCE_MS = 1_000

_base_offset = attrgetter("base_offset")


class PartitionRead(NamedTuple):
    """What to read of one partition."""

    offset: int
    #: Records from here on are not needed; the last batch may extend beyond it.
    before_offset: int
    max_bytes: int
    limit: Limit
    #: Whether the first batch is read even if it has more than `max_bytes` (KIP-74).
    minimum_one_batch: bool


class ReadBatches:
    """The batches that were read."""

    __slots__ = ("_bytes", "aborted", "batches", "size_bytes")

    def __init__(self) -> None:
        self.batches: list[FetchedBatch] = []
        #: Aborted transactions with records in the batches; only for read_committed.
        self.aborted: set[AbortedTransaction] = set()
        self.size_bytes = 0
        self._bytes: list[Buffer] = []

    def add(self, header: BatchHeader, data: Buffer, *, is_abort_marker: bool) -> None:
        """Add the next batch."""
        self.batches.append(
            FetchedBatch(
                header.base_offset,
                header.last_offset,
                header.producer_id,
                header.is_transactional,
                is_abort_marker,
            )
        )
        self._bytes.append(data)
        self.size_bytes += header.size_in_bytes

    def records_of(self, acquired: Sequence[AcquiredRecords]) -> Buffer:
        """The bytes from the batch of the first acquired record to that of the last."""
        if not acquired:
            return b""
        begin = bisect_right(self.batches, acquired[0].first_offset, key=_base_offset) - 1
        end = bisect_right(self.batches, acquired[-1].last_offset, key=_base_offset)
        return b"".join(self._bytes[max(begin, 0) : end])


async def read_batches(log: PartitionLog, wanted: PartitionRead, node: NodePorts) -> ReadBatches:
    """Read from `wanted.offset` on.

    Raises:
        KafkaError: OFFSET_OUT_OF_RANGE, or the storage has failed.
    """
    found = ReadBatches()
    next_offset, piece_bytes = wanted.offset, FIRST_PIECE_BYTES
    segment: int | None = None
    while next_offset < wanted.before_offset:
        left = wanted.max_bytes - found.size_bytes
        is_needed = wanted.minimum_one_batch and not found.batches
        if left <= 0 and not is_needed:
            break
        try:
            plan = log.reader.plan_read(next_offset, max(min(piece_bytes, left), 1), limit=wanted.limit)
            segment = plan.segment_base_offset if segment is None else segment
            if plan.segment_base_offset not in (None, segment):
                break
            data = plan.read_cached()
            if data is None:
                data = await _from_disk(log, plan, node)
        except KafkaError:
            if found.batches:
                break  # the next fetch gets the error
            raise
        count = len(found.batches)
        view = memoryview(data or b"")
        for position, header in iter_batches(view):
            size = header.size_in_bytes
            if found.size_bytes + size > wanted.max_bytes and (found.batches or not wanted.minimum_one_batch):
                return found
            batch = view[position : position + size]
            found.add(header, batch, is_abort_marker=header.is_control and _aborts(batch))
            next_offset = header.next_offset
            if next_offset >= wanted.before_offset:
                break
        if len(found.batches) == count:
            break
        if wanted.limit == "last_stable":
            found.aborted.update(
                AbortedTransaction(txn.first_offset, txn.producer_id) for txn in plan.aborted_transactions()
            )
        piece_bytes = PIECE_BYTES
    return found


async def _from_disk(log: PartitionLog, plan: ReadPlan, node: NodePorts) -> Optional[bytes]:
    """The bytes if a thread reads them in time, else None: the log is late until the read ends."""
    reading = node.cold_reads.run(log, plan.read)
    until_ms = node.clock.monotonic_ms() + DISK_PATIENCE_MS
    await node.cold_reads.first_done((reading,), until_ms)
    if reading.done():
        return reading.result()
    node.cold_reads.give_up(log, reading)
    return None


def _aborts(batch: Buffer) -> bool:
    """Whether a control batch is an abort marker."""
    record = next(read_records(batch, check_crc=False), None)
    return record is not None and decode_key(record.key) is ControlRecordType.ABORT

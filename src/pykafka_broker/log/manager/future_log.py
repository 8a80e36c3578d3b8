"""A partition that moves into another log directory (KIP-113) while it is written and read.

    /a/orders-0                     the source: served until the swap
    /b/orders-0.<32 hex>-future     the future log: filled with the same batches

The steps, and the work of the next start after a crash:

1. The future log is filled. The next start finds both folders and goes on where the copy ends.
2. It is flushed, the last batches follow, and its folder is renamed to `/b/orders-0`: from this moment on it
   is the log. A crash before the next step leaves two folders of that name. The next start serves the one
   that reaches further (`is_copy_of`): both hold the same history, and batches that only the new one holds
   were written after the swap. Apache Kafka does not start on them.
3. It is flushed again, with its name; the source becomes `/a/orders-0.<32 hex>-delete`, and is removed
   `file.delete.delay.ms` later.

Only the mover uses the future log: it appends in a worker thread, and does the file work there too. The
source is not compacted meanwhile: if a tombstone were removed between two steps, an older record would come
back.
"""

from __future__ import annotations

from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.read_plan import ReadPlan
from pykafka_broker.log.partition.replica_writer import ANY_LEADER_EPOCH
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import iter_batches


class LogMove:
    """One move: `source` is served until `future` takes its place."""

    def __init__(self, source: PartitionLog, future: PartitionLog) -> None:
        self.source = source
        self.future = future
        self.name = source.name
        self.copied_bytes = 0
        #: A worker uses the future log's files: they must not be renamed.
        self.is_busy = False
        #: Cancelled while a worker was busy with it.
        self.is_cancelled = False
        source.compaction.pause()

    def __repr__(self) -> str:
        return f"LogMove({self.source!r} to {self.future.directory})"

    @property
    def lag(self) -> int:
        """The number of offsets that the future log is behind its source; negative if it is ahead."""
        return self.source.state.log_end_offset - self.future.state.log_end_offset

    @property
    def may_copy(self) -> bool:
        """Whether no compaction is replacing closed segments of the source."""
        return not self.source.compaction.is_under_way

    def divergence(self) -> int | None:
        """The offset from which the future log's history differs from the source's; None if it does not.

        It differs after the source lost an unsynced end in a crash, or was truncated to its leader's history.
        A copy that a crash has damaged is made again.
        """
        source, future = self.source, self.future
        if any(segment.trust.damages for segment in future.state.segments):
            return future.state.segments[0].base_offset
        epoch, end_offset = future.state.latest_epoch, future.state.log_end_offset
        while epoch >= 0:
            found, source_end = source.reader.end_offset_for_epoch(epoch)
            if found == epoch:
                common = min(end_offset, source_end)
                return common if common < future.state.log_end_offset else None
            if found < 0:
                break
            epoch, end_offset = future.reader.end_offset_for_epoch(found)
        start = max(future.state.segments[0].base_offset, source.state.log_start_offset)
        return start if future.state.latest_epoch >= 0 and start < future.state.log_end_offset else None

    def plan(self, max_bytes: int) -> ReadPlan:
        """The batches to copy next, about `max_bytes` of them and at least one. Event loop.

        Raises:
            KafkaError: CORRUPT_MESSAGE or a storage error of the source.
        """
        offset = max(self.future.state.log_end_offset, self.source.state.log_start_offset)
        return self.source.reader.plan_read(offset, max_bytes, limit="log_end")

    def close_gap(self, max_bytes: int) -> bool:
        """Copy the batches appended during the last step, if they are few and in memory; return whether the
        future log now has everything that the source has. Event loop, while no worker is busy with it.

        Raises:
            KafkaError: a storage error, of the source or of the future log.
        """
        if self.divergence() is None and self.lag > 0:
            plan = self.plan(max_bytes)
            records = plan.read_cached() if plan.size_bytes <= max_bytes else None
            if records is not None:
                self.take(plan, records, self.source.state.log_end_offset)
        return self.divergence() is None and self.lag == 0

    def truncate(self, offset: int) -> None:
        """Remove the records that the source does not have, from `offset` on. Worker thread."""
        if offset <= self.future.state.segments[0].base_offset:
            self.future.trimmer.reset_to(offset)
        else:
            self.future.trimmer.truncate_to(offset)

    def copy(self, plan: ReadPlan, end_offset: int) -> None:
        """Carry out a plan; `end_offset` is the source's end when the plan was made. Worker thread.

        Raises:
            KafkaError: a storage error, of the source or of the future log.
        """
        self.take(plan, plan.read(), end_offset)

    def take(self, plan: ReadPlan, records: Buffer, end_offset: int) -> None:
        """As `copy`, with records already read. Worker thread; event loop while no worker is busy with it."""
        future = self.future
        if plan.first_offset > future.state.log_end_offset:
            # The offsets between are below the log start offset.
            future.trimmer.reset_to(plan.first_offset)
        size = base_offset = 0
        for position, header in iter_batches(records):
            base_offset = base_offset if size else header.base_offset
            size = position + header.size_in_bytes
        if not size:
            if plan.first_offset < end_offset:
                # Compaction has removed every record up to the source's end.
                future.trimmer.skip_to(end_offset)
        else:
            self._refuse_damage(plan.first_offset, base_offset)
            future.replica_writer.append(memoryview(records)[:size], leader_epoch=ANY_LEADER_EPOCH, now_ms=0)
        future.state.advance_high_watermark(self.source.state.high_watermark)
        future.trimmer.advance_log_start_offset(
            min(self.source.state.log_start_offset, future.state.log_end_offset)
        )
        self.copied_bytes += size

    def _refuse_damage(self, first_offset: int, next_offset: int) -> None:
        """Raise CORRUPT_MESSAGE for damage between two offsets: a copy would turn it into an ordinary gap."""
        for segment in self.source.state.segments:
            for damage in segment.trust.damages:
                if damage.first_offset < next_offset and damage.next_offset > first_offset:
                    raise KafkaError(
                        ErrorCode.CORRUPT_MESSAGE,
                        f"The log is damaged from offset {damage.first_offset} to {damage.next_offset - 1}",
                    )


def is_copy_of(copy: PartitionLog, whole: PartitionLog) -> bool:
    """Whether the history of `copy` is that of `whole`, which reaches as far or further."""
    if copy.topic_id != whole.topic_id:
        return False
    epoch, end_offset = whole.reader.end_offset_for_epoch(copy.state.latest_epoch)
    if copy.state.latest_epoch < 0:
        return copy.state.log_end_offset <= whole.state.log_end_offset
    return epoch == copy.state.latest_epoch and copy.state.log_end_offset <= end_offset


def reach(log: PartitionLog) -> tuple[int, int, bool, int]:
    """Orders two copies of a log: the greater has everything that the other has."""
    is_sound = not any(segment.trust.damages for segment in log.state.segments)
    return log.state.latest_epoch, log.state.log_end_offset, is_sound, log.state.log_start_offset

"""The partitions of a coordinator's topic that this node leads: appended to in batches, read to their end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from pykafka_broker.coordinator.ports import ColdReads
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.transaction_guards import NO_GUARD
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import iter_batches
from pykafka_broker.replication.leading_replica import LeadingReplica


class TopicLog:
    """The `CoordinatorLog` of one topic."""

    def __init__(self, topic: str, now_ms: Callable[[], int]) -> None:
        self.topic = topic
        self.now_ms = now_ms
        self._partitions: dict[int, LeadingReplica] = {}

    @property
    def is_led(self) -> bool:
        """Whether this node leads any partition."""
        return bool(self._partitions)

    def lead(self, partition: LeadingReplica) -> None:
        """Append to a partition from now on."""
        self._partitions[partition.log.partition] = partition

    def resign(self, partition: int) -> bool:
        """Append to a partition no longer; False if this node did not lead it."""
        return self._partitions.pop(partition, None) is not None

    def append(
        self, partition: int, batch: bytes, *, guard: int = NO_GUARD, transaction_version: int = 0
    ) -> int:
        """Append a coordinator's batch; returns the log end offset after it.

        Raises:
            KafkaError: this node does not lead the partition, the batch is larger than the topic allows, or
                the storage failed.
        """
        found = self._led(partition)
        if len(batch) > (limit := found.log.state.config.max_message_bytes):
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"The record batch size in the append to {found.log.name} is {len(batch)} bytes which "
                f"exceeds the maximum configured value of {limit}.",
            )
        return found.append_internal(
            batch, self.now_ms(), guard=guard, transaction_version=transaction_version
        )

    def end_offset(self, partition: int) -> int:
        """The offset of the next record.

        Raises:
            KafkaError: this node does not lead the partition.
        """
        return self._led(partition).log.state.log_end_offset

    def delete_records(self, partition: int, before_offset: int) -> None:
        """Delete the records before an offset.

        Raises:
            KafkaError: this node does not lead the partition, the offset is beyond the high watermark, or the
                topic is only compacted.
        """
        self._led(partition).deletion.delete(before_offset)

    def max_batch_bytes(self, partition: int) -> int:
        """The most bytes that a batch in a partition may have.

        Raises:
            KafkaError: this node does not lead the partition.
        """
        return self._led(partition).log.state.config.max_message_bytes

    def _led(self, partition: int) -> LeadingReplica:
        found = self._partitions.get(partition)
        if found is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return found


async def batches_in(
    log: PartitionLog, buffer_bytes: Callable[[], int], cold_reads: ColdReads
) -> AsyncIterator[bytes]:
    """Read a log to its end, in buffers of whole batches."""
    offset = log.state.log_start_offset
    while offset < log.state.log_end_offset:
        plan = log.reader.plan_read(offset, buffer_bytes(), limit="log_end")
        data = await cold_reads.run(log, plan.read)
        end = last_whole_batch(data)
        if end is None:
            return
        size, offset = end
        yield data[:size]


def last_whole_batch(data: bytes) -> tuple[int, int] | None:
    """The number of bytes of `data` in whole batches, and the offset after them; None without a whole one."""
    end = None
    for position, header in iter_batches(data):
        end = position + header.size_in_bytes, header.next_offset
    return end

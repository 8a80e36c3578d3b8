"""A topic in which a coordinator keeps its state: created on demand, read into it, written for it.

A coordinator knows no log and no metadata. This is the piece between: a partition that this node starts to
lead is loaded, one that goes is unloaded, batches are appended, and committed offsets are reported back.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.config import BrokerConfig
from pykafka_broker.coordination.topic_creation import TopicCreation
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.transaction_guards import NO_GUARD
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import iter_batches
from pykafka_broker.replication.partition import Partition

#: Runs a read in a thread for the disk of a log.
ReadCold = Callable[[PartitionLog, Callable[[], Any]], Awaitable[Any]]


class Coordinator(Protocol):
    """What a coordinator's service has for the partitions of its topic."""

    def set_partition_count(self, count: int) -> None: ...

    def unload(self, partition: int) -> None: ...

    def close(self) -> None: ...

    def on_high_watermark(self, partition: int, offset: int) -> None: ...


class CoordinatorTopic(ABC):
    """Keeps a coordinator and the partitions of its topic together."""

    def __init__(
        self,
        name: str,
        creation: TopicCreation,
        timers: WallTimers,
        *,
        read_cold: ReadCold,
        logger: logging.Logger,
    ) -> None:
        self.name = name
        self._creation = creation
        self._timers = timers
        self._read_cold = read_cold
        self._logger = logger
        self._partitions: dict[int, Partition] = {}
        self._loading: set[asyncio.Task[None]] = set()

    @property
    @abstractmethod
    def coordinator(self) -> Coordinator:
        """Whose state the topic holds."""

    @abstractmethod
    async def load(self, partition: Partition, batches: AsyncIterator[bytes]) -> None:
        """Let the coordinator read a partition."""

    @abstractmethod
    def load_buffer_bytes(self) -> int:
        """How much is read at a time."""

    @abstractmethod
    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply changed broker settings."""

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        """Follow the topic's partition count."""
        if new.topics is not old.topics:
            topic = new.topics.get(self.name)
            self.coordinator.set_partition_count(0 if topic is None else len(topic.partitions))

    def lead(self, partition: Partition) -> None:
        """Load a partition that this node leads from now on."""
        self._partitions[partition.partition] = partition
        partition.log.on_advance.append(self._advanced)
        task = asyncio.get_running_loop().create_task(self._load(partition))
        self._loading.add(task)
        task.add_done_callback(self._loading.discard)

    def resign(self, partition: Partition) -> None:
        """Stop serving a partition."""
        if self._partitions.pop(partition.partition, None) is not None:
            partition.log.on_advance.remove(self._advanced)
            self.coordinator.unload(partition.partition)

    async def close(self) -> None:
        """Serve nothing any more; nothing reads the logs when this returns."""
        self.coordinator.close()
        await self.loaded()

    async def loaded(self) -> None:
        """Return when no partition is being loaded."""
        while self._loading:
            await asyncio.wait(list(self._loading))

    async def ensure(self) -> bool:
        """Make sure that the topic exists and is served; True if it is."""
        if not self._partitions and not await self._creation.create_internal(self.name):
            return False
        await self.loaded()
        return True

    def append(
        self, partition: int, batch: bytes, *, guard: int = NO_GUARD, transaction_version: int = 0
    ) -> int:
        """Append a coordinator's batch; returns the log end offset after it.

        Raises:
            KafkaError: this node does not lead the partition, the batch is larger than the topic allows, or
                the storage failed.
        """
        found = self._led(partition)
        if len(batch) > (limit := found.log.config.max_message_bytes):
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"The record batch size in the append to {found.log.name} is {len(batch)} bytes which "
                f"exceeds the maximum configured value of {limit}.",
            )
        return found.append_internal(
            batch, self._timers.now_ms(), guard=guard, transaction_version=transaction_version
        )

    def max_batch_bytes(self, partition: int) -> int:
        """How many bytes a batch in a partition may have.

        Raises:
            KafkaError: this node does not lead the partition.
        """
        return self._led(partition).log.config.max_message_bytes

    def _led(self, partition: int) -> Partition:
        found = self._partitions.get(partition)
        if found is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return found

    def _advanced(self, log: PartitionLog) -> None:
        self.coordinator.on_high_watermark(log.partition, log.high_watermark)

    async def _load(self, partition: Partition) -> None:
        log = partition.log
        started_ms = self._timers.now_ms()
        try:
            await self.load(partition, self._batches(log))
        except Exception:
            self._logger.exception(
                "%s-%d cannot be read, what it holds is not served", log.topic, log.partition
            )
            return
        if log.log_end_offset:
            self._logger.info(
                "Finished loading of metadata from %s-%d in %dms",
                log.topic,
                log.partition,
                self._timers.now_ms() - started_ms,
            )

    async def _batches(self, log: PartitionLog) -> AsyncIterator[bytes]:
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            plan = log.plan_read(offset, self.load_buffer_bytes(), limit="log_end")
            data = await self._read_cold(log, plan.read)
            end = last_whole_batch(data)
            if end is None:
                return
            size, offset = end
            yield data[:size]


def last_whole_batch(data: bytes) -> tuple[int, int] | None:
    """How many bytes of `data` are whole batches, and the offset after them."""
    end = None
    for position, header in iter_batches(data):
        end = position + header.size_in_bytes, header.next_offset
    return end

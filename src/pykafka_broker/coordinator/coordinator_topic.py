"""A topic in which a coordinator keeps its state: created on demand, read into its shards, written by them.

A coordinator's service knows no metadata. `CoordinatorTopic` makes its shards load partitions that this node
starts to lead, unloads those that it resigns, and passes on high watermarks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any, Protocol

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.config import BrokerConfig
from pykafka_broker.coordinator.ports import ColdReads
from pykafka_broker.coordinator.shards import Shards
from pykafka_broker.coordinator.topic_creation import TopicCreation
from pykafka_broker.coordinator.topic_log import TopicLog, batches_in
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.state import LogState
from pykafka_broker.machine.clock import processing_ns
from pykafka_broker.replication.leading_replica import LeadingReplica
from pykafka_broker.replication.partition import Partition


class Settings(Protocol):
    """Updates a coordinator's settings from the broker's configuration and the metadata."""

    def load_buffer_bytes(self) -> int:
        """The bytes of a log to read at a time."""
        ...

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply changed broker settings."""
        ...

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        """Apply changed metadata."""
        ...


class CoordinatorTopic:
    """Keeps the shards of a coordinator and the partitions of its topic together."""

    def __init__(
        self,
        log: TopicLog,
        shards: Shards[Any, Any],
        settings: Settings,
        creation: TopicCreation,
        *,
        cold_reads: ColdReads,
        logger: logging.Logger,
    ) -> None:
        self.name = log.topic
        self._log = log
        self._shards = shards
        self._settings = settings
        self._creation = creation
        self._cold_reads = cold_reads
        self._logger = logger
        self._loading: set[asyncio.Task[None]] = set()
        #: Led partitions that could not be read.
        self._failed: set[int] = set()
        #: Loads that have ended well since the start, the time of all of them, and that of the longest.
        self.loads = 0
        self.load_ns = 0
        self.longest_load_ns = 0

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply changed broker settings."""
        self._settings.reconfigure(config)

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        """Apply the topic's new partition count, and pass the metadata to the settings."""
        if new.topics is not old.topics:
            topic = new.topics.get(self.name)
            self._shards.set_partition_count(0 if topic is None else len(topic.partitions))
        self._settings.on_image(old, new)

    def lead(self, partition: LeadingReplica) -> None:
        """Load a partition that this node leads from now on."""
        self._log.lead(partition)
        log = partition.log
        self._failed.discard(log.partition)
        log.on_advance.append(self._advanced)
        loading = self._shards.load(
            log.partition,
            self.batches(log),
            leader_epoch=partition.leader_epoch,
            high_watermark=log.state.high_watermark,
        )
        task = asyncio.get_running_loop().create_task(self._load(log, loading))
        self._loading.add(task)
        task.add_done_callback(self._loading.discard)

    def resign(self, partition: Partition) -> None:
        """Stop serving a partition."""
        self._failed.discard(partition.partition)
        if self._log.resign(partition.partition):
            partition.log.on_advance.remove(self._advanced)
            self._shards.unload(partition.partition)

    def refuse(self) -> None:
        """Answer every request that waits, and all later ones, with NOT_COORDINATOR."""
        self._shards.close()

    async def close(self) -> None:
        """Serve nothing any more; nothing reads the logs when this returns."""
        self.refuse()
        await self.loaded()

    async def loaded(self) -> None:
        """Return when no partition is being loaded."""
        while self._loading:
            await asyncio.wait(list(self._loading))

    @property
    def partitions_by_state(self) -> Mapping[str, int]:
        """The number of led partitions in each of Apache Kafka's states."""
        active = len(self._shards.loaded_partitions)
        return {"active": active, "loading": len(self._loading), "failed": len(self._failed)}

    async def ensure(self) -> bool:
        """Make sure that the topic exists; True if it does."""
        return self._log.is_led or await self._creation.create_internal(self.name)

    def batches(self, log: PartitionLog) -> AsyncIterator[bytes]:
        """Read the log of a partition to its end, as much at a time as configured."""
        return batches_in(log, self._settings.load_buffer_bytes, self._cold_reads)

    def _advanced(self, state: LogState) -> None:
        self._shards.on_high_watermark(state.identity.partition, state.high_watermark)

    async def _load(self, log: PartitionLog, loading: Coroutine[Any, Any, bool]) -> None:
        started_ns = processing_ns()
        try:
            is_served = await loading
        except Exception:
            self._logger.exception(
                "%s-%d cannot be read, what it holds is not served", log.topic, log.partition
            )
            self._failed.add(log.partition)
            return
        if not is_served:
            return
        duration_ns = processing_ns() - started_ns
        self.loads += 1
        self.load_ns += duration_ns
        self.longest_load_ns = max(self.longest_load_ns, duration_ns)
        if log.state.log_end_offset:
            self._logger.info(
                "Finished loading of metadata from %s-%d in %dms",
                log.topic,
                log.partition,
                duration_ns // 1_000_000,
            )

"""`__consumer_offsets`, where the groups live: created on demand, read into the coordinator, written for it.

The coordinator knows no log and no metadata. This is the piece between: a partition that this node starts to
lead is loaded, one that goes is unloaded, batches are appended, and committed offsets are reported back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from pykafka_broker.cluster.image import ClusterImage, ResourceType
from pykafka_broker.config import BrokerConfig
from pykafka_broker.config.group import GROUP, assignor_name
from pykafka_broker.coordinator.group.state import (
    ConsumerGroupSettings,
    GroupCoordinatorConfig,
    MigrationPolicy,
)
from pykafka_broker.coordinator.service import GroupService
from pykafka_broker.log.partition import PartitionLog
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import iter_batches
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.server.cluster_topics import ClusterTopics, changed_topics
from pykafka_broker.server.replicas import Partition
from pykafka_broker.server.topic_creation import TopicCreation
from pykafka_broker.server.wall_timers import WallTimers

logger = logging.getLogger("kafka.coordinator.group.GroupCoordinator")

OFFSETS_TOPIC = "__consumer_offsets"
LOAD_BYTES = 5 * 1024 * 1024

RunBlocking = Callable[[Callable[[], Any]], Awaitable[Any]]


def coordinator_config(config: BrokerConfig, image: ClusterImage) -> GroupCoordinatorConfig:
    """The values the coordinator acts on; some groups have their own."""
    overrides = {
        name: consumer_group_settings(config, values)
        for (resource_type, name), values in image.configs.items()
        if resource_type == ResourceType.GROUP
    }
    return GroupCoordinatorConfig(
        group_min_session_timeout_ms=config["group.min.session.timeout.ms"],
        group_max_session_timeout_ms=config["group.max.session.timeout.ms"],
        group_initial_rebalance_delay_ms=config["group.initial.rebalance.delay.ms"],
        group_max_size=config["group.max.size"],
        offset_metadata_max_bytes=config["offset.metadata.max.bytes"],
        offsets_retention_ms=config["offsets.retention.minutes"] * 60_000,
        offsets_retention_check_interval_ms=config["offsets.retention.check.interval.ms"],
        offsets_topic_compression_codec=int(Codec(config["offsets.topic.compression.codec"])),
        consumer_group=consumer_group_settings(config, {}),
        consumer_group_overrides=overrides,
        consumer_group_max_size=config["group.consumer.max.size"],
        consumer_group_assignors=tuple(map(assignor_name, config["group.consumer.assignors"])),
        consumer_group_migration_policy=MigrationPolicy(config["group.consumer.migration.policy"].lower()),
        consumer_group_regex_refresh_interval_ms=config["group.consumer.regex.refresh.interval.ms"],
    )


def consumer_group_settings(config: BrokerConfig, overrides: Mapping[str, str]) -> ConsumerGroupSettings:
    """What holds for a consumer group with these overrides.

    A value that was set when the broker's bounds were wider counts as the bound.
    """

    def setting(key: str, default: str, low: str, high: str) -> int:
        text = overrides.get(key)
        if text is None:
            return int(config[default])
        return int(min(max(GROUP[key].parse(text), config[low]), config[high]))

    return ConsumerGroupSettings(
        session_timeout_ms=setting(
            "consumer.session.timeout.ms",
            "group.consumer.session.timeout.ms",
            "group.consumer.min.session.timeout.ms",
            "group.consumer.max.session.timeout.ms",
        ),
        heartbeat_interval_ms=setting(
            "consumer.heartbeat.interval.ms",
            "group.consumer.heartbeat.interval.ms",
            "group.consumer.min.heartbeat.interval.ms",
            "group.consumer.max.heartbeat.interval.ms",
        ),
        assignment_interval_ms=setting(
            "consumer.assignment.interval.ms",
            "group.consumer.assignment.interval.ms",
            "group.consumer.min.assignment.interval.ms",
            "group.consumer.max.assignment.interval.ms",
        ),
    )


class OffsetsTopic:
    """Keeps a `GroupService` and the partitions of `__consumer_offsets` together."""

    def __init__(
        self,
        config: BrokerConfig,
        creation: TopicCreation,
        timers: WallTimers,
        *,
        new_uuid: Callable[[], str],
        run_blocking: RunBlocking,
    ) -> None:
        self._config = config
        self._image = ClusterImage()
        self._creation = creation
        self._timers = timers
        self._run_blocking = run_blocking
        self._partitions: dict[int, Partition] = {}
        self._loading: set[asyncio.Task[None]] = set()
        self.groups = GroupService(
            config=coordinator_config(config, self._image),
            append=self._append,
            scheduler=timers,
            new_uuid=new_uuid,
            run_blocking=run_blocking,
        )

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply changed broker settings."""
        self._config = config
        self.groups.config = coordinator_config(config, self._image)

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        """Follow the settings of groups, the topics of the cluster and the partition count of this one, and
        forget the offsets of deleted topics.
        """
        self._image = new
        if new.configs is not old.configs:
            self.groups.config = coordinator_config(self._config, new)
        if new.topics is old.topics:
            return
        changed, has_new_topics = changed_topics(old, new)
        self.groups.set_topics(ClusterTopics(new), changed, has_new_topics=has_new_topics)
        topic = new.topics.get(OFFSETS_TOPIC)
        self.groups.set_partition_count(0 if topic is None else len(topic.partitions))
        deleted = [
            (name, known.topic_id)
            for name, known in old.topics.items()
            if (kept := new.topics.get(name)) is None or kept.topic_id != known.topic_id
        ]
        if deleted:
            self.groups.forget_topics(deleted)

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
            self.groups.unload(partition.partition)

    async def close(self) -> None:
        """Serve no group any more; nothing reads the logs when this returns."""
        self.groups.close()
        await self.loaded()

    async def loaded(self) -> None:
        """Return when no partition is being loaded."""
        while self._loading:
            await asyncio.wait(list(self._loading))

    async def ensure(self) -> bool:
        """Make sure that the topic exists and is served; True if it is."""
        if not self._partitions and not await self._creation.create_internal(OFFSETS_TOPIC):
            return False
        await self.loaded()
        return True

    def _append(self, partition: int, batch: bytes) -> int:
        found = self._partitions.get(partition)
        if found is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return found.append_internal(batch, self._timers.now_ms())

    def _advanced(self, log: PartitionLog) -> None:
        self.groups.on_high_watermark(log.partition, log.high_watermark)

    async def _load(self, partition: Partition) -> None:
        log = partition.log
        started_ms = self._timers.now_ms()
        try:
            await self.groups.load(partition.partition, self._batches(log), high_watermark=log.high_watermark)
        except Exception:
            logger.exception("%s-%d cannot be read, its groups are not served", log.topic, log.partition)
            return
        if log.log_end_offset:
            logger.info(
                "Finished loading of metadata from %s-%d in %dms",
                log.topic,
                log.partition,
                self._timers.now_ms() - started_ms,
            )

    async def _batches(self, log: PartitionLog) -> AsyncIterator[bytes]:
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            plan = log.plan_read(offset, LOAD_BYTES, limit="log_end")
            data = await self._run_blocking(plan.read)
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

"""`__consumer_offsets`, where the groups live."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from pykafka_broker.cluster.image import ClusterImage, ResourceType
from pykafka_broker.config import BrokerConfig
from pykafka_broker.config.group import GROUP, assignor_name
from pykafka_broker.coordination.cluster_topics import ClusterTopics, changed_topics
from pykafka_broker.coordination.coordinator_topic import CoordinatorTopic, ReadCold
from pykafka_broker.coordination.groups import GroupService
from pykafka_broker.coordination.topic_creation import TopicCreation
from pykafka_broker.coordinator.group.config import (
    ConsumerGroupSettings,
    GroupCoordinatorConfig,
    MigrationPolicy,
)
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.replication.partition import Partition

OFFSETS_TOPIC = "__consumer_offsets"


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
        offsets_commit_timeout_ms=config["offsets.commit.timeout.ms"],
        offset_metadata_max_bytes=config["offset.metadata.max.bytes"],
        offsets_retention_ms=config["offsets.retention.minutes"] * 60_000,
        offsets_retention_check_interval_ms=config["offsets.retention.check.interval.ms"],
        offsets_topic_compression_codec=Codec(config["offsets.topic.compression.codec"]),
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


class OffsetsTopic(CoordinatorTopic):
    """Keeps a `GroupService` and the partitions of `__consumer_offsets` together."""

    def __init__(
        self,
        config: BrokerConfig,
        creation: TopicCreation,
        timers: WallTimers,
        *,
        new_uuid: Callable[[], str],
        run_blocking: Callable[[Callable[[], Any]], Awaitable[Any]],
        read_cold: ReadCold,
    ) -> None:
        super().__init__(
            OFFSETS_TOPIC,
            creation,
            timers,
            read_cold=read_cold,
            logger=logging.getLogger("kafka.coordinator.group.GroupCoordinator"),
        )
        self._config = config
        self._image = ClusterImage()
        self.groups = GroupService(
            config=coordinator_config(config, self._image),
            append=self.append,
            max_batch_bytes=self.max_batch_bytes,
            scheduler=timers,
            new_uuid=new_uuid,
            run_blocking=run_blocking,
        )

    @property
    def coordinator(self) -> GroupService:
        return self.groups

    async def load(self, partition: Partition, batches: AsyncIterator[bytes]) -> None:
        await self.groups.load(partition.partition, batches, high_watermark=partition.log.high_watermark)

    def load_buffer_bytes(self) -> int:
        return int(self._config["offsets.load.buffer.size"])

    def reconfigure(self, config: BrokerConfig) -> None:
        self._config = config
        self.groups.config = coordinator_config(config, self._image)

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        """Follow the settings of groups, the topics of the cluster and the partition count of this one, and
        forget the offsets of deleted topics.
        """
        super().on_image(old, new)
        self._image = new
        if new.configs is not old.configs:
            self.groups.config = coordinator_config(self._config, new)
        if new.topics is old.topics:
            return
        changed, has_new_topics = changed_topics(old, new)
        self.groups.set_topics(ClusterTopics(new), changed, has_new_topics=has_new_topics)
        deleted = [
            (name, known.topic_id)
            for name, known in old.topics.items()
            if (kept := new.topics.get(name)) is None or kept.topic_id != known.topic_id
        ]
        if deleted:
            self.groups.forget_topics(deleted)

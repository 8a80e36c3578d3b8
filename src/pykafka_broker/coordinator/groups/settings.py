"""The settings of the group coordinator, from the broker's configuration and the cluster's metadata."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pykafka_broker.cluster.image import ClusterImage, ResourceType
from pykafka_broker.config import BrokerConfig
from pykafka_broker.config.group import assignor_name, share_assignor_name
from pykafka_broker.config.groups import group_value
from pykafka_broker.coordinator.groups.cluster_topics import ClusterTopics, changed_topics
from pykafka_broker.coordinator.groups.core.config import (
    ConsumerGroupSettings,
    GroupCoordinatorConfig,
    MigrationPolicy,
    ShareGroupSettings,
    StreamsGroupSettings,
)
from pykafka_broker.coordinator.groups.service import GroupService
from pykafka_broker.protocol.records.compression import Codec


class GroupCoordinatorSettings:
    """Keeps a group service up to date with its settings and the topics of the cluster."""

    def __init__(self, service: GroupService, config: BrokerConfig) -> None:
        self._service = service
        self._config = config
        self._image = ClusterImage()

    def load_buffer_bytes(self) -> int:
        """The bytes of a log to read at a time."""
        size: int = self._config["offsets.load.buffer.size"]
        return size

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply changed broker settings."""
        self._config = config
        self._service.config = coordinator_config(config, self._image)

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        """Follow the settings of groups and the topics of the cluster, and forget the offsets of deleted
        topics.
        """
        self._image = new
        if new.configs is not old.configs:
            self._service.config = coordinator_config(self._config, new)
        if new.topics is old.topics:
            return
        changed, has_new_topics = changed_topics(old, new)
        self._service.set_topics(ClusterTopics(new), changed, has_new_topics=has_new_topics)
        deleted = [
            (name, known.topic_id)
            for name, known in old.topics.items()
            if (kept := new.topics.get(name)) is None or kept.topic_id != known.topic_id
        ]
        if deleted:
            self._service.forget_topics(deleted)


def coordinator_config(config: BrokerConfig, image: ClusterImage) -> GroupCoordinatorConfig:
    """The values the coordinator acts on; some groups have their own."""
    of_groups = image.configs_of(ResourceType.GROUP)
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
        consumer_group_overrides={
            name: consumer_group_settings(config, values) for name, values in of_groups.items()
        },
        consumer_group_max_size=config["group.consumer.max.size"],
        consumer_group_assignors=tuple(map(assignor_name, config["group.consumer.assignors"])),
        consumer_group_migration_policy=MigrationPolicy(config["group.consumer.migration.policy"].lower()),
        consumer_group_regex_refresh_interval_ms=config["group.consumer.regex.refresh.interval.ms"],
        share_group=share_group_settings(config, {}),
        share_group_overrides={
            name: share_group_settings(config, values) for name, values in of_groups.items()
        },
        share_group_max_size=config["group.share.max.size"],
        share_group_assignors=tuple(map(share_assignor_name, config["group.share.assignors"])),
        share_group_initialize_retry_interval_ms=config["group.share.initialize.retry.interval.ms"],
        streams_group=streams_group_settings(config, {}),
        streams_group_overrides={
            name: streams_group_settings(config, values) for name, values in of_groups.items()
        },
    )


def consumer_group_settings(config: BrokerConfig, overrides: Mapping[str, str]) -> ConsumerGroupSettings:
    """The settings of a consumer group with these overrides."""
    value = partial(group_value, config, overrides)
    return ConsumerGroupSettings(
        session_timeout_ms=value("consumer.session.timeout.ms"),
        heartbeat_interval_ms=value("consumer.heartbeat.interval.ms"),
        assignment_interval_ms=value("consumer.assignment.interval.ms"),
    )


def share_group_settings(config: BrokerConfig, overrides: Mapping[str, str]) -> ShareGroupSettings:
    """The settings of a share group with these overrides."""
    value = partial(group_value, config, overrides)
    return ShareGroupSettings(
        session_timeout_ms=value("share.session.timeout.ms"),
        heartbeat_interval_ms=value("share.heartbeat.interval.ms"),
        assignment_interval_ms=value("share.assignment.interval.ms"),
    )


def streams_group_settings(config: BrokerConfig, overrides: Mapping[str, str]) -> StreamsGroupSettings:
    """The settings of a streams group with these overrides."""
    value = partial(group_value, config, overrides)
    return StreamsGroupSettings(
        session_timeout_ms=value("streams.session.timeout.ms"),
        heartbeat_interval_ms=value("streams.heartbeat.interval.ms"),
        num_standby_replicas=value("streams.num.standby.replicas"),
        initial_rebalance_delay_ms=value("streams.initial.rebalance.delay.ms"),
        assignment_interval_ms=value("streams.assignment.interval.ms"),
        max_size=config["group.streams.max.size"],
    )

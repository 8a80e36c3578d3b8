"""The settings of the group coordinator, by the broker's configuration and the cluster's metadata."""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.cluster.image import ClusterImage, ResourceType
from pykafka_broker.config import BrokerConfig
from pykafka_broker.config.group import GROUP, assignor_name
from pykafka_broker.config.typed_values import NumberKey
from pykafka_broker.coordinator.group.config import (
    ConsumerGroupSettings,
    GroupCoordinatorConfig,
    MigrationPolicy,
)
from pykafka_broker.protocol.records.compression import Codec


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
    """The settings of a consumer group with these overrides.

    A value that was set when the broker's bounds were wider counts as the bound.
    """

    def setting(key: str, default: NumberKey, low: NumberKey, high: NumberKey) -> int:
        text = overrides.get(key)
        if text is None:
            return config[default]
        value = GROUP[key].parse(text)
        assert isinstance(value, int)
        return min(max(value, config[low]), config[high])

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

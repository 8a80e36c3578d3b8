"""The settings of the share coordinator, from the broker's configuration and the cluster's features."""

from __future__ import annotations

from pykafka_broker.config import BrokerConfig
from pykafka_broker.coordinator.share.core.state import ShareConfig


def share_config(config: BrokerConfig, share_version: int) -> ShareConfig:
    """The values the coordinator acts on, at the finalised level of the feature."""
    return ShareConfig(
        snapshot_update_records_per_snapshot=config["share.coordinator.snapshot.update.records.per.snapshot"],
        cold_partition_snapshot_interval_ms=config["share.coordinator.cold.partition.snapshot.interval.ms"],
        state_topic_prune_interval_ms=config["share.coordinator.state.topic.prune.interval.ms"],
        is_enabled=share_version >= 1,
    )

"""The settings of the share coordinator, from the broker's configuration and the cluster's features."""

from __future__ import annotations

from pykafka_broker.cluster.features import SHARE_VERSION
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.config import BrokerConfig
from pykafka_broker.coordinator.share.core.state import ShareCoordinatorConfig
from pykafka_broker.coordinator.share.service import ShareService


class ShareCoordinatorSettings:
    """Keeps a share service up to date with its settings and the topics that are gone."""

    def __init__(self, service: ShareService, config: BrokerConfig) -> None:
        self._service = service
        self._config = config
        self._share_version = 0

    def load_buffer_bytes(self) -> int:
        """The bytes of a log to read at a time."""
        size: int = self._config["share.coordinator.load.buffer.size"]
        return size

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply changed broker settings."""
        self._config = config
        self._service.config = share_config(config, self._share_version)

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        """Follow the finalised level of the feature, and forget deleted topics."""
        level = new.features.get(SHARE_VERSION, 0)
        if level != self._share_version:
            self._share_version = level
            self.reconfigure(self._config)
        if new.topics is not old.topics:
            deleted = frozenset(old.topic_names) - frozenset(new.topic_names)
            if deleted:
                self._service.forget_topics(deleted)


def share_config(config: BrokerConfig, share_version: int) -> ShareCoordinatorConfig:
    """The values the coordinator acts on, at the finalised level of the feature."""
    return ShareCoordinatorConfig(
        snapshot_update_records_per_snapshot=config["share.coordinator.snapshot.update.records.per.snapshot"],
        cold_partition_snapshot_interval_ms=config["share.coordinator.cold.partition.snapshot.interval.ms"],
        state_topic_prune_interval_ms=config["share.coordinator.state.topic.prune.interval.ms"],
        is_enabled=share_version >= 1,
    )

"""Keeps a share service up to date with the broker's configuration, and with the finalised level of
`share.version` and the deleted topics in the cluster's metadata.
"""

from __future__ import annotations

from pykafka_broker.cluster.features import SHARE_VERSION
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.config import BrokerConfig
from pykafka_broker.coordinator.share.service import ShareService
from pykafka_broker.coordinator.share.settings import share_config


class ShareFollower:
    """Keeps a share service's settings as configured."""

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

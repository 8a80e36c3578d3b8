"""Keeps a group service up to date with the broker's configuration, and with the groups' settings and the
topics in the cluster's metadata.
"""

from __future__ import annotations

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.config import BrokerConfig
from pykafka_broker.coordinator.groups.cluster_topics import ClusterTopics, changed_topics
from pykafka_broker.coordinator.groups.service import GroupService
from pykafka_broker.coordinator.groups.settings import coordinator_config


class GroupFollower:
    """Updates a group service's settings and its view of the cluster's topics."""

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

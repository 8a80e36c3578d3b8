"""Following the metadata: each published image reaches all parts that act on it, in a fixed order.

Configuration comes first, because the others read it; then replicas, which make and drop logs and take their
roles; then the coordinators, which need the topics and partition counts, and share groups.
"""

from __future__ import annotations

from pykafka_broker.broker.share_groups import ShareGroups
from pykafka_broker.cluster.image import ClusterImage, ResourceType
from pykafka_broker.config import DynamicConfig
from pykafka_broker.config.unheeded import UnheededConfigs
from pykafka_broker.coordinator.coordinators import Coordinators
from pykafka_broker.coordinator.topic_creation import TopicCreation
from pykafka_broker.membership.lifecycle import BrokerLifecycle
from pykafka_broker.membership.replica_places import ReplicaPlaces
from pykafka_broker.replication.replica_manager import ReplicaManager
from pykafka_broker.system.named_tuple import NamedTuple


class ConfigFollower:
    """Updates this broker's dynamic configuration from the newest image."""

    def __init__(self, configs: DynamicConfig) -> None:
        self._configs = configs
        static = configs.static
        self._broker = str(static.node_id)
        self._unheeded = UnheededConfigs([*static.unheeded, *static.unknown])

    def apply(self, image: ClusterImage) -> None:
        """Install the values of an image, and log once each key that this broker does not heed."""
        self._configs.update(
            image.config(ResourceType.BROKER, ""), image.config(ResourceType.BROKER, self._broker)
        )
        self._unheeded.look(image.configs)


class MetadataFollower(NamedTuple):
    """Subscribes to the metadata of a node. Event loop only."""

    configs: ConfigFollower
    replicas: ReplicaManager
    creation: TopicCreation
    coordinators: Coordinators
    shares: ShareGroups
    lifecycle: BrokerLifecycle
    places: ReplicaPlaces

    def published(self, old: ClusterImage, new: ClusterImage) -> None:
        """`new` is the newest committed metadata. `old.offset` is negative for the image of the start."""
        self.configs.apply(new)
        self.replicas.apply(new)
        self.creation.on_image(old, new)
        self.coordinators.on_image(old, new)
        self.shares.on_image(old, new)
        if new.brokers is not old.brokers or new.features is not old.features:
            self.lifecycle.published(new)
        if new.topics is not old.topics and old.offset >= 0:
            self.places.report_places()

"""The cluster's topics as the group coordinator needs them, over the metadata image."""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.cluster.image import ClusterImage, TopicImage
from pykafka_broker.coordinator.groups.core.topics import TopicInfo


class ClusterTopics:
    """A `TopicDirectory` that looks into an image, and remembers the topics it has found."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._known: dict[str, TopicInfo] = {}

    @property
    def version(self) -> int:
        return self._image.offset

    def topic(self, name: str) -> TopicInfo | None:
        known = self._known.get(name)
        if known is None and (topic := self._image.topics.get(name)) is not None:
            known = self._known[name] = self._info(topic)
        return known

    def topic_by_id(self, topic_id: bytes) -> TopicInfo | None:
        name = self._image.topic_names.get(topic_id)
        return None if name is None else self.topic(name)

    def names(self) -> Iterable[str]:
        return self._image.topics

    def _info(self, topic: TopicImage) -> TopicInfo:
        racks = [self._racks(topic, partition) for partition in range(len(topic.partitions))]
        return TopicInfo(
            topic.name, topic.topic_id, len(topic.partitions), tuple(racks) if any(racks) else ()
        )

    def _racks(self, topic: TopicImage, partition: int) -> tuple[str, ...]:
        brokers = (self._image.brokers.get(replica) for replica in topic.partitions[partition].replicas)
        return tuple(broker.rack for broker in brokers if broker is not None and broker.rack is not None)


def changed_topics(old: ClusterImage, new: ClusterImage) -> tuple[frozenset[str], bool]:
    """The names of topics that came, changed or went, and whether any came."""
    names = {name for name, topic in new.topics.items() if old.topics.get(name) is not topic}
    has_new = any(
        (before := old.topics.get(name)) is None or before.topic_id != new.topics[name].topic_id
        for name in names
    )
    names.update(name for name in old.topics if name not in new.topics)
    return frozenset(names), has_new

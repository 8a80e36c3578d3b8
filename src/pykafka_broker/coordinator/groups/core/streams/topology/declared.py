"""The topology of a Kafka Streams application, as its members declare it when they join.

A subtopology reads source topics and repartition topics, writes repartition topics for other subtopologies
(its sinks), and keeps its state in changelog topics. The topics of a copartition group are read together, so
they need the same number of partitions.
"""

from __future__ import annotations

from collections.abc import Iterator

from pykafka_broker.coordinator.groups.core.topics import TopicDirectory, group_hash
from pykafka_broker.protocol.java_hash import string_hash, walked
from pykafka_broker.system.named_tuple import NamedTuple


class InternalTopic(NamedTuple):
    """A repartition or changelog topic. Zero partitions: as many as its use needs."""

    name: str
    partitions: int = 0
    #: Zero: the default of the cluster.
    replication_factor: int = 0
    configs: tuple[tuple[str, str], ...] = ()


class CopartitionGroup(NamedTuple):
    """Indexes into the lists of the subtopology."""

    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()


class Subtopology(NamedTuple):
    """A part of the application that is connected to the others by topics only."""

    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    state_changelog_topics: tuple[InternalTopic, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[InternalTopic, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()

    def topics(self) -> Iterator[str]:
        """All topics the subtopology reads or keeps its state in."""
        yield from self.input_topics()
        for topic in self.state_changelog_topics:
            yield topic.name

    def input_topics(self) -> Iterator[str]:
        """The topics the subtopology reads."""
        yield from self.source_topics
        for topic in self.repartition_source_topics:
            yield topic.name


class Topology(NamedTuple):
    """The topology with its epoch; subtopologies stand in the order in which the application named them."""

    epoch: int
    subtopologies: tuple[Subtopology, ...] = ()

    def is_same_as(self, other: Topology) -> bool:
        """The same epoch and subtopologies, in whatever order."""
        return self.epoch == other.epoch and self._by_id() == other._by_id()

    def in_java_order(self) -> list[Subtopology]:
        """The subtopologies in the iteration order of Apache Kafka's hash map."""
        by_id = self._by_id()
        return [by_id[name] for name in walked(by_id, string_hash)]

    def required_topics(self) -> list[str]:
        """All topics that must exist, in the iteration order of Apache Kafka's set."""
        names = dict.fromkeys(name for part in self.in_java_order() for name in part.topics())
        return walked(names, string_hash)

    def subtopology_of(self, topic: str) -> Subtopology | None:
        """The subtopology that reads a topic; of several the last in Apache Kafka's order."""
        found = None
        for part in self.in_java_order():
            if topic in part.input_topics():
                found = part
        return found

    def metadata_hash(self, topics: TopicDirectory) -> int:
        """The fingerprint of those required topics that exist."""
        return group_hash(self.required_topics(), topics)

    def _by_id(self) -> dict[str, Subtopology]:
        return {part.subtopology_id: part for part in self.subtopologies}

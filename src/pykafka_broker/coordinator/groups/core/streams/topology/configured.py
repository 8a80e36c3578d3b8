"""A topology over the topics that exist: its tasks, the internal topics to create, or what is wrong.

As in `InternalTopicManager` of Apache Kafka 4.3, with its texts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from pykafka_broker.coordinator.groups.core.streams.status import Status, StatusCode
from pykafka_broker.coordinator.groups.core.streams.topology.declared import (
    InternalTopic,
    Subtopology,
    Topology,
)
from pykafka_broker.coordinator.groups.core.streams.topology.partition_counts import (
    PartitionCounts,
    TopicsNotReady,
    decide_partition_counts,
)
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.java_hash import string_hash, walked
from pykafka_broker.system.named_tuple import NamedTuple

#: The most topic names in a status text; the number of the others follows.
SHOWN_TOPICS = 3
_NO_TOPICS: Mapping[str, InternalTopic] = MappingProxyType({})


class ConfiguredSubtopology(NamedTuple):
    """A subtopology with partition counts; it has a task for each partition of its largest input topic."""

    task_count: int
    source_topics: tuple[str, ...]
    repartition_source_topics: Mapping[str, InternalTopic]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: Mapping[str, InternalTopic]

    @property
    def is_stateful(self) -> bool:
        return bool(self.state_changelog_topics)


class ConfiguredTopology(NamedTuple):
    """A topology over the topics of one moment, whose fingerprint is `metadata_hash`."""

    topology_epoch: int
    metadata_hash: int
    #: In the order of their ids; None if the topics are not as they must be.
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    #: The topics to create, in Apache Kafka's order; a replication factor of -1 is the cluster's default.
    internal_topics: Mapping[str, InternalTopic] = _NO_TOPICS
    #: Why the topology is not ready.
    problem: Status | None = None

    @property
    def is_ready(self) -> bool:
        """Are all topics there, so that tasks can be assigned?"""
        return self.problem is None


def configured(topology: Topology, topics: TopicDirectory, metadata_hash: int) -> ConfiguredTopology:
    """The topology over these topics.

    Raises:
        KafkaError: STREAMS_INVALID_TOPOLOGY, no topics could suit it; UNKNOWN_SERVER_ERROR, it contradicts
            itself.

    """
    try:
        _check_source_topics(topology, topics)
        counts = decide_partition_counts(topology, topics)
        parts = {
            part.subtopology_id: _configured_subtopology(part, counts) for part in topology.in_java_order()
        }
        parts = {name: parts[name] for name in sorted(parts)}
        missing = _missing_topics(topology, parts, topics)
    except TopicsNotReady as error:
        return ConfiguredTopology(topology.epoch, metadata_hash, None, problem=error.status)
    problem = None
    if missing:
        text = f"Internal topics are missing: {_summary(missing)}"
        problem = Status(StatusCode.MISSING_INTERNAL_TOPICS, text)
    return ConfiguredTopology(topology.epoch, metadata_hash, parts, missing, problem)


def _check_source_topics(topology: Topology, topics: TopicDirectory) -> None:
    names = {name for part in topology.subtopologies for name in part.source_topics}
    missing = sorted(name for name in names if topics.topic(name) is None)
    if missing:
        text = f"Source topics {_summary(missing)} are missing."
        raise TopicsNotReady(StatusCode.MISSING_SOURCE_TOPICS, text)


def _configured_subtopology(part: Subtopology, counts: PartitionCounts) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        max(counts.known(name) for name in part.input_topics()),
        part.source_topics,
        _configured_topics(part.repartition_source_topics, counts),
        part.repartition_sink_topics,
        _configured_topics(part.state_changelog_topics, counts),
    )


def _configured_topics(
    declared: Collection[InternalTopic], counts: PartitionCounts
) -> Mapping[str, InternalTopic]:
    by_name = {topic.name: topic for topic in declared}
    if len(by_name) < len(declared):
        # Apache Kafka's map refuses a second topic of one name.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return {
        name: by_name[name]._replace(partitions=by_name[name].partitions or counts.decided[name])
        for name in walked(by_name, string_hash)
    }


def _missing_topics(
    topology: Topology, parts: Mapping[str, ConfiguredSubtopology], topics: TopicDirectory
) -> Mapping[str, InternalTopic]:
    """The internal topics that do not exist; those that do must have the right number of partitions."""
    internal: dict[str, InternalTopic] = {}
    for part in parts.values():
        internal.update(part.repartition_source_topics)
        internal.update(part.state_changelog_topics)
    for name in topology.required_topics():
        existing = topics.topic(name)
        if existing is None or name not in internal:
            continue
        expected = internal[name].partitions
        if existing.partition_count != expected:
            raise TopicsNotReady(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected {expected}, found "
                f"{existing.partition_count}",
            )
    return {
        name: internal[name]._replace(replication_factor=internal[name].replication_factor or -1)
        for name in walked(internal, string_hash)
        if topics.topic(name) is None
    }


def _summary(names: Collection[str]) -> str:
    shown = ", ".join(list(names)[:SHOWN_TOPICS])
    more = len(names) - SHOWN_TOPICS
    return f"{shown} and {more} additional topics" if more > 0 else shown

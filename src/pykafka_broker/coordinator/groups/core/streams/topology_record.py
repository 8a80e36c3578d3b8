"""The record of a topology, as the group's first member declared it, in the same order."""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.coordinator.groups.core.streams.topology.declared import (
    CopartitionGroup,
    InternalTopic,
    Subtopology,
    Topology,
)
from pykafka_broker.protocol.messages.records import group as m


def topology_value(topology: Topology) -> m.StreamsGroupTopologyValue:
    """The value of the record."""
    return m.StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=[
            m.Subtopology(
                subtopology_id=part.subtopology_id,
                source_topics=list(part.source_topics),
                source_topic_regex=list(part.source_topic_regex),
                state_changelog_topics=_topic_infos(part.state_changelog_topics),
                repartition_sink_topics=list(part.repartition_sink_topics),
                repartition_source_topics=_topic_infos(part.repartition_source_topics),
                copartition_groups=[
                    m.CopartitionGroup(
                        source_topics=list(group.source_topics),
                        source_topic_regex=list(group.source_topic_regex),
                        repartition_source_topics=list(group.repartition_source_topics),
                    )
                    for group in part.copartition_groups
                ],
            )
            for part in topology.subtopologies
        ],
    )


def topology_from(value: m.StreamsGroupTopologyValue) -> Topology:
    """The topology that the value of a record describes."""
    return Topology(
        value.epoch,
        tuple(
            Subtopology(
                part.subtopology_id,
                tuple(part.source_topics),
                tuple(part.source_topic_regex),
                _internal_topics(part.state_changelog_topics),
                tuple(part.repartition_sink_topics),
                _internal_topics(part.repartition_source_topics),
                tuple(
                    CopartitionGroup(
                        tuple(group.source_topics),
                        tuple(group.source_topic_regex),
                        tuple(group.repartition_source_topics),
                    )
                    for group in part.copartition_groups
                ),
            )
            for part in value.subtopologies
        ),
    )


def _topic_infos(topics: Iterable[InternalTopic]) -> list[m.StreamsGroupTopologyTopicInfo]:
    return [
        m.StreamsGroupTopologyTopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[m.TopicConfig(key=key, value=value) for key, value in topic.configs],
        )
        for topic in topics
    ]


def _internal_topics(topics: Iterable[m.StreamsGroupTopologyTopicInfo]) -> tuple[InternalTopic, ...]:
    return tuple(
        InternalTopic(
            topic.name,
            topic.partitions,
            topic.replication_factor,
            tuple((config.key, config.value) for config in topic.topic_configs),
        )
        for topic in topics
    )

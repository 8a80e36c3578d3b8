"""StreamsGroupDescribe: the state of a streams group, its topology, and the tasks of its members."""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.coordinator.groups.core.streams.events import (
    DescribedStreamsGroup,
    DescribedStreamsMember,
)
from pykafka_broker.coordinator.groups.core.streams.state import StreamsGroup
from pykafka_broker.coordinator.groups.core.streams.tasks import Tasks
from pykafka_broker.coordinator.groups.core.streams.topology.configured import ConfiguredTopology
from pykafka_broker.coordinator.groups.core.streams.topology.declared import (
    InternalTopic,
    Subtopology,
    Topology,
)
from pykafka_broker.protocol.java_hash import string_hash, walked


def described(group: StreamsGroup) -> DescribedStreamsGroup:
    """Describe a group. A topology that is ready shows its numbers of partitions; its lists are sorted.

    Apache Kafka shows news about topics only after the shard's next record.
    """
    view = group.configured
    topology = group.topology
    if topology is not None:
        topology = _with_counts(view) if view is not None and view.is_ready else _sorted(topology)
    return DescribedStreamsGroup(
        group.group_id,
        group.state.value,
        group.group_epoch,
        group.assignment_epoch,
        topology,
        tuple(
            DescribedStreamsMember(member, group.targets.get(name) or Tasks())
            for name, member in group.members.items()
        ),
    )


def _with_counts(view: ConfiguredTopology) -> Topology:
    return Topology(
        view.topology_epoch,
        tuple(
            Subtopology(
                name,
                tuple(sorted(set(part.source_topics))),
                state_changelog_topics=_by_name(map(_in_java_order, part.state_changelog_topics.values())),
                repartition_sink_topics=tuple(sorted(set(part.repartition_sink_topics))),
                repartition_source_topics=_by_name(
                    map(_in_java_order, part.repartition_source_topics.values())
                ),
            )
            for name, part in (view.subtopologies or {}).items()
        ),
    )


def _in_java_order(topic: InternalTopic) -> InternalTopic:
    """The topic with its configs in the iteration order of Apache Kafka's hash map."""
    configs = dict(topic.configs)
    return topic._replace(configs=tuple((key, configs[key]) for key in walked(configs, string_hash)))


def _sorted(topology: Topology) -> Topology:
    return Topology(
        topology.epoch,
        tuple(
            Subtopology(
                part.subtopology_id,
                tuple(sorted(part.source_topics)),
                state_changelog_topics=_by_name(part.state_changelog_topics),
                repartition_sink_topics=tuple(sorted(part.repartition_sink_topics)),
                repartition_source_topics=_by_name(part.repartition_source_topics),
            )
            for part in sorted(topology.subtopologies, key=lambda part: part.subtopology_id)
        ),
    )


def _by_name(topics: Iterable[InternalTopic]) -> tuple[InternalTopic, ...]:
    return tuple(sorted(topics, key=lambda topic: topic.name))

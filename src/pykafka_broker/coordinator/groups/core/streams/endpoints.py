"""Which instance of an application answers queries for which partition, as passed on to its members.

The coordinator passes on the endpoint of each member that has one, with the partitions of the topics that its
active and its standby tasks read. While the topology is not ready, endpoints have no partitions; Apache Kafka
4.3.1 fails such a heartbeat with UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykafka_broker.coordinator.groups.core.streams.state import Endpoint, StreamsGroup, StreamsMember
from pykafka_broker.coordinator.groups.core.streams.topology.configured import ConfiguredSubtopology
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.system.named_tuple import NamedTuple

#: Partitions of a topic, in the order in which they are sent.
TopicPartitions = tuple[str, tuple[int, ...]]


class EndpointPartitions(NamedTuple):
    """An endpoint, and the partitions that it answers for."""

    endpoint: Endpoint
    active: tuple[TopicPartitions, ...] = ()
    standby: tuple[TopicPartitions, ...] = ()


def endpoint_partitions(
    group: StreamsGroup, sender: StreamsMember, topics: TopicDirectory
) -> list[EndpointPartitions]:
    """The endpoints of all members; the sender comes last, with its state after the heartbeat."""
    others = (member for name, member in group.members.items() if name != sender.member_id)
    parts = (group.configured.subtopologies if group.configured is not None else None) or {}
    return [
        EndpointPartitions(
            member.user_endpoint,
            _partitions(member.assigned.active, parts, topics),
            _partitions(member.assigned.standby, parts, topics),
        )
        for member in (*others, sender)
        if member.user_endpoint is not None
    ]


def _partitions(
    tasks: Mapping[str, Iterable[int]],
    parts: Mapping[str, ConfiguredSubtopology],
    topics: TopicDirectory,
) -> tuple[TopicPartitions, ...]:
    found: list[TopicPartitions] = []
    for subtopology_id, numbers in tasks.items():
        part = parts.get(subtopology_id)
        names = () if part is None else (*part.source_topics, *part.repartition_source_topics)
        for name in dict.fromkeys(names):
            topic = topics.topic(name)
            if topic is not None:
                # Some tasks of a subtopology lack a topic that has fewer partitions than another.
                found.append((name, tuple(sorted(numbers)[: topic.partition_count])))
    return tuple(found)

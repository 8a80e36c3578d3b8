"""The requests of `reassign`: replicas, moves and throttles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pykafka_broker.cli.configs import BROKER as BROKER_RESOURCE
from pykafka_broker.cli.configs import DELETE, SET
from pykafka_broker.cli.configs import TOPIC as TOPIC_RESOURCE
from pykafka_broker.cli.reassign.planning import Assignment, brokers_of, throttled_replicas
from pykafka_broker.cli.topics import describe_topics
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.controllers import Controllers
from pykafka_broker.client.core.connection import check
from pykafka_broker.client.reassignments import Ongoing, reassignments
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from pykafka_broker.protocol.topic_partition import TopicPartition, by_topic

#: The keys of a throttle: of brokers, and of topics.
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
THROTTLED = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


def racks(client: Client) -> dict[int, str | None]:
    """The brokers that are not fenced, with their racks."""
    return {broker.node_id: broker.rack for broker in client.metadata([]).brokers}


def assignment(client: Client, topics: Sequence[str] | None) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas of all partitions of these topics, or of all.

    Raises:
        KafkaError: a topic does not exist.
    """
    return {
        TopicPartition(topic.name, partition.partition_index): tuple(partition.replica_nodes)
        for topic in describe_topics(client, topics)
        for partition in topic.partitions
    }


def ongoing(
    client: Client, timeout_ms: int, partitions: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, Ongoing]:
    """The reassignments under way: of these partitions, or all."""
    found = reassignments(client, timeout_ms, partitions)
    return {TopicPartition(*partition): ongoing for partition, ongoing in found.items()}


def reassign(
    client: Client, timeout_ms: int, wanted: Mapping[TopicPartition, Sequence[int] | None]
) -> dict[TopicPartition, tuple[ErrorCode, str | None]]:
    """Begin to move partitions, or cancel it if the replicas are None; the errors of those refused."""
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms,
        topics=[
            ReassignableTopic(
                name=topic,
                partitions=[
                    ReassignablePartition(partition_index=index, replicas=_listed(wanted, topic, index))
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(wanted).items()
        ],
    )
    answer = client.send(request)
    check(answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.name, partition.partition_index): (
            ErrorCode(partition.error_code),
            partition.error_message,
        )
        for topic in answer.responses
        for partition in topic.partitions
        if partition.error_code
    }


def _listed(
    wanted: Mapping[TopicPartition, Sequence[int] | None], topic: str, index: int
) -> list[int] | None:
    replicas = wanted[TopicPartition(topic, index)]
    return None if replicas is None else list(replicas)


# -- throttles -------------------------------------------------------------------------------------------


def throttle(client: Client, current: Assignment, wanted: Assignment, bytes_per_second: int) -> None:
    """Throttle these moves on all brokers that take part; one that is down copies nothing."""
    by_key = dict(zip(THROTTLED, throttled_replicas(current, wanted), strict=True))
    topics = sorted({topic for values in by_key.values() for topic in values})
    changed: list[AlterConfigsResource] = []
    for topic in topics:
        values = {key: ",".join(by_key[key][topic]) for key in THROTTLED if topic in by_key[key]}
        changed.append(_resource(TOPIC_RESOURCE.resource_type, topic, values))
    alive = racks(client)
    brokers = [broker for broker in brokers_of(current, wanted) if broker in alive]
    rate = dict.fromkeys(RATES, str(bytes_per_second))
    changed += [_resource(BROKER_RESOURCE.resource_type, str(broker), rate) for broker in brokers]
    _alter(client, changed)


def unthrottle(client: Client, topics: Iterable[str], brokers: Iterable[int]) -> None:
    """Remove all replication throttles of these topics and brokers."""
    _alter(
        client,
        [
            *(
                _resource(BROKER_RESOURCE.resource_type, str(broker), dict.fromkeys(RATES))
                for broker in brokers
            ),
            *(_resource(TOPIC_RESOURCE.resource_type, topic, dict.fromkeys(THROTTLED)) for topic in topics),
        ],
    )


def _resource(kind: int, name: str, values: Mapping[str, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
            for key, value in values.items()
        ],
    )


def _alter(client: Client, changed: Sequence[AlterConfigsResource]) -> None:
    """Change configurations. Those of a broker are sent to that broker, because only it can check them,
    unless controllers are asked.
    """
    by_node: dict[int | None, list[AlterConfigsResource]] = {}
    for resource in changed:
        is_broker = resource.resource_type == BROKER_RESOURCE.resource_type
        is_broker = is_broker and not isinstance(client, Controllers)
        by_node.setdefault(int(resource.resource_name) if is_broker else None, []).append(resource)
    for node_id, resources in by_node.items():
        answer = client.send(
            IncrementalAlterConfigsRequest(resources=resources, validate_only=False), node_id
        )
        for response in answer.responses:
            check(response.error_code, response.error_message)

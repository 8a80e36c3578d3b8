"""`topics`: create, list, describe, alter and delete topics; output as of kafka-topics.sh."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click

from pykafka_broker.cli.client import Client, check
from pykafka_broker.cli.options import INT16_MAX, INT32_MAX, cluster_options, pairs
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.schema import ZERO_UUID

TOPIC_RESOURCE = 2
DEFAULT_CONFIG_SOURCE = 5
AMBIGUOUS_NAME = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could "
    "collide. To avoid issues it is best to use either, but not both."
)


@click.group()
def topics() -> None:
    """Create, list, describe, alter and delete topics."""


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@click.option(
    "-p", "--partitions", type=click.IntRange(1, INT32_MAX), help="Number of partitions [broker's default]."
)
@click.option(
    "-r", "--replication-factor", type=click.IntRange(1, INT16_MAX), help="Replicas [broker's default]."
)
@click.option("--config", "configs", metavar="KEY=VALUE", multiple=True, help="A topic config; repeatable.")
@click.option("--if-not-exists", is_flag=True, help="Succeed where the topic exists already.")
@cluster_options
def create(
    names: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    bootstrap_server: str,
    timeout_s: float,
) -> None:
    """Create topics."""
    from pykafka_broker.protocol.messages.create_topics import (
        CreatableTopic,
        CreatableTopicConfig,
        CreateTopicsRequest,
    )

    values = dict(pairs(configs, "--config"))
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=partitions or -1,
                replication_factor=replication_factor or -1,
                assignments=[],
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in values.items()],
            )
            for name in names
        ],
        timeout_ms=int(timeout_s * 1000),
    )
    if any("." in name or "_" in name for name in names):
        click.echo(AMBIGUOUS_NAME)
    with Client(bootstrap_server, timeout_s) as client:
        results = client.send(request).topics
    for result in results:
        if if_not_exists and result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
            continue
        check(result.error_code, result.error_message)
        click.echo(f"Created topic {result.name}.")


@topics.command("list")
@click.option("--exclude-internal", is_flag=True, help="Leave out the topics Kafka keeps for itself.")
@cluster_options
def list_(exclude_internal: bool, bootstrap_server: str, timeout_s: float) -> None:
    """List the names of all topics."""
    with Client(bootstrap_server, timeout_s) as client:
        metadata = client.metadata(None)
    for topic in sorted(metadata.topics, key=lambda topic: str(topic.name)):
        if not (exclude_internal and topic.is_internal):
            click.echo(topic.name)


@topics.command()
@click.argument("names", nargs=-1, metavar="[NAME…]")
@click.option("--exclude-internal", is_flag=True, help="Leave out the topics Kafka keeps for itself.")
@click.option("--under-replicated-partitions", is_flag=True, help="Only partitions that lack replicas.")
@click.option("--unavailable-partitions", is_flag=True, help="Only partitions without a leader.")
@click.option("--topics-with-overrides", is_flag=True, help="Only topics that set configs of their own.")
@cluster_options
def describe(
    names: tuple[str, ...],
    exclude_internal: bool,
    under_replicated_partitions: bool,
    unavailable_partitions: bool,
    topics_with_overrides: bool,
    bootstrap_server: str,
    timeout_s: float,
) -> None:
    """Describe topics, all of them if none is named."""
    with Client(bootstrap_server, timeout_s) as client:
        found = describe_topics(client, names or None)
        if exclude_internal:
            found = [topic for topic in found if not topic.is_internal]
        overrides = topic_overrides(client, [topic.name for topic in found])
        alive = {broker.node_id for broker in client.metadata([]).brokers}
    selects_partitions = under_replicated_partitions or unavailable_partitions
    for topic in found:
        configs = overrides[topic.name]
        if topics_with_overrides and not configs:
            continue
        if not selects_partitions:
            click.echo(topic_line(topic, configs))
        if topics_with_overrides:
            continue
        for partition in topic.partitions:
            lacks_replicas = len(partition.isr_nodes) < len(partition.replica_nodes)
            is_unavailable = partition.leader_id not in alive
            if (
                not selects_partitions
                or (under_replicated_partitions and lacks_replicas)
                or (unavailable_partitions and is_unavailable)
            ):
                click.echo(partition_line(topic.name, partition))


def topic_line(topic: Any, configs: Sequence[str]) -> str:
    """The line of a topic."""
    import base64

    topic_id = base64.urlsafe_b64encode(topic.topic_id).rstrip(b"=").decode()
    replicas = len(topic.partitions[0].replica_nodes) if topic.partitions else 0
    return (
        f"Topic: {topic.name}\tTopicId: {topic_id}\tPartitionCount: {len(topic.partitions)}\t"
        f"ReplicationFactor: {replicas}\tConfigs: {','.join(configs)}"
    )


def partition_line(topic: str, partition: Any) -> str:
    """The line of a partition."""
    leader = "none" if partition.leader_id < 0 else partition.leader_id
    fields = [
        f"Topic: {topic}",
        f"Partition: {partition.partition_index}",
        f"Leader: {leader}",
        f"Replicas: {_joined(partition.replica_nodes)}",
        f"Isr: {_joined(partition.isr_nodes)}",
        f"Elr: {_joined(getattr(partition, 'eligible_leader_replicas', None))}",
        f"LastKnownElr: {_joined(getattr(partition, 'last_known_elr', None))}",
    ]
    return "\t" + "\t".join(fields)


def _joined(nodes: Iterable[int] | None) -> str:
    return "N/A" if nodes is None else ",".join(str(node) for node in nodes)


def describe_topics(client: Client, names: Sequence[str] | None) -> list[Any]:
    """Topics with their partitions, sorted; by DescribeTopicPartitions, or by Metadata where that is missing.

    Raises:
        KafkaError: a named topic does not exist.
    """
    from pykafka_broker.protocol.messages.describe_topic_partitions import (
        Cursor,
        DescribeTopicPartitionsRequest,
        TopicRequest,
    )

    if names is None:
        names = [topic.name for topic in client.metadata(None).topics]
    names = sorted(set(names))
    if not names:
        return []
    if DescribeTopicPartitionsRequest.api_key not in client.connection().versions:  # type: ignore[attr-defined]
        found = list(client.metadata(names).topics)
    else:
        found = []
        cursor = None
        while True:
            request = DescribeTopicPartitionsRequest(
                topics=[TopicRequest(name=name) for name in names], cursor=cursor
            )
            response = client.send(request)
            for topic in response.topics:
                if found and found[-1].name == topic.name:
                    found[-1].partitions.extend(topic.partitions)
                else:
                    found.append(topic)
            if response.next_cursor is None:
                break
            after = response.next_cursor
            cursor = Cursor(topic_name=after.topic_name, partition_index=after.partition_index)
    for topic in found:
        if topic.error_code:
            raise client.topic_error(topic.error_code, topic.name)
        topic.partitions.sort(key=lambda partition: partition.partition_index)
    return sorted(found, key=lambda topic: str(topic.name))


def topic_overrides(client: Client, names: Sequence[str]) -> dict[str, list[str]]:
    """The `key=value` entries of each topic that are not Kafka's defaults."""
    from pykafka_broker.protocol.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
    )

    if not names:
        return {}
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None)
            for name in names
        ]
    )
    return {
        result.resource_name: [
            f"{entry.name}={entry.value}"
            for entry in result.configs
            if entry.config_source != DEFAULT_CONFIG_SOURCE
        ]
        for result in client.send(request).results
    }


@topics.command()
@click.argument("name")
@click.option(
    "-p", "--partitions", type=click.IntRange(1, INT32_MAX), required=True, help="The new, larger number."
)
@cluster_options
def alter(name: str, partitions: int, bootstrap_server: str, timeout_s: float) -> None:
    """Give a topic more partitions."""
    from pykafka_broker.protocol.messages.create_partitions import (
        CreatePartitionsRequest,
        CreatePartitionsTopic,
    )

    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=partitions, assignments=None)],
        timeout_ms=int(timeout_s * 1000),
        validate_only=False,
    )
    with Client(bootstrap_server, timeout_s) as client:
        result = client.send(request).results[0]
    check(result.error_code, result.error_message)
    click.echo(f"Topic {name} has {partitions} partitions.")


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@click.option("--if-exists", is_flag=True, help="Succeed where there is no such topic.")
@cluster_options
def delete(names: tuple[str, ...], if_exists: bool, bootstrap_server: str, timeout_s: float) -> None:
    """Delete topics and all their records."""
    from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in names],
        topic_names=list(names),
        timeout_ms=int(timeout_s * 1000),
    )
    with Client(bootstrap_server, timeout_s) as client:
        results = client.send(request).responses
    for result in results:
        if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            if if_exists:
                continue
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{result.name}' does not exist.")
        check(result.error_code, result.error_message)
        click.echo(f"Deleted topic {result.name}.")

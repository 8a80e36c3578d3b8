"""`topics`: create, list, describe, alter and delete topics; lines as of kafka-topics.sh. `topic_profile.py`
has `profile`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from pykafka_broker.cli import Group
from pykafka_broker.cli.cells import Cell, Column, Styled, Table
from pykafka_broker.cli.cluster import Cluster, cluster_options, cluster_or_controller_options, loss_of
from pykafka_broker.cli.names import topic_names
from pykafka_broker.cli.options import INT16_MAX, INT32_MAX, pairs
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.cli.suggestions import unknown_config, unknown_topic
from pykafka_broker.cli.topic_profile import profile
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.client.core.metadata import topic_error
from pykafka_broker.client.reassignments import (
    REASSIGNMENTS_WITHIN_S,
    Ongoing,
    reassignments_as_told,
    replication_factor,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import ZERO_UUID, api_key_of, uuid_text
from pykafka_broker.system.named_tuple import NamedTuple

TOPIC_RESOURCE = 2
DEFAULT_CONFIG_SOURCE = 5
AMBIGUOUS_NAME = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could "
    "collide. To avoid issues it is best to use either, but not both."
)


class TopicName(NamedTuple):
    """A topic in a list."""

    topic: str
    is_internal: bool
    partition_count: int
    replication_factor: int


class CreatedTopic(NamedTuple):
    """The result of creating a topic; with --if-not-exists it may have existed before."""

    topic: str
    created: bool


class DeletedTopic(NamedTuple):
    """The result of deleting a topic; with --if-exists it may never have existed."""

    topic: str
    deleted: bool


class PartitionCount(NamedTuple):
    """The number of partitions of a topic after the change."""

    topic: str
    partition_count: int


class Partition(NamedTuple):
    """A partition. `leader` is None without one; so are lists that the broker does not tell, and the replicas
    that are added and removed if no reassignment is under way.
    """

    partition: int
    leader: int | None
    replicas: list[int]
    isr: list[int]
    adding_replicas: list[int] | None
    removing_replicas: list[int] | None
    elr: list[int] | None
    last_known_elr: list[int] | None

    @property
    def replication_factor(self) -> int:
        """The number of replicas without those that a reassignment adds."""
        if self.adding_replicas is None or self.removing_replicas is None:
            return len(self.replicas)
        return replication_factor(
            self.replicas, Ongoing(self.replicas, self.adding_replicas, self.removing_replicas)
        )

    @property
    def lacks_replicas(self) -> bool:
        return len(self.isr) < self.replication_factor


class Topic(NamedTuple):
    """A topic with the configuration it sets itself."""

    topic: str
    topic_id: str
    is_internal: bool
    partition_count: int
    replication_factor: int
    configs: dict[str, str | None]
    partitions: list[Partition]


@click.group(cls=Group)
def topics() -> None:
    """Create, list, describe, profile, alter and delete topics."""


topics.add_command(profile)


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
@cluster_or_controller_options
@json_option(CreatedTopic, key="topics")
def create(
    names: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    cluster: Cluster,
    output: Output,
) -> None:
    """Create topics."""
    wanted = NewTopics(names, partitions, replication_factor, dict(pairs(configs, "--config")))
    if any("." in name or "_" in name for name in names):
        output.remark(AMBIGUOUS_NAME)
    with cluster.connect() as client:
        results = wanted.ask(client)
    # Each topic is created or not by itself: those that are, are shown before the error of another one.
    results.sort(key=lambda result: bool(result.error_code))
    with output.one_by_one() as each:
        for result in results:
            if if_not_exists and result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
                each.show(CreatedTopic(result.name, created=False), ())
                continue
            wanted.check(result)
            each.show(CreatedTopic(result.name, created=True), [f"Created topic {result.name}."])


class NewTopics(NamedTuple):
    """Topics to create; a number that is None is the broker's default."""

    names: Sequence[str]
    partitions: int | None
    replication_factor: int | None
    configs: Mapping[str, str]

    def ask(self, client: Client) -> list[Any]:
        """Ask for the topics; the answer about each."""
        from pykafka_broker.protocol.messages.create_topics import (
            CreatableTopic,
            CreatableTopicConfig,
            CreateTopicsRequest,
        )

        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=-1 if self.partitions is None else self.partitions,
                    replication_factor=-1 if self.replication_factor is None else self.replication_factor,
                    assignments=[],
                    configs=[
                        CreatableTopicConfig(name=key, value=value) for key, value in self.configs.items()
                    ],
                )
                for name in self.names
            ],
            timeout_ms=int(client.timeout_s * 1000),
        )
        results: list[Any] = client.send(request).topics
        return results

    def check(self, result: Any) -> None:
        """Accept an answer.

        Raises:
            KafkaError: the topic is not created; the message may name the key that is meant.
        """
        try:
            check(result.error_code, result.error_message)
        except KafkaError as error:
            raise unknown_config(error, self.configs, TOPIC_RESOURCE) from None


@topics.command("list")
@click.option("--exclude-internal", is_flag=True, help="Leave out the topics Kafka keeps for itself.")
@cluster_options
@json_option(TopicName, key="topics")
def list_(exclude_internal: bool, cluster: Cluster, output: Output) -> None:
    """List the names of all topics."""
    with cluster.connect() as client:
        metadata = client.metadata(None)
    found = [
        TopicName(
            str(topic.name), topic.is_internal, len(topic.partitions), _replication_factor(topic.partitions)
        )
        for topic in sorted(metadata.topics, key=lambda topic: str(topic.name))
        if not (exclude_internal and topic.is_internal)
    ]
    columns = (
        Column("TOPIC"),
        Column("PARTITIONS", is_number=True, drop=1),
        Column("REPLICATION FACTOR", is_number=True, drop=2),
    )
    output.show_all(
        found, (topic.topic for topic in found), [Table(columns, [_row(topic) for topic in found])]
    )


def _row(topic: TopicName) -> list[Cell]:
    name: Cell = Styled(topic.topic, "dim") if topic.is_internal else topic.topic
    return [name, topic.partition_count, topic.replication_factor]


def _replication_factor(partitions: Sequence[Any]) -> int:
    return len(partitions[0].replica_nodes) if partitions else 0


@topics.command()
@click.argument("names", nargs=-1, metavar="[NAME…]", shell_complete=topic_names)
@click.option("--exclude-internal", is_flag=True, help="Leave out the topics Kafka keeps for itself.")
@click.option("--under-replicated-partitions", is_flag=True, help="Only partitions that lack replicas.")
@click.option("--unavailable-partitions", is_flag=True, help="Only partitions without a leader.")
@click.option("--topics-with-overrides", is_flag=True, help="Only topics that set configs of their own.")
@cluster_options
@json_option(Topic, key="topics")
def describe(
    names: tuple[str, ...],
    exclude_internal: bool,
    under_replicated_partitions: bool,
    unavailable_partitions: bool,
    topics_with_overrides: bool,
    cluster: Cluster,
    output: Output,
) -> None:
    """Describe topics, all of them if none is named.

    A selection of partitions leaves out the others, and topics without any.
    """
    with cluster.connect() as client:
        found = describe_topics(client, names or None)
        if exclude_internal:
            found = [topic for topic in found if not topic.is_internal]
        overrides = topic_overrides(client, [topic.name for topic in found])
        alive = {broker.node_id for broker in client.metadata([]).brokers}
        loss, told_by = loss_of(cluster, client), client.connection().peer
    ongoing = {}
    if loss is None:
        with cluster.within(REASSIGNMENTS_WITHIN_S).at(told_by).connect() as asked:
            ongoing = reassignments_as_told(asked)
    selects_partitions = under_replicated_partitions or unavailable_partitions

    def is_chosen(partition: Partition) -> bool:
        return (
            not selects_partitions
            or (under_replicated_partitions and partition.lacks_replicas)
            or (unavailable_partitions and partition.leader not in alive)
        )

    described = []
    for answer in found:
        topic = described_topic(answer, overrides[answer.name], ongoing)
        if topics_with_overrides:
            topic = topic._replace(partitions=[])
        chosen = topic._replace(partitions=[p for p in topic.partitions if is_chosen(p)])
        if chosen.configs if topics_with_overrides else chosen.partitions or not selects_partitions:
            described.append(chosen)
    output.show_all(
        described,
        (line for topic in described for line in topic_lines(topic, with_head=not selects_partitions)),
        (topic_table(topic) for topic in described),
    )
    if loss is not None:
        output.note(loss)


def described_topic(
    answer: Any, configs: dict[str, str | None], ongoing: Mapping[tuple[str, int], Ongoing]
) -> Topic:
    """A topic of an answer, with the configs it sets, and the reassignments under way."""
    partitions = [
        Partition(
            partition=p.partition_index,
            leader=None if p.leader_id < 0 else p.leader_id,
            replicas=list(p.replica_nodes),
            isr=list(p.isr_nodes),
            adding_replicas=moving.adding if moving else None,
            removing_replicas=moving.removing if moving else None,
            elr=_listed(p, "eligible_leader_replicas"),
            last_known_elr=_listed(p, "last_known_elr"),
        )
        for p in answer.partitions
        for moving in (ongoing.get((answer.name, p.partition_index)),)
    ]
    return Topic(
        topic=answer.name,
        topic_id=uuid_text(answer.topic_id),
        is_internal=answer.is_internal,
        partition_count=len(partitions),
        replication_factor=partitions[0].replication_factor if partitions else 0,
        configs=configs,
        partitions=partitions,
    )


def _listed(partition: Any, name: str) -> list[int] | None:
    nodes = getattr(partition, name, None)
    return None if nodes is None else list(nodes)


def topic_lines(topic: Topic, *, with_head: bool) -> Iterator[str]:
    """The line of a topic, if wanted, and the lines of its partitions."""
    if with_head:
        configs = ",".join(f"{key}={value}" for key, value in topic.configs.items())
        yield (
            f"Topic: {topic.topic}\tTopicId: {topic.topic_id}\tPartitionCount: {topic.partition_count}\t"
            f"ReplicationFactor: {topic.replication_factor}\tConfigs: {configs}"
        )
    for partition in topic.partitions:
        fields = [
            f"Topic: {topic.topic}",
            f"Partition: {partition.partition}",
            f"Leader: {'none' if partition.leader is None else partition.leader}",
            f"Replicas: {_joined(partition.replicas)}",
            f"Isr: {_joined(partition.isr)}",
            *_moving(partition),
            f"Elr: {_joined(partition.elr)}",
            f"LastKnownElr: {_joined(partition.last_known_elr)}",
        ]
        yield "\t" + "\t".join(fields)


def _moving(partition: Partition) -> Iterator[str]:
    if partition.adding_replicas is not None:
        yield f"Adding Replicas: {_joined(partition.adding_replicas)}"
        yield f"Removing Replicas: {_joined(partition.removing_replicas)}"


def topic_table(topic: Topic) -> Table:
    """A topic as a table of its partitions, below the configuration it sets."""
    configs = ", ".join(f"{key}={value}" for key, value in topic.configs.items())
    rows: list[list[Cell]] = [
        [
            partition.partition,
            Styled("none", "red") if partition.leader is None else partition.leader,
            _joined(partition.replicas),
            Styled(_joined(partition.isr), "yellow" if partition.lacks_replicas else ""),
            _joined(partition.adding_replicas) if partition.adding_replicas else None,
            _joined(partition.removing_replicas) if partition.removing_replicas else None,
            _joined(partition.elr) if partition.elr else None,
            _joined(partition.last_known_elr) if partition.last_known_elr else None,
        ]
        for partition in topic.partitions
    ]
    return Table(
        heading=topic.topic,
        details=[
            ("id", topic.topic_id),
            ("partitions", topic.partition_count),
            ("replication factor", topic.replication_factor),
            ("configs", configs or None),
        ],
        columns=(
            Column("PARTITION", is_number=True),
            Column("LEADER", is_number=True),
            Column("REPLICAS", drop=1),
            Column("ISR"),
            Column("ADDING", drop=4),
            Column("REMOVING", drop=5),
            Column("ELR", drop=2),
            Column("LAST KNOWN ELR", drop=3),
        ),
        rows=rows,
    )


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
        names = [str(topic.name) for topic in client.metadata(None).topics]
    names = sorted(set(names))
    if not names:
        return []
    found: list[Any]
    if api_key_of(DescribeTopicPartitionsRequest) not in client.connection().versions:
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
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise unknown_topic(client, topic.name)
        if topic.error_code:
            raise topic_error(topic.error_code, topic.name)
        topic.partitions.sort(key=lambda partition: partition.partition_index)
    return sorted(found, key=lambda topic: str(topic.name))


def topic_overrides(client: Client, names: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """The values of each topic that are not Kafka's defaults."""
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
        result.resource_name: {
            entry.name: entry.value
            for entry in result.configs
            if entry.config_source != DEFAULT_CONFIG_SOURCE
        }
        for result in client.send(request).results
    }


@topics.command()
@click.argument("name", shell_complete=topic_names)
@click.option(
    "-p", "--partitions", type=click.IntRange(1, INT32_MAX), required=True, help="The new, larger number."
)
@cluster_or_controller_options
@json_option(PartitionCount)
def alter(name: str, partitions: int, cluster: Cluster, output: Output) -> None:
    """Give a topic more partitions."""
    with cluster.connect() as client:
        add_partitions(client, name, partitions)
    output.show(PartitionCount(name, partitions), [f"Topic {name} has {partitions} partitions."])


def add_partitions(client: Client, name: str, partitions: int) -> None:
    """Give a topic more partitions, so that it has this number.

    Raises:
        KafkaError: there is no such topic, or the number is refused.
    """
    from pykafka_broker.protocol.messages.create_partitions import (
        CreatePartitionsRequest,
        CreatePartitionsTopic,
    )

    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=partitions, assignments=None)],
        timeout_ms=int(client.timeout_s * 1000),
        validate_only=False,
    )
    result = client.send(request).results[0]
    if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise unknown_topic(client, name)
    check(result.error_code, result.error_message)


@topics.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…", shell_complete=topic_names)
@click.option("--if-exists", is_flag=True, help="Succeed where there is no such topic.")
@cluster_or_controller_options
@json_option(DeletedTopic, key="topics")
def delete(names: tuple[str, ...], if_exists: bool, cluster: Cluster, output: Output) -> None:
    """Delete topics and all their records."""
    with cluster.connect() as client, output.one_by_one() as each:
        for name, deleted in delete_topics(client, names, missing_ok=if_exists):
            each.show(DeletedTopic(name, deleted), [f"Deleted topic {name}."] if deleted else ())


def delete_topics(
    client: Client, names: Sequence[str], *, missing_ok: bool = False
) -> Iterator[tuple[str, bool]]:
    """Delete topics; the name of each, and whether it existed.

    Raises:
        KafkaError: one of them is not deleted, or does not exist (unless `missing_ok`); after the others.
    """
    from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in names],
        topic_names=list(names),
        timeout_ms=int(client.timeout_s * 1000),
    )
    for result in sorted(client.send(request).responses, key=lambda result: bool(result.error_code)):
        is_missing = result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if is_missing and not missing_ok:
            raise unknown_topic(client, result.name)
        if not is_missing:
            check(result.error_code, result.error_message)
        yield result.name, not is_missing

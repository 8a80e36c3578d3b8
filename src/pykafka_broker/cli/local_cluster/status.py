"""`cluster status`: who leads the quorum, which brokers are up, which partitions lack replicas."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import click

from pykafka_broker.cli.brokers import BrokerStatus, broker_lines, broker_statuses, broker_table
from pykafka_broker.cli.cells import Cell, Column, Line, Table
from pykafka_broker.cli.cluster import Cluster, cluster_options
from pykafka_broker.cli.interrupts import Interrupts
from pykafka_broker.cli.options import Seconds
from pykafka_broker.cli.output import Form, Output, json_option
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.connection import check
from pykafka_broker.protocol.errors import KafkaError, ProtocolError
from pykafka_broker.system.named_tuple import NamedTuple

METADATA_TOPIC = "__cluster_metadata"
#: The type of a topic among the resources that have configurations.
TOPIC = 2
MIN_ISR = "min.insync.replicas"
#: Between two looks, where no other time is wanted.
WATCH_S = 2.0


class TopicStatus(NamedTuple):
    """How many partitions of a topic are as kafka-topics' options of the same names show them."""

    topic: str
    partitions: int
    under_replicated: int
    at_min_isr: int
    under_min_isr: int
    offline: int


class ClusterStatus(NamedTuple):
    """A cluster at a glance; the lag is that of the last voter, in records of the metadata log."""

    cluster_id: str
    leader_id: int
    leader_epoch: int
    voters: list[int]
    max_follower_lag: int
    brokers: list[BrokerStatus]
    topics: list[TopicStatus]


@click.command()
@click.option(
    "--topics", "with_topics", is_flag=True, help="Show all topics, not only those that lack something."
)
@click.option(
    "--watch",
    "watch_s",
    is_flag=False,
    flag_value=WATCH_S,
    type=Seconds(0.1),
    metavar="[SECONDS]",
    help="Show it again and again, every two seconds or as often as said, until Ctrl-C.",
)
@cluster_options
@json_option(ClusterStatus)
def status(with_topics: bool, watch_s: float | None, cluster: Cluster, output: Output) -> int:
    """Show the quorum, the brokers, and the partitions that lack replicas, of any cluster."""
    if watch_s is None:
        _show(cluster, output, with_topics)
        return 0
    with Interrupts() as interrupts:
        try:
            while True:
                with interrupts.waiting():
                    _watch(cluster, output, with_topics)
                    time.sleep(watch_s)
        except KeyboardInterrupt:
            return interrupts.exit_status


def _watch(cluster: Cluster, output: Output, with_topics: bool) -> None:
    """Show it in the place of what was shown before; a cluster that does not answer may do so next time."""
    if output.form is Form.TABLES:
        click.clear()
    try:
        _show(cluster, output, with_topics)
    except (OSError, KafkaError, ProtocolError) as error:
        output.note(f"{error}")


def _show(cluster: Cluster, output: Output, with_topics: bool) -> None:
    with cluster.connect() as client:
        found = _status(client)
    shown = [topic for topic in found.topics if with_topics or _lacks(topic)]
    output.show(found, _lines(found, shown), _tables(found, shown))


def _status(client: Client) -> ClusterStatus:
    metadata = client.metadata(None)
    for topic in metadata.topics:
        check(topic.error_code)
    leader_id, epoch, voters, lag = _quorum(client)
    cluster_id, found = broker_statuses(client, metadata.topics)
    least = _least_in_sync(client, [topic.name or "" for topic in metadata.topics])
    return ClusterStatus(
        cluster_id,
        leader_id,
        epoch,
        voters,
        lag,
        found,
        [
            topic_status(topic, least[topic.name or ""])
            for topic in sorted(metadata.topics, key=lambda topic: str(topic.name))
        ],
    )


def topic_status(topic: Any, least: int) -> TopicStatus:
    """Count the partitions of a topic whose `min.insync.replicas` is `least`."""
    partitions = topic.partitions
    return TopicStatus(
        topic.name,
        len(partitions),
        sum(len(one.isr_nodes) < len(one.replica_nodes) for one in partitions),
        sum(len(one.isr_nodes) == least for one in partitions),
        sum(len(one.isr_nodes) < least for one in partitions),
        sum(one.leader_id < 0 for one in partitions),
    )


def _quorum(client: Client) -> tuple[int, int, list[int], int]:
    """The leader of the metadata log, its epoch, the voters, and how far the last of them is behind."""
    from pykafka_broker.protocol.messages.describe_quorum import (
        DescribeQuorumRequest,
        DescribeQuorumRequestPartitionData,
        DescribeQuorumRequestTopicData,
    )

    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    topic = DescribeQuorumRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    answer = client.send(DescribeQuorumRequest(topics=[topic]))
    check(answer.error_code, answer.error_message)
    described = answer.topics[0].partitions[0]
    check(described.error_code, described.error_message)
    ends = {voter.replica_id: voter.log_end_offset for voter in described.current_voters}
    lag = max(ends.values(), default=0) - min(ends.values(), default=0)
    return described.leader_id, described.leader_epoch, sorted(ends), lag


def _least_in_sync(client: Client, topics: Sequence[str]) -> dict[str, int]:
    """The `min.insync.replicas` of topics."""
    from pykafka_broker.protocol.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
    )

    if not topics:
        return {}
    asked = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=[MIN_ISR])
        for name in topics
    ]
    least = {}
    for result in client.send(DescribeConfigsRequest(resources=asked)).results:
        check(result.error_code, result.error_message)
        least[result.resource_name] = int(result.configs[0].value)
    return least


def _lacks(topic: TopicStatus) -> bool:
    return bool(topic.under_replicated or topic.under_min_isr or topic.offline)


def _totals(topics: Sequence[TopicStatus]) -> list[tuple[str, int]]:
    return [
        ("Topics", len(topics)),
        ("Partitions", sum(topic.partitions for topic in topics)),
        ("UnderReplicated", sum(topic.under_replicated for topic in topics)),
        ("AtMinIsr", sum(topic.at_min_isr for topic in topics)),
        ("UnderMinIsr", sum(topic.under_min_isr for topic in topics)),
        ("Offline", sum(topic.offline for topic in topics)),
    ]


def _lines(found: ClusterStatus, topics: Sequence[TopicStatus]) -> Iterator[Line]:
    yield f"ClusterId: {found.cluster_id}"
    yield (
        f"Quorum: LeaderId: {found.leader_id}\tLeaderEpoch: {found.leader_epoch}\t"
        f"Voters: {','.join(map(str, found.voters))}\tMaxFollowerLag: {found.max_follower_lag}"
    )
    yield from broker_lines(found.brokers)
    yield "\t".join(f"{name}: {count}" for name, count in _totals(found.topics))
    for topic in topics:
        yield (
            f"Topic: {topic.topic}\tPartitions: {topic.partitions}\t"
            f"UnderReplicated: {topic.under_replicated}\tAtMinIsr: {topic.at_min_isr}\t"
            f"UnderMinIsr: {topic.under_min_isr}\tOffline: {topic.offline}"
        )


def _tables(found: ClusterStatus, topics: Sequence[TopicStatus]) -> Iterator[Table]:
    details: list[tuple[str, Cell]] = [
        ("cluster", found.cluster_id),
        ("leader of the quorum", found.leader_id),
        ("epoch", found.leader_epoch),
        ("voters", ", ".join(map(str, found.voters))),
        ("lag", found.max_follower_lag),
    ]
    said = ", ".join(f"{name} {count}" for name, count in _totals(found.topics))
    yield broker_table(found.brokers, details, said)
    if topics:
        numbers = ("PARTITIONS", "UNDER REPLICATED", "AT MIN ISR", "UNDER MIN ISR", "OFFLINE")
        yield Table(
            (Column("TOPIC"), *(Column(title, is_number=True) for title in numbers)),
            [tuple(topic) for topic in topics],
        )

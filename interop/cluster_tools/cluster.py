"""The nodes that Apache Kafka's tools are asked about: brokers that stay and that come and go, topics on
them, and what the tools show of both."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer

from interop.clients import connect
from interop.clients.client import Record
from interop.world import MAKER
from pykafka_broker.testing.apache.nodes import Node, Nodes
from pykafka_broker.testing.apache.tools import run_tool

TOOLS = "org.apache.kafka.tools"
SERVER, CONTROLLER = "--bootstrap-server", "--bootstrap-controller"
BOTH = (SERVER, CONTROLLER)
#: Besides the voters: a broker that stays, and those that come and go.
STAYS, GOES = 11, (12, 13)
#: Which voter's software each of these brokers has.
LIKE = {STAYS: 2, 12: 1, 13: 3}
PATIENCE_S = 60.0
CONFIGS = "kafka.admin.ConfigCommand"


@dataclass(frozen=True)
class Cluster:
    """Nodes that run, and a folder for the files of tools."""

    nodes: Nodes
    folder: Path

    @property
    def brokers(self) -> list[int]:
        """The ids of the brokers that run."""
        return [node.node_id for node in self.nodes if node.is_broker and node.is_running]

    @property
    def voters(self) -> set[int]:
        """The ids of the voters, as their leader says."""
        return {voter.replica_id for voter in self.nodes.quorum().current_voters}

    def bootstrap(self, by: str) -> tuple[str, str]:
        """The option that names all nodes that run, as brokers or as controllers."""
        if by == SERVER:
            addresses = [node.address for node in self.nodes if node.is_broker and node.is_running]
        else:
            addresses = [
                node.controller_address for node in self.nodes if node.is_controller and node.is_running
            ]
        return by, ",".join(addresses)

    def tool(self, name: str, *arguments: str, by: str = SERVER, expect_failure: bool = False) -> str:
        """What a tool prints; one whose command comes first (`cluster-id`) gets it first."""
        main_class = name if name.startswith("kafka.") else f"{TOOLS}.{name}"
        first = arguments[:1] if name == "ClusterTool" else ()
        return run_tool(
            main_class,
            *first,
            *self.bootstrap(by),
            *arguments[len(first) :],
            expect_failure=expect_failure,
        )

    def file(self, name: str, content: object) -> str:
        """The path of a JSON file."""
        path = self.folder / name
        path.write_text(json.dumps(content))
        return str(path)


def come(cluster: Cluster, node_id: int = GOES[0]) -> Node:
    """A broker that does not stay."""
    nodes = cluster.nodes
    if node_id not in {node.node_id for node in nodes}:
        nodes.add(node_id, nodes[LIKE[node_id]].software, roles="broker")
    nodes[node_id].start()
    return nodes[node_id]


def leave(cluster: Cluster, node_id: int = GOES[0]) -> None:
    """Have a broker that does not stay forgotten."""
    cluster.nodes[node_id].kill()
    cluster.tool("ClusterTool", "unregister", "--id", str(node_id))


@contextlib.contextmanager
def brokers(cluster: Cluster, count: int) -> Iterator[list[Node]]:
    """`count` brokers, the last of which is the one that stays. Those that are missing come, and leave."""
    there = [node_id for node_id in cluster.brokers if node_id != STAYS][: count - 1]
    coming = GOES[: count - 1 - len(there)]
    for node_id in coming:
        come(cluster, node_id)
    yield [cluster.nodes[node_id] for node_id in (*there, *coming, STAYS)]
    for node_id in coming:
        leave(cluster, node_id)


@contextlib.contextmanager
def created(cluster: Cluster, topic: str, nodes: Sequence[Node], **config: str) -> Iterator[None]:
    """A topic of two partitions on these brokers: the first leads partition 0, the last partition 1."""
    ids = [str(node.node_id) for node in nodes]
    assignment = ",".join(":".join(order) for order in (ids, ids[::-1]))
    settings = [part for item in config.items() for part in ("--config", "=".join(item).replace("_", "."))]
    cluster.tool("TopicCommand", "--create", "--topic", topic, "--replica-assignment", assignment, *settings)
    yield
    cluster.tool("TopicCommand", "--delete", "--topic", topic)


@contextlib.contextmanager
def replicated(cluster: Cluster, topic: str, count: int = 2, **config: str) -> Iterator[list[Node]]:
    """A topic, as `created` makes it, on `count` brokers."""
    with brokers(cluster, count) as nodes, created(cluster, topic, nodes, **config):
        yield nodes


def write(cluster: Cluster, topic: str, transactional_id: str = "", *, value_bytes: int = 0) -> Producer:
    """A hundred records of `value_bytes` or more; the producer, in a transaction if it has an id for one."""
    settings = {"transactional.id": transactional_id} if transactional_id else {"acks": "all"}
    producer = Producer({"bootstrap.servers": cluster.bootstrap(SERVER)[1], **settings})
    if transactional_id:
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
    for number in range(100):
        producer.produce(topic, f"record {number}".ljust(value_bytes), partition=number % 2)
    assert producer.flush(PATIENCE_S) == 0
    return producer


def records(cluster: Cluster, topic: str) -> list[Record]:
    """The committed records of both partitions."""
    with closing(connect(MAKER, cluster.bootstrap(SERVER)[1])) as client:
        return client.read(topic, (0, 1), committed=True)


class Shown(NamedTuple):
    """A partition as `kafka-topics --describe` shows it."""

    number: int
    #: None without a leader.
    leader: int | None
    replicas: list[int]
    in_sync: set[int]


def shown(cluster: Cluster, topic: str, *options: str) -> list[Shown]:
    """The partitions that the tool shows with these options."""
    printed = cluster.tool("TopicCommand", "--describe", *options, "--topic", topic)
    rows = re.findall(r"Partition: (\d+)\s+Leader: (\S+)\s+Replicas: (\S+)\s+Isr: ([\d,]*)", printed)
    return [
        Shown(
            int(index),
            None if leader == "none" else int(leader),
            [int(node_id) for node_id in replicas.split(",")],
            {int(node_id) for node_id in in_sync.split(",") if node_id},
        )
        for index, leader, replicas, in_sync in rows
    ]


def await_shown(
    cluster: Cluster, topic: str, leaders: Sequence[int | None], in_sync: set[int] | None = None
) -> None:
    """Wait until the partitions of a topic have these leaders, and each of them these replicas in sync."""

    def is_so() -> bool:
        partitions = shown(cluster, topic)
        return [partition.leader for partition in partitions] == leaders and (
            in_sync is None or all(partition.in_sync == in_sync for partition in partitions)
        )

    cluster.nodes.comes(is_so, lambda: f"not {leaders} and {in_sync}, but {shown(cluster, topic)}")


class Replica(NamedTuple):
    """One replica as `kafka-log-dirs` describes it."""

    broker: int
    partition: str
    size_bytes: int
    offset_lag: int


def replicas_of(cluster: Cluster, topic: str) -> list[Replica]:
    """The replicas of a topic that the log folders of all brokers have."""
    described = cluster.tool("LogDirsCommand", "--describe", "--topic-list", topic)
    told = json.loads(described.splitlines()[-1])
    assert {broker["broker"] for broker in told["brokers"]} == set(cluster.brokers), described
    return sorted(
        Replica(broker["broker"], replica["partition"], replica["size"], replica["offsetLag"])
        for broker in told["brokers"]
        for folder in broker["logDirs"]
        for replica in folder["partitions"]
    )

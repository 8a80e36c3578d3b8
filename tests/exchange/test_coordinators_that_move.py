"""Coordinators that move with the replicas of their topics: members of groups go on as they were, and
transactions end as they were decided, on whichever kind of broker comes next.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pykafka_broker.testing.apache.nodes import Node, Nodes, Software
from tests.exchange.coordinators import GROUP, TRANSACTION, coordinated_by, coordinator
from tests.torture.clients import QUIET

PATIENCE_S = 60
REPLICATED = {
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "2",
    "replica.lag.time.max.ms": "3000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
}
#: The settings of a member, by the protocol of its group.
MEMBERS: dict[str, dict[str, object]] = {
    "classic": {"heartbeat.interval.ms": 200},
    "consumer": {"group.protocol": "consumer"},
}


class Member:
    """A consumer in a group, and how often it was given partitions or lost them."""

    def __init__(self, servers: str, group: str, protocol: str) -> None:
        self.group = group
        self.changes: list[str] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **MEMBERS[protocol],
                **QUIET,
            }
        )
        self._consumer.subscribe(
            ["in"],
            on_assign=lambda _, given: self.changes.append(f"{len(given)} given"),
            on_revoke=lambda _, taken: self.changes.append(f"{len(taken)} taken"),
            on_lost=lambda _, lost: self.changes.append(f"{len(lost)} lost"),
        )

    def read(self, count: int) -> list[bytes]:
        """So many records, whose positions are committed."""
        found: list[Message] = []
        while len(found) < count:
            message = self._consumer.poll(PATIENCE_S)
            assert message is not None and not message.error(), message
            found.append(message)
        self._consumer.commit(asynchronous=False)
        return [value for message in found if (value := message.value()) is not None]

    def poll(self) -> None:
        """Let a moment pass."""
        assert self._consumer.poll(0.2) is None

    def close(self) -> None:
        self._consumer.close()


def produce(servers: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": servers, **QUIET})
    for value in values:
        producer.produce("in", value)
    assert producer.flush(PATIENCE_S) == 0


def create(nodes: Nodes, brokers: list[Node], at: Node) -> None:
    """Topic `in`, on one broker."""
    admin = AdminClient({"bootstrap.servers": at.address, **QUIET})
    topic = NewTopic("in", replica_assignment=[[at.node_id]], num_partitions=1)
    for made in admin.create_topics([topic]).values():
        made.result(PATIENCE_S)

    def is_shown() -> bool:
        shown = (
            AdminClient({"bootstrap.servers": b.address, **QUIET}).list_topics(timeout=30) for b in brokers
        )
        return all("in" in found.topics for found in shown)

    nodes.comes(is_shown, "the topic does not come")


def hand_over(nodes: Nodes, brokers: list[Node], leave: Callable[[Node], object]) -> None:
    """Members of both kinds of groups, and a transaction, go on while their coordinator leaves."""
    leaving, staying = brokers
    create(nodes, brokers, staying)
    servers = ",".join(broker.address for broker in brokers)
    groups = coordinated_by(nodes, staying, leaving.node_id, GROUP)
    members = [Member(servers, next(groups), protocol) for protocol in MEMBERS]
    produce(servers, [b"one", b"two"])
    for member in members:
        assert member.read(2) == [b"one", b"two"]
    transactional_id = next(coordinated_by(nodes, staying, leaving.node_id, TRANSACTION))
    producer = Producer({"bootstrap.servers": servers, "transactional.id": transactional_id, **QUIET})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce("in", b"three")
    assert producer.flush(PATIENCE_S) == 0
    leave(leaving)
    for member in members:
        nodes.comes(
            partial(is_coordinated_by, staying, GROUP, member.group),
            "the group does not find its coordinator",
        )
    producer.commit_transaction(PATIENCE_S)

    for member in members:
        assert member.read(1) == [b"three"]
        for _ in range(10):
            member.poll()
        assert member.changes == ["1 given"]
        member.close()
        consumer = Consumer({"bootstrap.servers": servers, "group.id": member.group, **QUIET})
        [position] = consumer.committed([TopicPartition("in", 0)], timeout=PATIENCE_S)
        consumer.close()
        assert position.offset == 3


def is_coordinated_by(node: Node, key_type: int, key: str) -> bool:
    return coordinator(node, key_type, key) == node.node_id


@pytest.mark.usefixtures("kafka_jars")
@pytest.mark.parametrize(
    ("leaving", "staying", "leave"),
    [
        pytest.param("ours", "apache", Node.kill, id="ours-apache-kill"),
        pytest.param("apache", "ours", Node.stop, id="apache-ours-stop"),
        pytest.param("ours", "apache", Node.stop, id="ours-apache-stop"),
        pytest.param("apache", "ours", Node.kill, id="apache-ours-kill"),
        pytest.param("ours", "ours", Node.stop, id="ours-ours-stop"),
        pytest.param("ours", "ours", Node.kill, id="ours-ours-kill"),
    ],
)
def test_what_one_broker_coordinates_goes_on_at_the_other(
    leaving: Software, staying: Software, leave: Callable[[Node], object], tmp_path: Path
) -> None:
    with Nodes(tmp_path, {1: "ours"}, properties=REPLICATED) as nodes:
        brokers = [nodes.add(11, leaving, roles="broker"), nodes.add(12, staying, roles="broker")]
        nodes.start(11, 12)
        hand_over(nodes, brokers, leave)

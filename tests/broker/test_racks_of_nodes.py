"""Consumers read from the replica in their rack (KIP-392), of three nodes in three racks: librdkafka's go on
while the leader answers nobody.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pykafka_broker.config.settings import RACK_AWARE_SELECTOR
from pykafka_broker.testing.apache.nodes import Nodes

TOPIC = "orders"
#: The first one is the preferred leader.
NODES = (1, 2, 3)
RECORDS = [b"%d" % number for number in range(50)]
PATIENCE_S = 60
PROPERTIES = {
    "replica.selector.class": RACK_AWARE_SELECTOR,
    # The leader stays the leader while it is frozen.
    "broker.session.timeout.ms": "600000",
    "replica.lag.time.max.ms": "600000",
}


def rack_of(node_id: int) -> str:
    return f"rack-{node_id}"


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    """Three nodes, each in a rack of its own."""
    made = Nodes(tmp_path, dict.fromkeys(NODES, "ours"), roles="broker,controller", properties=PROPERTIES)
    for node in made:
        node.properties["broker.rack"] = rack_of(node.node_id)
    with made:
        yield made


def read(consumer: Consumer) -> list[bytes | None]:
    """As many records as there are."""
    values: list[bytes | None] = []
    while len(values) < len(RECORDS):
        messages = consumer.consume(len(RECORDS) - len(values), timeout=PATIENCE_S)
        assert messages, f"{len(values)} of {len(RECORDS)} records are read"
        values += [message.value() for message in messages if message.error() is None]
    return values


def test_consumers_in_the_racks_of_followers_read_while_the_leader_answers_nobody(nodes: Nodes) -> None:
    addresses = ",".join(node.address for node in nodes)
    admin = AdminClient({"bootstrap.servers": addresses})
    asked = NewTopic(TOPIC, 1, replica_assignment=[list(NODES)])
    admin.create_topics([asked])[TOPIC].result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": addresses, "acks": "all"})
    for value in RECORDS:
        producer.produce(TOPIC, value)
    assert producer.flush(PATIENCE_S) == 0
    leader, *followers = NODES
    consumers = {
        node_id: Consumer(
            {"bootstrap.servers": addresses, "client.rack": rack_of(node_id), "group.id": "unused"}
        )
        for node_id in followers
    }
    for consumer in consumers.values():
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        assert read(consumer) == RECORDS

    os.kill(nodes[leader].pid, signal.SIGSTOP)
    try:
        for consumer in consumers.values():
            consumer.seek(TopicPartition(TOPIC, 0, 0))
            assert read(consumer) == RECORDS
    finally:
        os.kill(nodes[leader].pid, signal.SIGCONT)
    for consumer in consumers.values():
        consumer.close()

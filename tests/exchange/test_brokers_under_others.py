"""Brokers under controllers of the other kind: ours under Apache Kafka's, and Apache Kafka's under ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pykafka_broker.testing.apache.nodes import Node, Nodes, Software
from tests.torture.clients import QUIET, new_consumer

RECORDS = 50
PATIENCE_S = 30


def create(nodes: Nodes, broker: Node, topic: str) -> None:
    """Create a topic through the broker, which has its controller decide; return when it leads."""
    admin = AdminClient({"bootstrap.servers": broker.address, **QUIET})
    for made in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        try:
            made.result(PATIENCE_S)
        except KafkaException as refusal:
            # A broker asks again where a controller has died with its answer: the topic may be there.
            assert refusal.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS

    def leads() -> bool:
        found = admin.list_topics(timeout=PATIENCE_S).topics
        return topic in found and found[topic].partitions[0].leader == broker.node_id

    nodes.comes(leads, f"{topic} has no leader")


def exchange(broker: Node, topic: str) -> None:
    """Write records, and read them."""
    producer = Producer({"bootstrap.servers": broker.address, "enable.idempotence": True, **QUIET})
    for number in range(RECORDS):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(PATIENCE_S) == 0
    consumer = new_consumer(broker.address)
    consumer.assign([TopicPartition(topic, 0, 0)])
    read = consumer.consume(RECORDS, timeout=PATIENCE_S)
    assert [message.value() for message in read] == [b"%d" % number for number in range(RECORDS)]
    consumer.close()


@pytest.mark.usefixtures("kafka_jars")
@pytest.mark.parametrize(
    ("controllers", "software"),
    [({1: "apache"}, "ours"), ({1: "ours", 2: "ours", 3: "ours"}, "apache")],
    ids=["ours under apache", "apache under ours"],
)
def test_a_broker_serves_under_controllers_of_the_other_kind_whose_leader_is_killed(
    controllers: dict[int, Software], software: Software, tmp_path: Path
) -> None:
    with Nodes(tmp_path, controllers, dynamic=True) as nodes:
        broker = nodes.add(11, software, roles="broker")
        broker.start()
        create(nodes, broker, "before")
        exchange(broker, "before")
        killed = nodes[nodes.leader()]
        killed.kill()
        if len(controllers) == 1:
            killed.start()
        create(nodes, broker, "after")
        exchange(broker, "after")

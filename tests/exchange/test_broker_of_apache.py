"""A broker of Apache Kafka 4.3.1 under our controller follows our metadata log, and is one of the cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from pykafka_broker.client.blocking import BlockingConnection
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.log.disk.checkpoints import decode_meta_properties
from pykafka_broker.protocol.messages import create_topics as m
from pykafka_broker.protocol.messages import describe_quorum as q
from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterRequest
from pykafka_broker.testing.apache.broker import ApacheBroker
from pykafka_broker.testing.apache.tools import run_tool
from pykafka_broker.testing.processes import PykafkaNode
from tests.torture.clients import QUIET, new_consumer

PATIENCE_S = 60
OURS, APACHE = 1, 2


class BrokerOfApache(ApacheBroker):
    """A broker without a controller of its own."""

    def __init__(self, controller_address: str, cluster_id: str, folder: Path) -> None:
        super().__init__(
            {
                "process.roles": "broker",
                "node.id": str(APACHE),
                "controller.quorum.bootstrap.servers": controller_address,
                "broker.heartbeat.interval.ms": "500",
            },
            folder,
        )
        self.properties["listeners"] = self.properties["advertised.listeners"] = f"PLAINTEXT://{self.address}"
        self._cluster_id = cluster_id

    def format(self) -> None:
        run_tool("kafka.tools.StorageTool", "format", "-t", self._cluster_id, "-c", str(self.properties_file))


@pytest.fixture
def ours(kafka_jars: Path, tmp_path: Path) -> Iterator[PykafkaNode]:
    with PykafkaNode(
        {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}, tmp_path / "ours"
    ) as node:
        yield node


@pytest.fixture
def apache(ours: PykafkaNode, tmp_path: Path) -> Iterator[BrokerOfApache]:
    meta = decode_meta_properties((ours.data_dir / "meta.properties").read_bytes())
    assert meta.cluster_id is not None
    broker = BrokerOfApache(ours.controller_address, meta.cluster_id, tmp_path / "apache")
    broker.start()
    yield broker
    broker.kill()


def comes(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def serving(node: PykafkaNode) -> set[int]:
    """The brokers that are not fenced."""
    with closing(BlockingConnection(parse_address(node.address))) as connection:
        asked = DescribeClusterRequest(include_cluster_authorized_operations=False)
        return {broker.broker_id for broker in connection.send(asked).brokers}


def leaders(address: str, topic: str) -> dict[int, int]:
    found = AdminClient({"bootstrap.servers": address, **QUIET}).list_topics(topic, timeout=PATIENCE_S)
    return {number: partition.leader for number, partition in found.topics[topic].partitions.items()}


def both_lead(address: str) -> bool:
    return leaders(address, "orders") == {0: OURS, 1: APACHE}


def read(address: str, topic: str, count: int) -> set[bytes]:
    consumer = new_consumer(address)
    consumer.assign([TopicPartition(topic, number, 0) for number in (0, 1)])
    found: set[bytes] = set()
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < deadline:
        values = [message.value() for message in consumer.consume(100, timeout=0.5) if not message.error()]
        found |= {value for value in values if value is not None}
    consumer.close()
    return found


def test_a_broker_of_apache_joins_serves_leaves_and_dies(ours: PykafkaNode, apache: BrokerOfApache) -> None:
    comes(lambda: serving(ours) == {OURS, APACHE}, apache.log_tail())

    # A topic that clients of Apache's broker make: it passes the request on to our controller.
    with closing(BlockingConnection(parse_address(apache.address))) as connection:
        assignments = [
            m.CreatableReplicaAssignment(partition_index=0, broker_ids=[OURS]),
            m.CreatableReplicaAssignment(partition_index=1, broker_ids=[APACHE]),
        ]
        topic = m.CreatableTopic(
            name="orders", num_partitions=-1, replication_factor=-1, assignments=assignments, configs=[]
        )
        created = connection.send(
            m.CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=False)
        )
        assert [result.error_code for result in created.topics] == [0]
    for address in (ours.address, apache.address):
        comes(partial(both_lead, address), apache.log_tail())

    producer = Producer({"bootstrap.servers": ours.address, "enable.idempotence": True, **QUIET})
    for number in range(200):
        producer.produce("orders", b"%d" % number, partition=number % 2)
    assert producer.flush(PATIENCE_S) == 0
    everything = {b"%d" % number for number in range(200)}
    assert read(apache.address, "orders", 200) == everything

    # It follows the metadata log as an observer.
    with closing(BlockingConnection(parse_address(ours.address))) as connection:
        partition = q.DescribeQuorumRequestPartitionData(partition_index=0)
        topic_data = q.DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
        asked = q.DescribeQuorumRequest(topics=[topic_data])
        [quorum] = connection.send(asked).topics[0].partitions
        assert [voter.replica_id for voter in quorum.current_voters] == [OURS]
        assert APACHE in [observer.replica_id for observer in quorum.observers]

    # It stops in order, and its partition has no leader; it comes back, and has it again.
    apache.stop()
    assert serving(ours) == {OURS}
    assert leaders(ours.address, "orders") == {0: OURS, 1: -1}
    apache.start()
    comes(lambda: leaders(ours.address, "orders") == {0: OURS, 1: APACHE}, apache.log_tail())
    assert read(ours.address, "orders", 200) == everything

    # It is killed: our controller fences it when its session has run out.
    apache.kill()
    comes(lambda: serving(ours) == {OURS}, "still unfenced")
    assert leaders(ours.address, "orders") == {0: OURS, 1: -1}

"""A broker of Apache Kafka whose controller is ours: it registers, is unfenced, and serves."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from confluent_kafka import Consumer, Producer

from pykafka_broker.client.addresses import parse_address
from pykafka_broker.client.blocking import Connection
from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from pykafka_broker.testing.apache.broker import ApacheBroker
from pykafka_broker.testing.apache.tools import run_tool
from pykafka_broker.testing.processes import PykafkaNode

PATIENCE_S = 60
SMALL = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
}


class ApacheBrokerBelow(ApacheBroker):
    """A broker without a controller of its own."""

    def __init__(self, controller: PykafkaNode, folder: Path) -> None:
        super().__init__(
            {
                "process.roles": "broker",
                "node.id": "2",
                "controller.quorum.bootstrap.servers": controller.controller_address,
                **SMALL,
            },
            folder,
        )
        self.properties["listeners"] = self.properties["advertised.listeners"] = f"PLAINTEXT://{self.address}"
        self._cluster_id = described(controller).cluster_id

    def format(self) -> None:
        options = ("-t", self._cluster_id, "-c", str(self.properties_file))
        run_tool("kafka.tools.StorageTool", "format", *options)


def described(node: PykafkaNode, *, fenced: bool = False) -> DescribeClusterResponse:
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=False, include_fenced_brokers=fenced
    )
    with closing(Connection(parse_address(node.address), PATIENCE_S)) as connection:
        answer = connection.send(request, 2)
    assert isinstance(answer, DescribeClusterResponse)
    return answer


def wait_for_brokers(node: PykafkaNode, *wanted: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while {broker.broker_id for broker in described(node).brokers} != set(wanted):
        assert time.monotonic() < deadline, described(node, fenced=True)
        time.sleep(0.1)


def topics(broker: ApacheBroker, *arguments: str) -> str:
    return run_tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", broker.address, *arguments)


def test_a_broker_of_apache_kafka_serves_below_our_controller(kafka_jars: Path, tmp_path: Path) -> None:
    with PykafkaNode(SMALL, tmp_path / "ours") as ours:
        with ApacheBrokerBelow(ours, tmp_path / "apache") as apache:
            wait_for_brokers(ours, 1, 2)

            # The broker passes it on in an envelope.
            created = topics(apache, "--create", "--topic", "orders", "--replica-assignment", "2,1")
            assert "Created topic orders." in created
            shown = topics(apache, "--describe", "--topic", "orders")
            assert "Partition: 0\tLeader: 2\tReplicas: 2\tIsr: 2" in shown, shown
            assert "Partition: 1\tLeader: 1\tReplicas: 1\tIsr: 1" in shown, shown

            producer = Producer({"bootstrap.servers": apache.address, "enable.idempotence": True})
            for number in range(100):
                producer.produce("orders", b"%d" % number, partition=number % 2)
            assert producer.flush(PATIENCE_S) == 0
            assert read(ours.address, 100) == {b"%d" % number for number in range(100)}

        # It has stopped in good order: nothing that it led has a leader now, and it is not listed any more.
        wait_for_brokers(ours, 1)
        assert [b.broker_id for b in described(ours, fenced=True).brokers if b.is_fenced] == [2]


def read(address: str, count: int) -> set[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    values: set[bytes] = set()
    deadline = time.monotonic() + PATIENCE_S
    while len(values) < count and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            values.add(message.value() or b"")
    consumer.close()
    return values

"""Transactions of real clients over partitions and coordinators on several brokers, which are killed in the
middle: brokers of ours, and of both kinds in one cluster.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pykafka_broker.testing.apache.nodes import Node, Nodes, Software
from pykafka_broker.testing.apache.tools import command
from tests.exchange.coordinators import GROUP, TRANSACTION, coordinated_by, coordinator
from tests.torture.clients import QUIET

pytestmark = pytest.mark.slow

PATIENCE_S = 60
#: Several partitions of the coordinators' topics, so that each broker coordinates something.
SPREAD = {"offsets.topic.num.partitions": "6", "transaction.state.log.num.partitions": "6"}
#: All of it on three brokers.
REPLICATED = {
    **SPREAD,
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
    "replica.lag.time.max.ms": "3000",
}
TRANSACTIONS = 6
#: Every third transaction is aborted.
ABORTED = (2, 5)
#: The middle of this transaction is where a node is killed.
INTERRUPTED = 3

Interrupt = Callable[[], None]
#: Runs transactions: `client(servers, transactional_id, partitions, interrupt)`.
Client = Callable[[str, str, int, Interrupt], None]


def group_of(number: int) -> str:
    """Each transaction has a group of its own: librdkafka waits for ever for the coordinator of a group that
    it has used before, once that broker has gone from the metadata (librdkafka's issues 5511 and 5456).
    """
    return f"readers-{number}"


def create(nodes: Nodes, brokers: list[Node], replicas: int) -> None:
    """Topic `in`, and topic `out` with a partition on each broker; return when all brokers show them."""
    ids = [broker.node_id for broker in brokers]
    placed = [(ids * 2)[first : first + replicas] for first in range(len(ids))]
    admin = AdminClient({"bootstrap.servers": brokers[0].address, **QUIET})
    topics = [
        NewTopic("in", replica_assignment=placed[:1], num_partitions=1),
        NewTopic("out", replica_assignment=placed, num_partitions=len(ids)),
    ]
    for made in admin.create_topics(topics).values():
        made.result(PATIENCE_S)

    def is_shown() -> bool:
        shown = (
            AdminClient({"bootstrap.servers": b.address, **QUIET}).list_topics(timeout=30) for b in brokers
        )
        return all({"in", "out"} <= found.topics.keys() for found in shown)

    nodes.comes(is_shown, "the topics do not come")


def with_librdkafka(servers: str, transactional_id: str, partitions: int, interrupt: Interrupt) -> None:
    producer = Producer({"bootstrap.servers": servers, "transactional.id": transactional_id, **QUIET})
    producer.init_transactions(PATIENCE_S)
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        for partition in range(partitions):
            producer.produce("out", f"{transactional_id}-{number}-{partition}", partition=partition)
        assert producer.flush(PATIENCE_S) == 0
        if number == INTERRUPTED:
            interrupt()
        at = [TopicPartition("in", 0, number + 1)]
        consumer = Consumer({"bootstrap.servers": servers, "group.id": group_of(number), **QUIET})
        producer.send_offsets_to_transaction(at, consumer.consumer_group_metadata(), PATIENCE_S)
        consumer.close()
        if number in ABORTED:
            producer.abort_transaction(PATIENCE_S)
        else:
            producer.commit_transaction(PATIENCE_S)


def with_kafka_python(servers: str, transactional_id: str, partitions: int, interrupt: Interrupt) -> None:
    import kafka

    producer = kafka.KafkaProducer(bootstrap_servers=servers.split(","), transactional_id=transactional_id)
    producer.init_transactions()
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        for partition in range(partitions):
            value = f"{transactional_id}-{number}-{partition}".encode()
            producer.send("out", value, partition=partition)
        producer.flush(PATIENCE_S)
        if number == INTERRUPTED:
            interrupt()
        at = {kafka.TopicPartition("in", 0): kafka.OffsetAndMetadata(number + 1, "", -1)}
        producer.send_offsets_to_transaction(at, group_of(number))
        if number in ABORTED:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()


def read_committed(servers: str, topic: str, partitions: int) -> list[str]:
    """Every record that a read_committed consumer sees."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "checker",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            **QUIET,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    values: list[str] = []
    ends = 0
    while ends < partitions:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "the end does not come"
        if message.error():
            ends += 1
        else:
            value = message.value()
            assert value is not None
            values.append(value.decode())
    consumer.close()
    return values


def expected(transactional_ids: list[str], partitions: int) -> Iterator[str]:
    for transactional_id in transactional_ids:
        for number in range(TRANSACTIONS):
            if number not in ABORTED:
                for partition in range(partitions):
                    yield f"{transactional_id}-{number}-{partition}"


def committed(servers: str, group: str) -> int | None:
    """The position of a group; None if it has none."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, **QUIET})
    [position] = consumer.committed([TopicPartition("in", 0)], timeout=PATIENCE_S)
    consumer.close()
    return None if position.offset == OFFSET_INVALID else int(position.offset)


def kill(nodes: Nodes, brokers: list[Node], victim: Node) -> None:
    """Kill a broker, and start it again."""
    victim.kill()
    victim.start()


def freeze(nodes: Nodes, brokers: list[Node], victim: Node) -> None:
    """Stop a broker in its tracks until the others count it as gone; it goes on where it was."""
    other = next(broker for broker in brokers if broker is not victim)
    admin = AdminClient({"bootstrap.servers": other.address, **QUIET})
    os.kill(victim.pid, signal.SIGSTOP)
    try:
        nodes.comes(
            lambda: victim.node_id not in admin.list_topics(timeout=30).brokers, "the broker is not missed"
        )
    finally:
        os.kill(victim.pid, signal.SIGCONT)


def run(
    nodes: Nodes,
    brokers: list[Node],
    clients: list[Client],
    harm: Callable[[Nodes, list[Node], Node], None],
    replicas: int = 1,
) -> None:
    """Each client, with a transactional id for each broker, which is harmed in its midst."""
    create(nodes, brokers, replicas)
    servers = ",".join(broker.address for broker in brokers)

    def interrupt(victim: Node) -> None:
        harm(nodes, brokers, victim)
        # After three refusals librdkafka would look for the coordinator no more, until a connection changes.
        nodes.comes(
            lambda: all(coordinator(broker, GROUP, group_of(INTERRUPTED)) >= 0 for broker in brokers),
            "the group has no coordinator",
        )

    ids: list[str] = []
    for client in clients:
        for victim in brokers:
            ids.append(f"{client.__name__}-{victim.node_id}")
            client(servers, ids[-1], len(brokers), partial(interrupt, victim))
    assert sorted(read_committed(servers, "out", len(brokers))) == sorted(expected(ids, len(brokers)))
    positions = {number: committed(servers, group_of(number)) for number in range(TRANSACTIONS)}
    assert positions == {number: None if number in ABORTED else number + 1 for number in range(TRANSACTIONS)}


@pytest.mark.parametrize(
    ("properties", "replicas"),
    [
        pytest.param(SPREAD, 1, id="one replica"),
        pytest.param(REPLICATED, 3, id="three replicas"),
    ],
)
@pytest.mark.parametrize(
    ("harm", "clients"),
    [(kill, [with_librdkafka, with_kafka_python]), (freeze, [with_librdkafka])],
    ids=["killed", "frozen until they are fenced"],
)
def test_transactions_over_brokers_of_ours_that_are(
    harm: Callable[[Nodes, list[Node], Node], None],
    clients: list[Client],
    properties: dict[str, str],
    replicas: int,
    tmp_path: Path,
) -> None:
    with Nodes(tmp_path, {1: "ours"}, properties=properties) as nodes:
        brokers = [nodes.add(node_id, "ours", roles="broker") for node_id in (11, 12, 13)]
        nodes.start(11, 12, 13)
        run(nodes, brokers, clients, harm, replicas)


@pytest.mark.usefixtures("kafka_jars")
@pytest.mark.parametrize(
    ("properties", "replicas"),
    [
        pytest.param(SPREAD, 1, id="one replica"),
        pytest.param(REPLICATED, 3, id="three replicas"),
    ],
)
def test_transactions_over_brokers_of_both_kinds_that_are_killed(
    properties: dict[str, str], replicas: int, tmp_path: Path
) -> None:
    with Nodes(tmp_path, {1: "ours"}, properties=properties) as nodes:
        kinds: dict[int, Software] = {11: "ours", 12: "apache", 13: "ours"}
        brokers = [nodes.add(node_id, software, roles="broker") for node_id, software in kinds.items()]
        nodes.start(*kinds)
        run(nodes, brokers, [with_librdkafka], kill, replicas)


@pytest.mark.usefixtures("kafka_jars")
def test_apaches_copier_adds_partitions_by_writing_at_brokers_of_both_kinds(tmp_path: Path) -> None:
    count = 400
    with Nodes(tmp_path, {1: "ours"}, properties=SPREAD) as nodes:
        brokers = [nodes.add(11, "ours", roles="broker"), nodes.add(12, "apache", roles="broker")]
        nodes.start(11, 12)
        create(nodes, brokers, 1)
        servers = ",".join(broker.address for broker in brokers)
        producer = Producer({"bootstrap.servers": servers, **QUIET})
        for number in range(count):
            producer.produce("in", str(number))
        assert producer.flush(PATIENCE_S) == 0
        for broker in brokers:
            transactional_id = next(coordinated_by(nodes, brokers[0], broker.node_id, TRANSACTION))
            copying = subprocess.run(
                command(
                    "org.apache.kafka.tools.TransactionalMessageCopier",
                    *("--broker-list", servers, "--input-topic", "in", "--output-topic", "out"),
                    *("--input-partition", "0", "--transactional-id", transactional_id),
                    *("--consumer-group", transactional_id, "--transaction-size", "40"),
                    *("--enable-random-aborts", "--use-group-metadata"),
                ),
                capture_output=True,
                timeout=120,
                check=False,
            )
            assert copying.returncode == 0, copying.stdout[-2_000:]
        copied = read_committed(servers, "out", len(brokers))
        assert sorted(copied, key=int) == sorted([str(number) for number in range(count)] * 2, key=int)

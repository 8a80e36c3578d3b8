"""Partitions move between log directories as Apache Kafka 4.3.1 moves them: its own Admin client and
`kafka-log-dirs` see the same with both brokers, and a move that one of them has begun the other brings to its
end.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from pykafka_broker.testing.apache.tools import SHORT_LIVED, command, run_tool
from tests.exchange.node import Node, Software
from tests.torture.clients import QUIET, new_consumer

PROGRAM = Path(__file__).with_name("MoveReplica.java")
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
RECORDS = 4_000
VALUE_BYTES = 1_000
PATIENCE_S = 60
OTHER: dict[Software, Software] = {"apache": "ours", "ours": "apache"}


@pytest.fixture
def node(kafka_jars: Path, tmp_path: Path) -> Iterator[Node]:
    """A node with two log directories."""
    node = Node(tmp_path, {"log.dirs": f"{tmp_path}/a,{tmp_path}/b"})
    node.data_dir = tmp_path / "a"
    yield node
    node.kill()


def admin(node: Node) -> AdminClient:
    return AdminClient({"bootstrap.servers": node.address, **QUIET})


def fill(node: Node) -> None:
    client = admin(node)
    client.create_topics([NewTopic("orders", 1, 1)])["orders"].result(PATIENCE_S)
    # Idempotent: a batch that is refused just after the topic was made must not come again behind others.
    settings = {"batch.size": 50_000, "enable.idempotence": True}
    producer = Producer({"bootstrap.servers": node.address, **settings, **QUIET})
    for number in range(RECORDS):
        producer.produce("orders", b"%06d" % number + bytes(VALUE_BYTES), partition=0)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def assert_all_there(node: Node) -> None:
    consumer = new_consumer(node.address)
    consumer.assign([TopicPartition("orders", 0, 0)])
    found: list[int] = []
    errors: list[str] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < RECORDS and time.monotonic() < deadline:
        messages = consumer.consume(1000, timeout=0.5)
        found += [int((message.value() or b"")[:6]) for message in messages if message.error() is None]
        errors += [str(message.error()) for message in messages if message.error() is not None]
    consumer.close()
    assert (found, errors) == (list(range(RECORDS)), [])


def place(node: Node) -> Path:
    """The folder of the partition: there is one."""
    [folder] = [path for name in "ab" for path in (node.folder / name).glob("orders-0")]
    return folder


def target(node: Node) -> Path:
    """The directory in which the partition is not."""
    return node.folder / ("b" if place(node).parent.name == "a" else "a")


def limit(node: Node, bytes_per_second: int) -> None:
    entry = ConfigEntry(RATE, str(bytes_per_second), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    client = admin(node)
    for done in client.incremental_alter_configs([resource]).values():
        done.result(PATIENCE_S)


def move(node: Node, topic: str, directory: Path, until: str = "wait") -> list[str]:
    """What Apache Kafka's Admin client makes of it."""
    program = command(str(PROGRAM), node.address, topic, str(directory), until, jvm_options=SHORT_LIVED)
    run = subprocess.run(program, capture_output=True, text=True, check=False, timeout=2 * PATIENCE_S)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def described(node: Node) -> dict[str, list[tuple[str, int, bool, bool]]]:
    """What `kafka-log-dirs` shows of the topic: (partition, lag, is future, has a size) by directory."""
    tool = "org.apache.kafka.tools.LogDirsCommand"
    printed = run_tool(tool, "--bootstrap-server", node.address, "--describe", "--topic-list", "orders")
    [broker] = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))["brokers"]
    return {
        Path(log_dir["logDir"]).name: [
            (p["partition"], p["offsetLag"], p["isFuture"], p["size"] > RECORDS * VALUE_BYTES)
            for p in log_dir["partitions"]
        ]
        for log_dir in broker["logDirs"]
    }


@pytest.mark.parametrize("software", ["apache", "ours"])
def test_apaches_admin_client_moves_a_partition(node: Node, software: Software) -> None:
    with node.running(software):
        fill(node)
        source, wanted = place(node).parent, target(node)
        assert move(node, "orders", node.folder / "c", "begin") == ["LogDirNotFoundException"]
        assert move(node, "missing", wanted, "begin") == ["UnknownTopicOrPartitionException"]
        assert move(node, "orders", source) == ["begun", f"in {source}"]
        assert move(node, "orders", wanted) == ["begun", f"in {wanted}"]
        assert described(node) == {source.name: [], wanted.name: [("orders-0", 0, False, True)]}
        assert_all_there(node)
    assert place(node).parent == wanted
    with node.running(OTHER[software]):
        assert_all_there(node)
    assert place(node).parent == wanted


@pytest.mark.parametrize(
    ("software", "is_killed"),
    [
        pytest.param("apache", True, id="apache-killed"),
        pytest.param("ours", True, id="ours-killed"),
        pytest.param("apache", False, id="apache-stopped"),
        pytest.param("ours", False, id="ours-stopped"),
    ],
)
def test_a_move_begun_by_one_is_brought_to_its_end_by_the_other(
    node: Node, software: Software, is_killed: bool
) -> None:
    node.run(software)
    limit(node, 1_000)
    fill(node)
    wanted = target(node)
    assert move(node, "orders", wanted, "begin") == ["begun"]
    deadline = time.monotonic() + PATIENCE_S
    while not any(log.stat().st_size for log in wanted.glob("orders-0.*-future/*.log")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    if is_killed:
        node.kill()
    else:
        node.stop()

    with node.running(OTHER[software]):
        limit(node, 10**9)
        assert move(node, "orders", wanted) == ["begun", f"in {wanted}"]
        assert_all_there(node)
    assert place(node).parent == wanted

"""A topic that was really compacted goes to the other broker with every record that is left, at its offset.

Its segments are small, so that the cleaner of either broker rewrites most of them: offsets are missing
between segments, between batches and in them, transactions have lost records and markers. Nothing of that is
damage, not after kill -9 either, nor when the topic's policy is `delete` afterwards.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from tests.cli.conftest import run_command
from tests.exchange.contents import QUIET, TIMEOUT_S, Partition, new_consumer, records_of
from tests.exchange.filling import alter, producer, transactional_producer
from tests.exchange.node import Node

TOPIC = "compacted"
CONFIG = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "20000",
    "index.interval.bytes": "500",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "1",
}
SOON = {
    "log.cleaner.backoff.ms": "200",
    "log.initial.task.delay.ms": "200",
}
RECORDS = 1_000
TRANSACTIONS = 12
KEYS = 40
ISOLATION_LEVELS = ("read_committed", "read_uncommitted")


@pytest.fixture
def node(kafka_jars: Path, tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path, SOON)
    yield node
    node.kill()


def folder(node: Node) -> Path:
    return node.data_dir / f"{TOPIC}-0"


def fill(node: Node, seed: int, records: int = RECORDS) -> None:
    """Records and tombstones of few keys, then transactions, every third of them aborted."""
    dice = random.Random(seed)
    write = producer(node.address, **{"batch.num.messages": 7, "linger.ms": 5})
    for number in range(records):
        value = None if number % 23 == 0 else b"%d-%d" % (seed, number) + bytes(70)
        write.produce(TOPIC, value, b"%d" % dice.randrange(KEYS))
    assert write.flush(TIMEOUT_S) == 0
    teller = transactional_producer(node.address, f"teller-{seed}")
    for number in range(TRANSACTIONS):
        teller.begin_transaction()
        for part in range(8):
            teller.produce(TOPIC, b"%d.%d" % (number, part) + bytes(70), b"account %d" % dice.randrange(20))
        assert teller.flush(TIMEOUT_S) == 0
        if number % 3 == 2:
            teller.abort_transaction(TIMEOUT_S)
        else:
            teller.commit_transaction(TIMEOUT_S)


def cleaned_offset(node: Node) -> int:
    """What the checkpoint says, which both brokers write when a round is over."""
    path = node.data_dir / "cleaner-offset-checkpoint"
    entries = path.read_text().splitlines()[2:] if path.exists() else []
    return next((int(line.split()[2]) for line in entries if line.startswith(f"{TOPIC} 0 ")), 0)


def bases(node: Node) -> list[int]:
    return sorted(int(path.stem) for path in folder(node).glob("*.log"))


def wait_until_cleaned(node: Node) -> None:
    """Until all but the active segment is clean."""
    deadline = time.monotonic() + TIMEOUT_S
    while not 0 < bases(node)[-1] == cleaned_offset(node):
        assert time.monotonic() < deadline, (bases(node), cleaned_offset(node))
        time.sleep(0.1)


def set_policy(node: Node, policy: str) -> None:
    topic = ConfigResource(ResourceType.TOPIC, TOPIC)
    alter(AdminClient({"bootstrap.servers": node.address, **QUIET}), topic, "cleanup.policy", policy)


def fill_and_clean(node: Node, seed: int) -> None:
    """Each segment is rewritten when it is full, and for itself: one of which nothing is left stays empty."""
    set_policy(node, "delete")
    fill(node, seed)
    set_policy(node, "compact")
    wait_until_cleaned(node)


def served(node: Node) -> list[Partition]:
    """As readers of either isolation level see it.

    Not where a timestamp leads: for one before the last change of a segment that compaction has emptied
    Apache Kafka finds nothing.
    """
    found = []
    for level in ISOLATION_LEVELS:
        consumer = new_consumer(node.address, level)
        found.append(records_of(consumer, TOPIC, 0))
        consumer.close()
    return found


def assert_has_gaps(node: Node, found: list[Partition]) -> None:
    """Of most keys the closed segments hold one record."""
    closed_end = bases(node)[-1]
    emptied = [base for base in bases(node) if (folder(node) / f"{base:020d}.log").stat().st_size == 0]
    assert len(emptied) > 1
    left = [record.offset for record in found[1].records if record.offset < closed_end]
    assert closed_end > RECORDS * 3 // 4
    assert 0 < len(left) <= KEYS + 20 + 2, "a few more, where a tombstone or a last record must stay"


def assert_nothing_is_fenced(node: Node) -> None:
    assert [line for line in node.log_lines() if "damaged" in line] == []
    assert list(folder(node).glob("*.damaged")) == []


def notes(node: Node) -> list[int]:
    return [int(path.name.split(".")[0]) for path in folder(node).glob("*.dense.deleted")]


def end(node: Node, is_killed: bool) -> None:
    node.kill() if is_killed else node.stop()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("is_killed", [pytest.param(False, id="stopped"), pytest.param(True, id="killed")])
def test_compacted_topics_are_exchanged(node: Node, is_killed: bool) -> None:
    node.run("ours")
    admin = AdminClient({"bootstrap.servers": node.address, **QUIET})
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=CONFIG)])[TOPIC].result(TIMEOUT_S)
    fill_and_clean(node, 1)
    written = served(node)
    assert_has_gaps(node, written)
    assert notes(node) == [cleaned_offset(node)]
    end(node, is_killed)

    node.run("apache")
    assert served(node) == written
    assert notes(node) == [], "it vouches for nothing that another cleaner does"
    fill_and_clean(node, 2)
    written = served(node)
    assert_has_gaps(node, written)
    end(node, is_killed)

    node.run("ours")
    assert served(node) == written
    assert_nothing_is_fenced(node)
    set_policy(node, "delete")
    assert served(node) == written
    fill(node, 3, 100)
    written = served(node)
    end(node, is_killed)

    node.run("ours")
    assert served(node) == written
    assert_nothing_is_fenced(node)
    node.stop()
    verified = run_command("log", "verify", str(folder(node)))
    assert verified.status == 0, verified.out

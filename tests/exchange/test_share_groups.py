"""Share groups go from Apache Kafka 4.3.1 to our broker and back while they are at work: after each kill -9
members keep their epochs, what was acknowledged is not delivered again, nothing is lost, and delivery counts
go on from where they were written down last.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from confluent_kafka import AcknowledgeType, Message, ShareConsumer
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.retries import RETRIABLE
from pykafka_broker.client.core.share_group import Acknowledgement, Acquired, Membership, ShareSession
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.share_group_describe import DescribedGroup, ShareGroupDescribeRequest
from pykafka_broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from tests.exchange.contents import QUIET, TIMEOUT_S
from tests.exchange.filling import alter, create_topics, producer
from tests.exchange.node import Node, Software

TOPIC, GROUP = "orders", "workers"
#: Kafka's default.
DELIVERY_LIMIT = 5
#: No lock and no session ends by itself, however busy the machine is.
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.snapshot.update.records.per.snapshot": "10",
    "group.share.max.record.lock.duration.ms": "3600000",
    "group.share.record.lock.duration.ms": "3600000",
    "group.share.max.session.timeout.ms": "3600000",
    "group.share.session.timeout.ms": "3600000",
    "group.share.assignment.interval.ms": "0",
}
EXCHANGES: tuple[Software, ...] = ("ours", "apache")

Found = TypeVar("Found")


@pytest.fixture
def node(kafka_jars: Path, tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path, SETTINGS)
    yield node
    node.kill()


class Worker:
    """A member of the group that lives longer than the brokers."""

    def __init__(self, node: Node, name: str) -> None:
        self.node = node
        self.membership = Membership(GROUP, name, [TOPIC])
        self.client: Client
        self.session: ShareSession

    @contextmanager
    def connected(self) -> Iterator[Worker]:
        """To a broker that has just started."""
        with Client(self.node.address) as self.client:
            asked = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
            patiently(
                lambda: not self.client.send(asked).coordinators[0].error_code, "there is a coordinator"
            )
            self.session = ShareSession(self.membership, self.client.topic(TOPIC).topic_id)
            yield self

    def beat(self) -> int:
        """Its epoch after a heartbeat."""

        def answered() -> bool:
            answer: ShareGroupHeartbeatResponse = self.client.send(self.membership.heartbeat())
            if answer.error_code in RETRIABLE:
                return False
            self.membership.answered(answer)
            return True

        patiently(answered, "a heartbeat is answered")
        return self.membership.epoch

    def join(self) -> None:
        def has_partitions() -> bool:
            self.beat()
            return bool(self.membership.assigned)

        patiently(has_partitions, "it has its partition")

    def fetch(self, max_records: int = 500) -> list[Acquired]:
        """What it acquires now, after it has acknowledged gaps; nothing while the partition is loaded."""
        limits: Any = {"max_wait_ms": 500, "partition_max_bytes": 1 << 20}
        request = self.session.fetch([0], max_records=max_records, acquire_mode=1, **limits)
        return self.session.fetched(self.client.send(request))

    def acknowledge(self, how: dict[int, Acknowledgement]) -> None:
        for offset, each in how.items():
            self.session.acknowledge(0, offset, each)
        self.session.acknowledged(self.client.send(self.session.acknowledging()))
        assert not self.session.refused

    def described(self) -> DescribedGroup:
        """The group, its members by name: they come in the order of a hash map."""
        asked = ShareGroupDescribeRequest(group_ids=[GROUP], include_authorized_operations=False)
        group: DescribedGroup = self.client.send(asked).groups[0]
        group.members.sort(key=lambda member: member.member_id)
        return group


class Ledger:
    """What became of each record: how often it was delivered as far as that was written down, or done."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.counts: dict[int, int] = {}
        self.done: set[int] = set()
        self.held: set[int] = set()

    def write(self, node: Node, number: int) -> None:
        first = len(self.counts)
        write(node, [b"%d" % offset for offset in range(first, first + number)])
        self.counts.update(dict.fromkeys(range(first, first + number), 0))

    def delivered(self, acquired: list[Acquired]) -> None:
        for each in acquired:
            offset = each.record.offset
            assert offset not in self.done, f"{offset} was acknowledged, and is delivered again"
            assert offset not in self.held, f"{offset} is held, and is delivered again"
            assert each.record.value == b"%d" % offset
            assert each.delivery_count == self.counts[offset] + 1, each

    def choose(self, acquired: list[Acquired]) -> dict[int, Acknowledgement]:
        """What becomes of these; those that are left out are held."""
        kinds = [*Acknowledgement][1:]
        chosen = {}
        for each in acquired:
            offset = each.record.offset
            how = self.dice.choice([*kinds, Acknowledgement.RELEASE, None])
            if how is None:
                self.held.add(offset)
                continue
            chosen[offset] = how
            self.counts[offset] = each.delivery_count
            if how is not Acknowledgement.RELEASE or each.delivery_count == DELIVERY_LIMIT:
                self.done.add(offset)
        return chosen


@pytest.mark.timeout(600)
def test_a_group_at_work_goes_on_with_what_was_not_acknowledged(node: Node) -> None:
    ledger = Ledger(seed=11)
    ann, ben = Worker(node, "ann"), Worker(node, "ben")
    node.run("apache")
    create_topics(node.address, TOPIC)
    begin_with_the_first_record(node)
    with ann.connected(), ben.connected():
        ann.join()
        ben.join()
        ledger.write(node, 20)
        # Ben is not heard of any more: what he has acquired comes to others after the exchange.
        ledger.delivered(taken := patiently(lambda: ben.fetch(max_records=4), "ben has records"))
        ledger.held.update(each.record.offset for each in taken)
        work(ann, ledger)
        assert ledger.held and ledger.done and max(ledger.counts.values()) > 1
        patiently(lambda: ann.beat() == ben.membership.epoch, "both have the same epoch")
        epoch, before = ann.membership.epoch, ann.described()
        assert {member.member_id for member in before.members} == {"ann", "ben"}
        node.kill()

    for software in EXCHANGES:
        ledger.held.clear()
        node.run(software)
        with ann.connected():
            assert ann.beat() == epoch
            assert ann.described() == before
            ledger.write(node, 10)
            work(ann, ledger)
            node.kill()

    ledger.held.clear()
    node.run("ours")
    with ann.connected():
        while left := set(ledger.counts) - ledger.done:
            ledger.delivered(acquired := patiently(ann.fetch, f"these come: {sorted(left)}"))
            ann.acknowledge({each.record.offset: Acknowledgement.ACCEPT for each in acquired})
            ledger.done.update(each.record.offset for each in acquired)
        assert not ann.fetch()
    assert not node.complaints()


def work(worker: Worker, ledger: Ledger) -> None:
    """Fetch and acknowledge until every record is done or held."""
    while set(ledger.counts) - ledger.done - ledger.held:
        ledger.delivered(acquired := patiently(worker.fetch, "something comes"))
        worker.acknowledge(ledger.choose(acquired))


class Acceptor:
    """A consumer of librdkafka, and the offsets that it has accepted."""

    def __init__(self, consumer: ShareConsumer) -> None:
        self.consumer = consumer
        self.accepted: set[int] = set()

    def polled(self) -> list[Message]:
        return list(self.consumer.poll(0.5))

    def accepts(self, count: int) -> bool:
        """Accept what comes; whether that makes so many."""
        offsets = [_offset(message) for message in self.polled()]
        assert not self.accepted.intersection(offsets), "acknowledged, and delivered again"
        for offset in offsets:
            self.consumer.acknowledge_offset(TOPIC, 0, offset, AcknowledgeType.ACCEPT)
        if offsets and not any(self.consumer.commit_sync(TIMEOUT_S).values()):
            self.accepted.update(offsets)
        return len(self.accepted) == count


def _offset(message: Message) -> int:
    assert message.error() is None, message.error()
    offset = message.offset()
    assert offset is not None
    return offset


@pytest.mark.timeout(600)
def test_a_consumer_of_librdkafka_works_through_exchanges(node: Node) -> None:
    node.run("apache")
    create_topics(node.address, TOPIC)
    begin_with_the_first_record(node)
    settings = {
        "bootstrap.servers": node.address,
        "group.id": GROUP,
        "share.acknowledgement.mode": "explicit",
        # It is not polled while a broker starts.
        "max.poll.interval.ms": 3_600_000,
        **QUIET,
    }
    with ShareConsumer(settings) as consumer:
        consumer.subscribe([TOPIC])
        acceptor = Acceptor(consumer)
        write(node, [b"before"] * 50)
        patiently(partial(acceptor.accepts, 50), "all are accepted")
        for number, software in enumerate(EXCHANGES, start=1):
            write(node, [b"held"] * 50)
            held = patiently(acceptor.polled, "it holds records")
            node.kill()
            node.run(software)
            for message in held:
                consumer.acknowledge(message, AcknowledgeType.RELEASE)
            write(node, [b"after"] * 50)
            patiently(partial(acceptor.accepts, 50 + number * 100), "all are accepted")


def begin_with_the_first_record(node: Node) -> None:
    admin = AdminClient({"bootstrap.servers": node.address, **QUIET})
    alter(admin, ConfigResource(ResourceType.GROUP, GROUP), "share.auto.offset.reset", "earliest")


def write(node: Node, values: list[bytes]) -> None:
    written = producer(node.address)
    for value in values:
        written.produce(TOPIC, value)
    assert written.flush(TIMEOUT_S) == 0


def patiently(ask: Callable[[], Found], what: str) -> Found:
    """The first answer that is anything, asked for while brokers and partitions are loaded."""
    until_s = time.monotonic() + TIMEOUT_S
    while not (found := _tried(ask)):
        assert time.monotonic() < until_s, f"in vain until {what}"
        time.sleep(0.05)
    return found


def _tried(ask: Callable[[], Found]) -> Found | None:
    try:
        return ask()
    except KafkaError as error:
        if error.code not in RETRIABLE and error.code is not ErrorCode.SHARE_SESSION_NOT_FOUND:
            raise
        return None

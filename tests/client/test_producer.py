"""The producer against brokers: what it commits is there once, whatever is killed meanwhile."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator

import pytest
from kafka import KafkaConsumer, TopicPartition

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.client.core.offset import CommittedOffset
from pykafka_broker.client.core.producer_state import ProducerFenced
from pykafka_broker.client.producer import Producer
from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.testing.processes import PykafkaBroker

pytestmark = pytest.mark.acknowledged

TRANSACTION_VERSIONS = pytest.mark.parametrize("transaction_version", [1, 2])


@pytest.fixture(scope="module")
def broker() -> Iterator[PykafkaBroker]:
    with PykafkaBroker({"offsets.topic.num.partitions": "2"}) as process:
        yield process


@pytest.fixture
def client(broker: PykafkaBroker) -> Iterator[Client]:
    with Client(broker.address) as client:
        yield client


@pytest.fixture
def topic(client: Client, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"\W", "-", request.node.name)
    wanted = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    [result] = client.send(CreateTopicsRequest(topics=[wanted])).topics
    check(result.error_code)
    return name


def batch(*values: bytes) -> bytes:
    return build_batch([(5, None, value, []) for value in values])


def committed_values(broker: PykafkaBroker, topic: str) -> list[bytes]:
    partition = TopicPartition(topic, 0)
    with KafkaConsumer(
        bootstrap_servers=broker.address, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([partition])
        [end] = consumer.end_offsets([partition]).values()
        found = []
        while consumer.position(partition) < end:
            for records in consumer.poll(timeout_ms=200).values():
                found += [record.value for record in records]
    return found


def transactional(client: Client, transactional_id: str, transaction_version: int = 2) -> Producer:
    """The level of the cluster is 2; a producer that takes it for a lower one speaks as older ones do."""
    producer = Producer(client, transactional_id, delivery_timeout_s=60)
    producer.initialise()
    assert producer.state.transaction_version == 2
    producer.state.transaction_version = transaction_version
    return producer


@TRANSACTION_VERSIONS
def test_records_and_offsets_are_committed_together_and_aborted_together(
    broker: PykafkaBroker, client: Client, topic: str, transaction_version: int
) -> None:
    producer, partition = transactional(client, topic, transaction_version), (topic, 0)
    for number in range(3):
        producer.write(partition, batch(b"a%d" % number))
        producer.commit_offsets(f"{topic}-group", {partition: CommittedOffset(number, "of a table")})
        producer.commit()
    producer.write(partition, batch(b"never"))
    producer.commit_offsets(f"{topic}-group", {partition: CommittedOffset(99)})
    producer.abort()
    producer.write(partition, batch(b"b", b"c"))
    producer.commit()
    assert committed_values(broker, topic) == [b"a0", b"a1", b"a2", b"b", b"c"]
    assert producer.committed_offsets(f"{topic}-group", [partition, (topic, 7)]) == {
        partition: CommittedOffset(2, "of a table")
    }


@TRANSACTION_VERSIONS
def test_a_killed_broker_holds_up_a_transaction_and_nothing_is_stored_twice(
    broker: PykafkaBroker, client: Client, topic: str, transaction_version: int
) -> None:
    producer, partition = transactional(client, topic, transaction_version), (topic, 0)
    values = []
    for number in range(40):
        if number == 10:
            broker.kill()
            starting = threading.Thread(target=broker.start)
            starting.start()
        value = b"%d" % number
        producer.write(partition, batch(value))
        if number % 4 == 1:
            producer.commit_offsets(f"{topic}-group", {partition: CommittedOffset(number)})
            producer.commit()
        values.append(value)
    producer.commit()
    starting.join()
    assert committed_values(broker, topic) == values


def test_a_later_producer_fences_the_one_before_it_and_ends_what_it_left_open(
    broker: PykafkaBroker, client: Client, topic: str
) -> None:
    partition = (topic, 0)
    first = transactional(client, topic)
    first.write(partition, batch(b"left open"))
    second = transactional(client, topic)
    second.write(partition, batch(b"taken over"))
    second.commit()
    with pytest.raises(ProducerFenced):
        first.commit()
    assert committed_values(broker, topic) == [b"taken over"]


def test_a_lost_transaction_is_written_again(broker: PykafkaBroker, client: Client, topic: str) -> None:
    producer = transactional(client, topic)
    producer.write((topic, 0), batch(b"lost"))
    producer.recover()
    producer.write((topic, 0), batch(b"kept"))
    producer.commit()
    assert committed_values(broker, topic) == [b"kept"]


def test_an_idempotent_producer_stores_a_batch_that_it_sends_again_once(
    broker: PykafkaBroker, client: Client, topic: str
) -> None:
    producer = Producer(client)
    producer.initialise()
    assert producer.write((topic, 0), batch(b"a", b"b")) == 0
    producer.state.sequences.clear()
    producer.write((topic, 0), batch(b"a", b"b"))
    assert producer.write((topic, 0), batch(b"c")) == 2
    assert committed_values(broker, topic) == [b"a", b"b", b"c"]

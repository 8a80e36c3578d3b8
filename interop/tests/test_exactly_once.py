"""Reading, working and writing in transactions with librdkafka, while the broker is killed between the steps.

The lanes `copies` and `streams` of the interop runs do the same at length with Java programs.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from interop.exactly_once import topics
from interop.exactly_once.copying import difference
from pykafka_broker.testing.processes import PykafkaBroker

RECORDS, PER_TRANSACTION = 600, 25
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class Copier:
    """Copies one partition; after an abort it goes back to what is committed."""

    def __init__(self, broker: PykafkaBroker, kill_at: set[int]) -> None:
        self.broker, self.kill_at, self.step, self.aborted = broker, kill_at, 0, 0
        self.partition = TopicPartition("input", 0, 0)
        # Starting over with the bootstrap servers, librdkafka 2.16 waits for a group coordinator that it has
        # put away, with every broker.
        client = {
            "bootstrap.servers": broker.address,
            "log_level": 0,
            "metadata.recovery.strategy": "none",
            "reconnect.backoff.max.ms": 100,
        }
        self.consumer = Consumer(
            {**client, "group.id": "copier", "enable.auto.commit": False, "isolation.level": "read_committed"}
        )
        self.consumer.assign([self.partition])
        self.producer = Producer({**client, "transactional.id": "copier", "linger.ms": 0})
        self.producer.init_transactions(30)

    def between_steps(self) -> None:
        """The place where the broker may die."""
        if self.step in self.kill_at:
            self.broker.kill()
            self.broker.start()
        self.step += 1

    def transact(self, *, abort: bool) -> int:
        """The records copied for good."""
        messages = self.consumer.consume(PER_TRANSACTION, 10)
        self.producer.begin_transaction()
        for message in messages:
            self.producer.produce("output", message.value())
        self.between_steps()
        try:
            position = self.consumer.position([self.partition])
            group = self.consumer.consumer_group_metadata()
            self.again(lambda: self.producer.send_offsets_to_transaction(position, group, 60))
            self.between_steps()
            if not abort:
                self.again(lambda: self.producer.commit_transaction(60))
                return len(messages)
            # What is not sent yet would be dropped here, and leave nothing to be aborted there.
            self.producer.flush(60)
        except KafkaException as problem:
            if not problem.args[0].txn_requires_abort():
                raise
        self.again(lambda: self.producer.abort_transaction(60))
        self.aborted += 1
        (committed,) = self.consumer.committed([self.partition], 60)
        self.consumer.seek(TopicPartition("input", 0, max(committed.offset, 0)))
        return 0

    def again(self, call: Callable[[], None]) -> None:
        """Until it is done or cannot be."""
        while True:
            try:
                return call()
            except KafkaException as problem:
                if not problem.args[0].retriable():
                    raise

    def close(self) -> None:
        self.consumer.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_copy_equals_its_source_though_transactions_fail_and_the_broker_dies_between_their_steps() -> None:
    chance = random.Random(7)
    with PykafkaBroker(SETTINGS) as broker:
        topics.create(broker.address, 1, "input", "output")
        source = [str(number) for number in range(RECORDS)]
        producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
        for value in source:
            producer.produce("input", value.encode())
        assert producer.flush(60) == 0
        copier = Copier(broker, kill_at={2, 9, 20, 33})
        copied = 0
        while copied < RECORDS:
            copied += copier.transact(abort=chance.random() < 0.3)
        copier.close()

        (copy,) = topics.values(broker.address, "output")
        (with_aborted,) = topics.values(broker.address, "output", isolation="read_uncommitted")

    assert difference(source, copy) == ""
    assert copier.step > 33
    assert copier.aborted > 0
    assert len(with_aborted) > len(copy)


def test_a_copy_with_too_much_or_too_little_or_in_another_order_is_told_from_its_source() -> None:
    assert difference(["1", "2"], ["1", "2"]) == ""
    assert difference(["1", "2"], ["1"]) == "0 twice, 1 missing, 0 that were not written, of 2"
    assert difference(["1", "2"], ["1", "2", "2"]) == "1 twice, 0 missing, 0 that were not written, of 2"
    assert difference(["1", "2"], ["1", "2", "3"]) == "0 twice, 0 missing, 1 that were not written, of 2"
    assert difference(["1", "2"], ["2", "1"]) == "in another order"

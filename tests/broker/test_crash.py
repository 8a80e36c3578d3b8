"""What a killed broker leaves behind: everything that was acknowledged, once, in order, where it was said to
be.

A real client (librdkafka) keeps producing while the process is killed with SIGKILL and started again on its
data, the way an operator's supervisor would. The checker then reads the logs back and compares them with the
acknowledgements.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pykafka_broker.testing.processes import PykafkaBroker

pytestmark = pytest.mark.acknowledged

TOPIC = "ledger"
PARTITIONS = 4
#: Kills, and acknowledgements awaited before each: they fall into the middle of a busy stream.
KILLS = 5
ACKNOWLEDGED_BEFORE_A_KILL = 3_000

Acknowledged = dict[tuple[int, int], bytes]


class Stream:
    """A producer of numbered records, until it is told to stop; it notes what was acknowledged where."""

    def __init__(self, address: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "acks": "all",
                "linger.ms": 2,
                "delivery.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
                "enable.idempotence": True,
            }
        )
        self.acknowledged: Acknowledged = {}
        self.failed: list[str] = []
        self._progress = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Stream:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def wait_for(self, more: int) -> None:
        """Return when so many more records have been acknowledged."""
        with self._progress:
            target = len(self.acknowledged) + more
            assert self._progress.wait_for(lambda: len(self.acknowledged) >= target, timeout=120)

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            try:
                partition = number % PARTITIONS
                value = b"%d" % number
                self._producer.produce(TOPIC, value, partition=partition, on_delivery=self._delivered)
                number += 1
            except BufferError:
                self._producer.poll(0.05)
            self._producer.poll(0)
        assert self._producer.flush(120) == 0

    def _delivered(self, error: Any, message: Any) -> None:
        with self._progress:
            if error is not None:
                self.failed.append(str(error))
            else:
                self.acknowledged[message.partition(), message.offset()] = message.value()
            self._progress.notify_all()


def read_everything(address: str) -> dict[int, list[tuple[int, bytes]]]:
    """(offset, value) of every record of every partition."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "checker", "enable.auto.commit": False})
    ends = {
        partition: consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=60)[1]
        for partition in range(PARTITIONS)
    }
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in ends])
    found: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    left = {partition for partition, end in ends.items() if end > 0}
    silent_since = time.monotonic()
    while left:
        messages = consumer.consume(10_000, timeout=0.5)
        if messages:
            silent_since = time.monotonic()
        silence_s = time.monotonic() - silent_since
        assert silence_s < 60, f"no records for 60 s, partitions {left} are not read to their end {ends}"
        for message in messages:
            assert message.error() is None, message.error()
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None and offset is not None and value is not None
            found[partition].append((offset, value))
            if offset + 1 >= ends[partition]:
                left.discard(partition)
    consumer.close()
    return found


def create_topic(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(60)


@pytest.mark.timeout(600)
def test_kill_9_under_load_loses_duplicates_and_moves_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with PykafkaBroker({"log.segment.bytes": "1048576"}, tmp_path) as broker:
        create_topic(broker.address)
        with Stream(broker.address) as stream:
            for _ in range(KILLS):
                stream.wait_for(ACKNOWLEDGED_BEFORE_A_KILL)
                broker.kill()
                broker.start()
            stream.wait_for(ACKNOWLEDGED_BEFORE_A_KILL)
        assert stream.failed == []

        found = read_everything(broker.address)

    offsets = {partition: [offset for offset, _ in records] for partition, records in found.items()}
    assert offsets == {partition: list(range(len(records))) for partition, records in found.items()}
    lost = stream.acknowledged.items() - {
        ((partition, offset), value) for partition, records in found.items() for offset, value in records
    }
    assert not lost
    for partition, records in found.items():
        numbers = [int(value) for _, value in records]
        assert numbers == list(range(partition, numbers[-1] + 1, PARTITIONS)), "a copy, a gap or a swap"


def test_committed_offsets_survive_kill_9(tmp_path: Path) -> None:
    with PykafkaBroker({}, tmp_path) as broker:
        create_topic(broker.address)
        settings = {"bootstrap.servers": broker.address, "group.id": "readers", "log_level": 0}
        consumer = Consumer(settings)
        for offset in range(1, 20):
            consumer.commit(
                offsets=[
                    TopicPartition(TOPIC, p, offset, metadata=f"at {offset}") for p in range(PARTITIONS)
                ],
                asynchronous=False,
            )
        consumer.close()

        broker.kill()
        broker.start()

        consumer = Consumer(settings)
        committed = consumer.committed([TopicPartition(TOPIC, p) for p in range(PARTITIONS)], timeout=60)
        consumer.close()
    assert [(c.partition, c.offset, c.metadata) for c in committed] == [
        (p, 19, "at 19") for p in range(PARTITIONS)
    ]

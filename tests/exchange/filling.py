"""Topics of every kind, written through a real client: what an exchange must carry over.

Each topic bears the name of what is special about it. `fill` may be called again on what it filled before: it
adds to it.
"""

from __future__ import annotations

import random
import time
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.exchange.contents import QUIET, TIMEOUT_S, retried

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BASE_MS = 1_700_000_000_000

TOPICS = {
    "codecs": (len(CODECS), {}),
    # A record a second later than segment.ms begins a segment: every batch its own.
    "segments": (1, {"segment.ms": "1000", "retention.ms": "-1"}),
    "large": (2, {"segment.bytes": "1048576", "retention.ms": "-1"}),
    "nulls": (1, {}),
    "append-time": (1, {"message.timestamp.type": "LogAppendTime"}),
    "configured": (
        1,
        {"retention.ms": "123456789", "max.message.bytes": "54321", "compression.type": "zstd"},
    ),
    "compacted": (1, {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"}),
    "trimmed": (1, {}),
    "empty": (3, {}),
    "continued": (1, {}),
}
TRANSACTIONS = "transactions"


def producer(address: str, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": address, "enable.idempotence": True, **QUIET, **settings})


def transactional_producer(address: str, transactional_id: str) -> Producer:
    """A producer that may begin a transaction."""
    made = producer(address, **{"transactional.id": transactional_id})
    made.init_transactions(TIMEOUT_S)
    return made


def create_topics(address: str, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": address, **QUIET})
    wanted = [
        NewTopic(name, *TOPICS.get(name, (1, {}))[:1], 1, config=TOPICS.get(name, (1, {}))[1])
        for name in names
    ]
    for future in admin.create_topics(wanted, request_timeout=TIMEOUT_S).values():
        future.result(TIMEOUT_S)


def fill(address: str) -> None:
    """Write to every topic, commit offsets, change configs, delete records."""
    for partition, codec in enumerate(CODECS):
        write = producer(address, **{"compression.type": codec, "linger.ms": 50, "enable.idempotence": False})
        for number in range(500):
            write.produce("codecs", b"value %d" % number * 5, b"key %d" % (number % 7), partition)
        assert write.flush(TIMEOUT_S) == 0

    write = producer(address)
    for number in range(30):
        write.produce("segments", b"%d" % number, timestamp=BASE_MS + 2_000 * number)
        assert write.flush(TIMEOUT_S) == 0
    noise = random.Random(4)
    for number in range(3_000):
        write.produce("large", noise.randbytes(1_500), partition=number % 2, timestamp=BASE_MS + number)
    nulls: list[tuple[bytes | None, bytes | None, list[tuple[str, str | bytes | None]]]] = [
        (None, b"", []),
        (b"", None, [("a", None), ("a", b""), ("b", b"1"), ("a", b"2")]),
        (None, None, [("name", b"\x00\xff")]),
    ]
    for key, value, headers in nulls:
        write.produce("nulls", value, key, headers=headers)
    for number in range(10):
        write.produce("append-time", b"%d" % number, timestamp=BASE_MS)
        write.produce("configured", b"%d" % number)
        write.produce("compacted", b"%d" % number, b"key %d" % (number % 3))
        write.produce("trimmed", b"%d" % number)
        assert write.flush(TIMEOUT_S) == 0
    write.produce("compacted", None, b"key 1")
    assert write.flush(TIMEOUT_S) == 0

    admin = AdminClient({"bootstrap.servers": address, **QUIET})
    admin.delete_records([TopicPartition("trimmed", 0, 7)])[TopicPartition("trimmed", 0)].result(TIMEOUT_S)
    alter(admin, ConfigResource(ResourceType.BROKER, "1"), "background.threads", "7")
    consume_as_group(address, "readers", "codecs", 2_000)
    asked = ConsumerGroupTopicPartitions("committers", [TopicPartition("large", 1, 42, "by hand")])
    retried(lambda: admin.alter_consumer_group_offsets([asked])["committers"].result(TIMEOUT_S))


def alter(admin: AdminClient, resource: ConfigResource, name: str, value: str) -> None:
    resource.add_incremental_config(ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET))
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)


def consume_as_group(address: str, group: str, topic: str, count: int) -> None:
    """Join, read some and commit."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **QUIET,
        }
    )
    consumer.subscribe([topic])
    read = 0
    while read < count:
        messages = consumer.consume(min(500, count - read), timeout=TIMEOUT_S)
        assert messages, f"{group} gets nothing more after {read} of {count}"
        read += sum(message.error() is None for message in messages)
    consumer.commit(asynchronous=False)
    consumer.close()


def transact(address: str) -> None:
    """A committed transaction, an aborted one, and a committed one with offsets."""
    write = transactional_producer(address, "tellers")
    for number in range(3):
        write.begin_transaction()
        for part in range(5):
            write.produce(TRANSACTIONS, b"%d.%d" % (number, part))
        if number == 1:
            write.flush(TIMEOUT_S)
            write.abort_transaction(TIMEOUT_S)
            continue
        if number == 2:
            consumer = Consumer({"bootstrap.servers": address, "group.id": "copiers", **QUIET})
            write.send_offsets_to_transaction(
                [TopicPartition(TRANSACTIONS, 0, 3)], consumer.consumer_group_metadata(), TIMEOUT_S
            )
            consumer.close()
        write.commit_transaction(TIMEOUT_S)


class Continued:
    """An idempotent producer that lives through exchanges, and what it was told."""

    TOPIC = "continued"

    def __init__(self, address: str) -> None:
        self._producer = producer(address, **{"linger.ms": 0})
        self.acknowledged: list[tuple[int, bytes]] = []

    def produce(self, count: int = 20) -> None:
        """Write the next so many numbers; they are acknowledged when this returns."""
        first = len(self.acknowledged)
        for number in range(first, first + count):
            self._producer.produce(self.TOPIC, b"%d" % number, partition=0, on_delivery=self._delivered)
            self._producer.poll(0)
        assert self._producer.flush(TIMEOUT_S) == 0

    def _delivered(self, error: Any, message: Any) -> None:
        assert error is None, error
        self.acknowledged.append((message.offset(), message.value()))


def add_credentials(address: str) -> None:
    """Give `clerk` SCRAM credentials."""
    admin = AdminClient({"bootstrap.servers": address, **QUIET})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    added = UserScramCredentialUpsertion("clerk", info, b"secret")
    admin.alter_user_scram_credentials([added])["clerk"].result(TIMEOUT_S)
    assert has_credentials(address)


def has_credentials(address: str) -> bool:
    """Whether `clerk` has them; a broker may learn of it a moment later."""
    admin = AdminClient({"bootstrap.servers": address, **QUIET})
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        of_all = admin.describe_user_scram_credentials()
        assert not isinstance(of_all, dict)
        if list(of_all.result(TIMEOUT_S)) == ["clerk"]:
            return True
        time.sleep(0.1)
    return False

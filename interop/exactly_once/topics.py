"""Topics made, and read to their end as a reader of committed records reads them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from interop.exactly_once.program import StoryError

LEADERS_PATIENCE_S = 30
QUIET = {"log_level": 0, "enable.metrics.push": False}


def create(address: str, partitions: int, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": address, **QUIET})
    for created in admin.create_topics([NewTopic(name, partitions) for name in names]).values():
        created.result(30)


def values(
    address: str, topic: str, *, isolation: str = "read_committed", patience_s: float = 90
) -> list[list[str]]:
    """Of each partition the values in the order of their offsets, up to its end: a transaction that stays
    open would hold a reader of committed records before the end, and fails here.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "values",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            **QUIET,
        }
    )
    try:
        partitions = sorted(consumer.list_topics(topic, 30).topics[topic].partitions)
        ends = end_offsets(address, [TopicPartition(topic, partition) for partition in partitions])
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
        found: list[list[str]] = [[] for _ in partitions]
        ended: set[int] = set()
        deadline = time.monotonic() + patience_s
        while len(ended) < len(partitions):
            if time.monotonic() > deadline:
                raise StoryError(f"{topic} was not read to its end: {sorted(ended)} of {partitions}")
            message = consumer.poll(1)
            if message is None:
                continue
            error, partition, offset = message.error(), message.partition(), message.offset()
            if error is None:
                value = message.value()
                assert partition is not None
                assert value is not None
                found[partition].append(value.decode())
            elif error.code() == KafkaError._PARTITION_EOF:
                assert partition is not None
                assert offset is not None
                if offset >= ends[partition]:
                    ended.add(partition)
        return found
    finally:
        consumer.close()


def end_offsets(address: str, partitions: Sequence[TopicPartition]) -> dict[int, int]:
    """Where the log ends, open transactions included."""
    admin = AdminClient({"bootstrap.servers": address, **QUIET})
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # it has no annotations
    deadline = time.monotonic() + LEADERS_PATIENCE_S
    while True:
        asked = admin.list_offsets(
            dict.fromkeys(partitions, latest), isolation_level=IsolationLevel.READ_UNCOMMITTED
        )
        try:
            return {partition.partition: future.result(30).offset for partition, future in asked.items()}
        except KafkaException as error:
            # A node may not know a new topic or its leaders yet, and librdkafka does not ask again.
            unknown = (KafkaError._NOENT, KafkaError.UNKNOWN_TOPIC_OR_PART)
            if error.args[0].code() not in unknown or time.monotonic() > deadline:
                raise
        time.sleep(0.1)

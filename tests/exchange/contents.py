"""What a node holds as clients see it, as one value that can be compared before and after an exchange."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import (
    OFFSET_END,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, ResourceType
from confluent_kafka.error import KafkaError

TIMEOUT_S = 120
QUIET = {
    "log_level": 0,
    "reconnect.backoff.max.ms": 200,
    # A broker that has just started may know of no controller; an admin client asks again no sooner.
    "topic.metadata.refresh.interval.ms": 1_000,
}

LOADING = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._TRANSPORT,
)

Result = TypeVar("Result")


class Record(NamedTuple):
    offset: int
    leader_epoch: int | None
    timestamp: tuple[int, int]
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, str | bytes | None], ...]


class Partition(NamedTuple):
    start: int
    end: int
    #: As a reader of the consumer's isolation level sees them.
    records: tuple[Record, ...]
    #: The offset for the timestamp of the middle record.
    middle: int | None = None


class Topic(NamedTuple):
    topic_id: str
    configs: dict[str, str]
    partitions: dict[int, Partition]


class Contents(NamedTuple):
    topics: dict[str, Topic]
    #: group -> topic and partition -> offset and metadata
    groups: dict[str, dict[tuple[str, int], tuple[int, str | None]]]
    broker_configs: dict[str, str]
    cluster_id: str


def retried(ask: Callable[[], Result]) -> Result:
    """Ask again while a broker that has just started still loads."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return ask()
        except KafkaException as error:
            if time.monotonic() > deadline or error.args[0].code() not in LOADING:
                raise
            time.sleep(0.1)


def contents(address: str) -> Contents:
    """Everything that is not internal."""
    admin = AdminClient({"bootstrap.servers": address, **QUIET})
    described = admin.list_topics(timeout=TIMEOUT_S)
    names = sorted(name for name in described.topics if not name.startswith("__"))
    futures = admin.describe_topics(TopicCollection(names), request_timeout=TIMEOUT_S)
    ids = {name: str(future.result().topic_id) for name, future in futures.items()}
    configs = {name: own_configs(admin, ResourceType.TOPIC, name) for name in names}
    topics = {
        name: Topic(
            ids[name], configs[name], partitions(address, name, sorted(described.topics[name].partitions))
        )
        for name in names
    }
    groups = [group.group_id for group in retried(lambda: admin.list_consumer_groups().result()).valid]
    cluster_id: Any = described.cluster_id  # which confluent-kafka declares as None
    return Contents(
        topics,
        {group: offsets for group in sorted(groups) if (offsets := committed(admin, group))},
        own_configs(admin, ResourceType.BROKER, "1"),
        cluster_id,
    )


def own_configs(admin: AdminClient, kind: Any, name: str) -> dict[str, str]:
    """The dynamic configs of a resource, without defaults and those of files."""
    resource = ConfigResource(kind, name)
    entries = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
    own = (
        ConfigSource.DYNAMIC_TOPIC_CONFIG.value,
        ConfigSource.DYNAMIC_BROKER_CONFIG.value,
        ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value,
    )
    return {entry.name: entry.value for entry in entries.values() if entry.source in own}


def committed(admin: AdminClient, group: str) -> dict[tuple[str, int], tuple[int, str | None]]:
    asked = ConsumerGroupTopicPartitions(group)
    found = retried(lambda: admin.list_consumer_group_offsets([asked])[group].result(TIMEOUT_S))
    return {(p.topic, p.partition): (p.offset, p.metadata or None) for p in found.topic_partitions}


def new_consumer(address: str, isolation_level: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "not used",
            "enable.auto.commit": False,
            "isolation.level": isolation_level,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            **QUIET,
        }
    )


def partitions(address: str, topic: str, numbers: list[int]) -> dict[int, Partition]:
    """What is committed, or not in a transaction."""
    consumer = new_consumer(address, "read_committed")
    try:
        return {number: partition(consumer, topic, number) for number in numbers}
    finally:
        consumer.close()


def partition(consumer: Consumer, topic: str, number: int) -> Partition:
    found = records_of(consumer, topic, number)
    return found._replace(middle=middle(consumer, topic, number, found.records))


def records_of(consumer: Consumer, topic: str, number: int) -> Partition:
    """All but what a timestamp leads to."""
    where = TopicPartition(topic, number)
    start, end = retried(lambda: consumer.get_watermark_offsets(where, timeout=TIMEOUT_S))
    consumer.assign([TopicPartition(topic, number, start)])
    records: list[Record] = []
    while True:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, f"{topic}-{number} is not read to its end"
        error, offset, headers = message.error(), message.offset(), message.headers() or []
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            return Partition(start, end, tuple(records))
        assert offset is not None and isinstance(headers, list)
        records.append(
            Record(
                offset,
                message.leader_epoch(),
                message.timestamp(),
                message.key(),
                message.value(),
                tuple(headers),
            )
        )


def middle(consumer: Consumer, topic: str, number: int, records: Sequence[Record]) -> int | None:
    if not records:
        return None
    timestamp = records[len(records) // 2].timestamp[1]
    [found] = consumer.offsets_for_times([TopicPartition(topic, number, timestamp)], timeout=TIMEOUT_S)
    assert found.offset != OFFSET_END
    return found.offset

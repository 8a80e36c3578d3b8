"""The messages of the consumer protocol that the coordinator reads and writes for classic members of consumer
groups, and when a group changes its kind.

A message follows its 16-bit version. A version that is too new is read as the newest known one: later
versions only add fields at the end.
"""

from __future__ import annotations

from typing import TypeVar

from pykafka_broker.coordinator.groups.core.consumer.assignors.spec import Assignment
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.java_hash import int_hash, uuid_hash, walked
from pykafka_broker.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)

Message = TypeVar("Message")


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """The metadata of a member in its JoinGroup.

    Raises:
        ProtocolError: these are not the bytes of a subscription.

    """
    return _read(ConsumerProtocolSubscription, metadata)


def read_assignment(assignment: bytes) -> ConsumerProtocolAssignment:
    """The assignment of a member by its leader.

    Raises:
        ProtocolError: these are not the bytes of an assignment.

    """
    return _read(ConsumerProtocolAssignment, assignment)


def write_assignment(assignment: Assignment, metadata: bytes, topics: TopicDirectory) -> bytes:
    """An assignment in the version of the member's `metadata`, or in version 0 if `metadata` has none.

    In the order of Apache Kafka's hash maps: the bytes are the same.
    """
    try:
        version = _version(ConsumerProtocolAssignment, metadata)
    except ProtocolError:
        version = 0
    assigned = [
        TopicPartition(
            topic=topic.name, partitions=walked(sorted(assignment[topic_id]), int_hash, sized=True)
        )
        for topic_id in walked(assignment, uuid_hash)
        if (topic := topics.topic_by_id(topic_id)) is not None
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=assigned)
    return version.to_bytes(2) + encode(message, version)


def by_topic_id(
    partitions: list[TopicPartition], topics: TopicDirectory
) -> tuple[tuple[bytes, tuple[int, ...]], ...]:
    """Partitions by topic id, without those that do not exist. A topic may have been recreated with fewer
    partitions since a classic member read its metadata; Kafka's assignors do not expect that.
    """
    return tuple(
        (topic.topic_id, tuple(number for number in each.partitions if number < topic.partition_count))
        for each in partitions
        if (topic := topics.topic(each.topic)) is not None
    )


def _read(cls: type[Message], data: bytes) -> Message:
    message, _ = decode(cls, _version(cls, data), data, 2)
    return message


def _version(cls: type, data: bytes) -> int:
    if len(data) < 2:
        raise ProtocolError("a message of the consumer protocol without a version")
    version = int.from_bytes(data[:2], signed=True)
    if version < 0:
        raise ProtocolError(f"version {version} of the consumer protocol")
    return min(version, max(schema_of(cls).versions))

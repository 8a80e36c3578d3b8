"""A partition by its topic's name."""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.system.named_tuple import NamedTuple

#: A partition as a dictionary key; a `TopicPartition` is one.
PartitionKey = tuple[str, int]


class TopicPartition(NamedTuple):
    """The topic and the index of a partition; its text is `topic-0`, as in Kafka's log lines."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def by_topic(partitions: Iterable[PartitionKey]) -> dict[str, list[int]]:
    """The indexes of partitions by topic, in the order in which they come."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found

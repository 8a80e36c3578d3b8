"""Names of partitions: by their topics, and by the share groups that consume them."""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.system.named_tuple import NamedTuple

#: The topic of the metadata log, which has one partition.
METADATA_TOPIC = "__cluster_metadata"
#: Its topic id, the same in every cluster.
METADATA_TOPIC_ID = bytes(15) + b"\x01"

#: A partition as a dictionary key; a `TopicPartition` is one.
PartitionKey = tuple[str, int]


class TopicPartition(NamedTuple):
    """The topic and the index of a partition; its text is `topic-0`, as in Kafka's log lines."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class SharePartitionKey(NamedTuple):
    """A share partition: a partition as one share group consumes it."""

    group_id: str
    topic_id: bytes
    partition: int


def by_topic(partitions: Iterable[PartitionKey]) -> dict[str, list[int]]:
    """The indexes of partitions by topic, in the order in which they come."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found

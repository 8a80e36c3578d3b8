"""The positions of a stream, as Spark keeps them in the checkpoint, and the end of its next batch. Pure.

    {"orders": {"id": "6i3DKK83S0uVTqjfAHNxxA", "0": 17, "1": 4}}

Offsets are those that are read next, as in the checkpoints of Spark's own source. The id of the topic is
there where folders have it: a topic that is created anew is another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Union

from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.system.named_tuple import NamedTuple

_ID = "id"

#: The dictionary that Spark makes JSON of.
Json = dict[str, dict[str, Union[int, str]]]


class Positions(NamedTuple):
    """The next offset to read of each partition, and the ids of the topics, where they are known."""

    offsets: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, str]


def to_json(positions: Positions) -> Json:
    """As the checkpoint has it: equal positions make equal texts."""
    by_topic: Json = {}
    for (topic, partition), offset in sorted(positions.offsets.items()):
        if topic not in by_topic:
            topic_id = positions.topic_ids.get(topic)
            by_topic[topic] = {} if topic_id is None else {_ID: topic_id}
        by_topic[topic][str(partition)] = offset
    return by_topic


def from_json(value: Mapping[str, Mapping[str, int | str]]) -> Positions:
    """The inverse of `to_json`."""
    offsets = {
        TopicPartition(topic, int(name)): int(each)
        for topic, entries in value.items()
        for name, each in entries.items()
        if name != _ID
    }
    ids = {topic: str(entries[_ID]) for topic, entries in value.items() if _ID in entries}
    return Positions(offsets, ids)


def capped(
    begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], most: int | None
) -> dict[TopicPartition, int]:
    """The end offsets of a batch of about `most` offsets: of each partition in proportion to its unread ones,
    and at least one, as in Spark's own source.
    """
    available = {partition: max(ends[partition] - begin, 0) for partition, begin in begins.items()}
    total = sum(available.values())
    if most is None or total <= most:
        return {partition: begin + available[partition] for partition, begin in begins.items()}
    shares = {partition: most * count / total for partition, count in available.items()}
    return {
        partition: begin
        + min(
            ceil(shares[partition]) if shares[partition] < 1 else int(shares[partition]), available[partition]
        )
        for partition, begin in begins.items()
    }

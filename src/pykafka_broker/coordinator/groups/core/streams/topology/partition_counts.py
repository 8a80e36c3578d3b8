"""Decides the partition counts of a topology's internal topics, as Apache Kafka 4.3 does.

A repartition topic without a declared count gets that of the largest input topic of the subtopology which
writes it; this is repeated through the graph until all counts are known. Then all topics of a copartition
group get one count: that of its source topics, else the declared one, else the largest. A changelog topic
gets the count of the largest input topic of its subtopology.

An existing topic counts with its actual partitions. A subtopology counts only the input topics that are known
at its turn, so the order of subtopologies matters: it is Apache Kafka's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import NoReturn, TypeVar

from pykafka_broker.coordinator.groups.core.streams.status import Status, StatusCode
from pykafka_broker.coordinator.groups.core.streams.topology.declared import Subtopology, Topology
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.java_hash import string_hash, walked

Item = TypeVar("Item")


class TopicsNotReady(Exception):
    """The topics of the topology are not as it needs them; `status` says what is wrong."""

    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.status = Status(code, detail)


class PartitionCounts:
    """The partition counts of topics: actual ones, or decided ones of topics that do not exist."""

    def __init__(self, topics: TopicDirectory) -> None:
        self._topics = topics
        self.decided: dict[str, int] = {}

    def get(self, topic: str) -> int | None:
        """The count of a topic, or None while it is not known."""
        existing = self._topics.topic(topic)
        return self.decided.get(topic) if existing is None else existing.partition_count

    def known(self, topic: str) -> int:
        """The count of a topic that exists or has been decided on."""
        count = self.get(topic)
        if count is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return count


def decide_partition_counts(topology: Topology, topics: TopicDirectory) -> PartitionCounts:
    """The counts of all topics of a topology whose source topics exist.

    Raises:
        TopicsNotReady: INCORRECTLY_PARTITIONED_TOPICS.
        KafkaError: STREAMS_INVALID_TOPOLOGY, no such counts exist.

    """
    counts = PartitionCounts(topics)
    parts = topology.in_java_order()
    counts.decided.update(_repartition_counts(parts, counts))
    _make_copartitioned(parts, counts)
    counts.decided.update(_changelog_counts(parts, counts))
    return counts


# ---- repartition topics ----


def _repartition_counts(parts: Sequence[Subtopology], counts: PartitionCounts) -> Mapping[str, int]:
    found = {
        topic.name: topic.partitions
        for part in parts
        for topic in part.repartition_source_topics
        if topic.partitions
    }
    _follow(parts, counts, found)
    if any(sink not in found for part in parts for sink in part.repartition_sink_topics):
        _invalid(
            "Failed to compute number of partitions for all repartition topics. There may be loops in the "
            "topology that cannot be resolved."
        )
    for part in parts:
        if any(topic.name not in found for topic in part.repartition_source_topics):
            _invalid(
                "Failed to compute number of partitions for all repartition topics, because a repartition "
                "source topic is never used as a sink topic."
            )
    return found


def _follow(parts: Sequence[Subtopology], counts: PartitionCounts, found: dict[str, int]) -> None:
    """Add to `found` the counts of the topics that subtopologies write, as far as they are known.

    Apache Kafka goes through all subtopologies in rounds; each one with a known input topic has its turn.
    Here only the subtopologies whose turn it is are visited: a client may send very many.
    """
    readers: dict[str, list[int]] = {}
    for index, part in enumerate(parts):
        for topic in part.repartition_source_topics:
            readers.setdefault(topic.name, []).append(index)
    # A heap of rounds and indexes.
    turns = [
        (0, index)
        for index, part in enumerate(parts)
        if any(count is not None for count in _known_inputs(part, counts, found))
    ]
    awaited = {*range(len(parts))}.difference(index for _, index in turns)
    while turns:
        turn, index = heappop(turns)
        part = parts[index]
        count = max(_known_inputs(part, counts, found))
        for sink in part.repartition_sink_topics:
            if sink in found:
                continue
            found[sink] = count
            for reader in readers.get(sink, ()):
                if reader in awaited:
                    awaited.remove(reader)
                    heappush(turns, (turn if reader > index else turn + 1, reader))


def _known_inputs(part: Subtopology, counts: PartitionCounts, found: Mapping[str, int]) -> Iterator[int]:
    for topic in part.repartition_source_topics:
        if topic.name in found:
            yield found[topic.name]
    for name in part.source_topics:
        count = counts.get(name)
        if count is not None:
            yield count


# ---- copartition groups ----


def _make_copartitioned(parts: Collection[Subtopology], counts: PartitionCounts) -> None:
    repartition = [topic for part in parts for topic in part.repartition_source_topics]
    fixed = {topic.name: counts.known(topic.name) for topic in repartition if topic.partitions}
    fixed_counts = frozenset(fixed.values())
    flexible = {topic.name for topic in repartition if not topic.partitions}
    for part in parts:
        for names in _copartition_groups(part):
            if names:
                counts.decided.update(_enforced(names, fixed, fixed_counts, flexible, counts))


def _copartition_groups(part: Subtopology) -> Iterator[list[str]]:
    """The names of the topics of each group, in the iteration order of Apache Kafka's set."""
    for group in part.copartition_groups:
        names = [
            *(_at(part.source_topics, index) for index in group.source_topics),
            *(_at(part.repartition_source_topics, index).name for index in group.repartition_source_topics),
        ]
        yield walked(dict.fromkeys(names), string_hash)


def _at(items: Sequence[Item], index: int) -> Item:
    """The item with an index that a client has sent."""
    if not 0 <= index < len(items):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return items[index]


def _enforced(
    names: list[str],
    fixed: Collection[str],
    fixed_counts: Collection[int],
    flexible: Collection[str],
    counts: PartitionCounts,
) -> Mapping[str, int]:
    """The counts of the repartition topics of a group.

    If a group has only repartition topics, *all* repartition topics of the topology with declared counts must
    agree, as in Apache Kafka 4.3.
    """
    repartition = {name: counts.known(name) for name in names if name in fixed or name in flexible}
    others = {name: counts.known(name) for name in names if name not in repartition}
    if others:
        count = _the_same(others.values(), others)
    elif fixed:
        count = _the_same(fixed_counts, repartition)
    else:
        count = max(repartition.values())
        if count == 0:
            _invalid(
                "All topics in the copartition group had undefined partition number: "
                f"[{', '.join(repartition)}]"
            )
    for name, own in repartition.items():
        if name in fixed and own != count:
            raise TopicsNotReady(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{own}] of repartition topic [{name}] doesn't match number of "
                f"partitions [{count}] of the source topic.",
            )
    return dict.fromkeys(repartition, count)


def _the_same(compared: Collection[int], shown: Mapping[str, int]) -> int:
    if len(set(compared)) > 1:
        listed = ", ".join(f"{name}={shown[name]}" for name in sorted(shown))
        raise TopicsNotReady(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{listed}}}]",
        )
    return next(iter(compared))


# ---- changelog topics ----


def _changelog_counts(parts: Collection[Subtopology], counts: PartitionCounts) -> Mapping[str, int]:
    found = {}
    for part in parts:
        largest = max((counts.known(name) for name in part.input_topics()), default=None)
        if largest is None:
            _invalid(f"No source topics found for subtopology {part.subtopology_id}")
        found.update(dict.fromkeys((topic.name for topic in part.state_changelog_topics), largest))
    return found


def _invalid(message: str) -> NoReturn:
    raise KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)

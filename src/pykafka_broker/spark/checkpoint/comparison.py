"""The comparison of a checkpoint's positions with the topics, and the offsets to go on at. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum

from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.spark.checkpoint.files import Offsets
from pykafka_broker.spark.checkpoint.topics import Topic
from pykafka_broker.system.named_tuple import NamedTuple


class Standing(StrEnum):
    """The outcome of comparing a position in a checkpoint with the partition of its topic."""

    #: The next record to read is there, or is the next to be written.
    FITS = "fits"
    #: The partition is not in the checkpoint: Spark reads it from its beginning.
    NEW = "new"
    #: As NEW, but its first records are gone already, which Spark takes for a loss.
    NEW_AND_TRIMMED = "new and trimmed"
    #: Records that were not read are gone: retention or DeleteRecords went past the position.
    OVERTAKEN = "overtaken"
    #: The partition ends before the position: another topic, or one that lost its end.
    BEYOND_END = "beyond end"
    #: The topic was deleted and recreated: its id is not the one that was remembered.
    RECREATED = "recreated"
    #: The position fits, but the record before it is younger than the batch that should have read that
    #: record.
    DOUBTFUL = "doubtful"
    #: The topic, or the partition, does not exist.
    MISSING = "missing"


#: The outcomes with which a query can go on as it is.
SOUND = frozenset({Standing.FITS, Standing.NEW})


class Whither(StrEnum):
    """The place where a partition goes on if its position is void."""

    EARLIEST = "earliest"
    LATEST = "latest"


class State(NamedTuple):
    """One partition of one source; offsets are None where there are none."""

    source: int
    topic: str
    partition: int
    standing: Standing
    #: The next offset that Spark reads.
    position: int | None
    log_start: int | None
    log_end: int | None
    #: The offset at which the repair goes on; None: the repair takes the partition out of the checkpoint.
    repaired: int | None
    #: Offsets that the repair passes over, whether they are there or gone.
    skipped: int
    #: Offsets to read whose numbers the query has read before, in this log or in an earlier log.
    read_again: int


class Question(NamedTuple):
    """The facts and choices that a comparison goes by."""

    #: The end offsets of each source's planned batch, if one is planned.
    planned_ends: Mapping[int, Offsets]
    #: Topic -> the id that it had, if it was remembered.
    topic_ids: Mapping[str, str]
    #: The first offset of partitions since the newest batch was planned, if there is one.
    first_since: Mapping[PartitionKey, int]
    #: Topics that are known to be recreated, whatever their ids.
    recreated: Collection[str] = ()
    whither: Whither = Whither.EARLIEST


def compare(
    positions: Mapping[int, Offsets],
    topics: Mapping[str, Topic],
    question: Question,
) -> list[State]:
    """The state of every partition, by source, topic and number."""
    return [
        _state(number, partition, offsets.get(partition), topics.get(partition[0]), question)
        for number, offsets in sorted(positions.items())
        for partition in sorted({*offsets, *_partitions(offsets, topics)})
    ]


def _partitions(offsets: Offsets, topics: Mapping[str, Topic]) -> set[PartitionKey]:
    """The partitions that the topics of a source have now."""
    return {
        (name, number)
        for name in {topic for topic, _ in offsets}
        if name in topics
        for number in topics[name].partitions
    }


def _state(
    source: int,
    partition: PartitionKey,
    position: int | None,
    topic: Topic | None,
    question: Question,
) -> State:
    name, number = partition
    found = None if topic is None else topic.partitions.get(number)
    if topic is None or found is None:
        return State(source, name, number, Standing.MISSING, position, None, None, None, 0, 0)
    start, end = found
    at_whither = end if question.whither is Whither.LATEST else start

    def state(standing: Standing, repaired: int, skipped: int = 0, read_again: int = 0) -> State:
        return State(source, name, number, standing, position, start, end, repaired, skipped, read_again)

    remembered = question.topic_ids.get(name)
    is_recreated = name in question.recreated or (
        remembered is not None and topic.topic_id != "" and remembered != topic.topic_id
    )
    if position is None:
        standing = Standing.NEW_AND_TRIMMED if start > 0 else Standing.NEW
        return state(standing, start)
    if is_recreated:
        return state(Standing.RECREATED, at_whither, skipped=at_whither - start, read_again=end - at_whither)
    if max(position, question.planned_ends.get(source, {}).get(partition, position)) > end:
        return state(Standing.BEYOND_END, at_whither, skipped=at_whither - start, read_again=end - at_whither)
    if position < start:
        return state(Standing.OVERTAKEN, start, skipped=start - position)
    if question.first_since.get(partition, position) < position:
        return state(Standing.DOUBTFUL, position)
    return state(Standing.FITS, position)


def needs_repair(states: Collection[State]) -> bool:
    """Whether Spark would stop, or leave records out, with the checkpoint as it is."""
    return any(state.standing not in SOUND | {Standing.DOUBTFUL} for state in states)

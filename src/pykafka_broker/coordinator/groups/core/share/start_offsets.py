"""DescribeShareGroupOffsets: the start offsets of a share group, and their lag."""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.share.events import (
    DescribedShareOffsets,
    DescribeShareOffsets,
    EndOffsetsListed,
    ListEndOffsets,
    ReadShareSummary,
    ShareOffset,
    ShareSummary,
    ShareSummaryRead,
)
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.turn import refuse
from pykafka_broker.machine.step import Reply, Start, Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.records.batch import as_int64

Topics = tuple[tuple[str, bytes, tuple[ShareOffset, ...]], ...]


def on_describe(groups: Groups, event: DescribeShareOffsets) -> Step[Groups]:
    """Ask the share coordinator. If topics are named, any group is accepted, as in Apache Kafka 4.3.

    Partitions that do not exist are answered here: the share coordinator would be asked for half a minute
    before one fails, and a client may name very many.
    """
    missing: Topics = ()
    if event.topics is None:
        named = _all_with_state(groups, event.group_id)
    else:
        named, missing = _named(groups, event.topics)
    if not named:
        return refuse(groups, event.token, DescribedShareOffsets(topics=missing))
    if not _is_valid(event.group_id, named):
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        return refuse(groups, event.token, DescribedShareOffsets(error, error.message))
    asked = tuple(
        (name, topic_id, existing)
        for name, topic_id, partitions in named
        if (existing := _existing(groups, topic_id, partitions))
    )
    work = ReadShareSummary(event.token, event.group_id, asked, missing, named)
    if not asked:
        return _answered(groups, ShareSummaryRead(work, ()), {})
    return Step(groups, effects=(Start(work),))


def _existing(groups: Groups, topic_id: bytes, partitions: tuple[int, ...]) -> tuple[int, ...]:
    topic = groups.topics.topic_by_id(topic_id)
    count = 0 if topic is None else topic.partition_count
    return tuple(partition for partition in partitions if partition < count)


def _is_valid(group_id: str, asked: tuple[tuple[str, bytes, tuple[int, ...]], ...]) -> bool:
    """Whether share coordinators can be asked about a group's partitions."""
    return bool(group_id) and all(
        partitions and all(partition >= 0 for partition in partitions) for _, _, partitions in asked
    )


def _all_with_state(groups: Groups, group_id: str) -> tuple[tuple[str, bytes, tuple[int, ...]], ...]:
    group = groups.share(group_id)
    initialized = {} if group is None or group.states is None else group.states.initialized
    return tuple(
        (topic.name, topic_id, named.partitions)
        for topic_id, named in initialized.items()
        if (topic := groups.topics.topic_by_id(topic_id)) is not None
    )


def _named(
    groups: Groups, topics: tuple[tuple[str, tuple[int, ...]], ...]
) -> tuple[tuple[tuple[str, bytes, tuple[int, ...]], ...], Topics]:
    asked = []
    missing = []
    for name, partitions in topics:
        topic = groups.topics.topic(name)
        if topic is None:
            missing.append((name, ZERO_UUID, tuple(map(ShareOffset, partitions))))
        else:
            asked.append((name, topic.topic_id, partitions))
    return tuple(asked), tuple(missing)


def on_summary_read(groups: Groups, event: ShareSummaryRead) -> Step[Groups]:
    """Answer, or first ask for the high watermarks of the partitions whose lag can be computed."""
    names = {topic_id: name for name, topic_id, _ in event.work.topics}
    partitions = tuple(
        (names[topic_id], summary.partition)
        for topic_id, summaries in event.topics
        for summary in summaries
        if _has_lag(summary)
    )
    if partitions:
        return Step(groups, effects=(Start(ListEndOffsets(event, partitions)),))
    return _answered(groups, event, {})


def on_end_offsets(groups: Groups, event: EndOffsetsListed) -> Step[Groups]:
    """Answer with the lag of each partition."""
    ends = {(topic, partition): (error, offset) for topic, partition, error, offset in event.partitions}
    return _answered(groups, event.work.read, ends)


def _has_lag(summary: ShareSummary) -> bool:
    return (
        summary.error is ErrorCode.NONE
        and summary.start_offset != -1
        and summary.delivery_complete_count != -1
    )


def _answered(
    groups: Groups, read: ShareSummaryRead, ends: dict[tuple[str, int], tuple[ErrorCode, int]]
) -> Step[Groups]:
    found: dict[bytes, tuple[str, dict[int, ShareOffset]]] = {}
    for name, topic_id, partitions in read.work.named:
        _, offsets = found.setdefault(topic_id, (name, {}))
        offsets.update((partition, ShareOffset(partition)) for partition in partitions)
    for topic_id, summaries in read.topics:
        name, offsets = found[topic_id]
        offsets.update(
            (each.partition, _offset(each, ends.get((name, each.partition)))) for each in summaries
        )
    topics = tuple(
        (name, topic_id, tuple(offsets[partition] for partition in sorted(offsets)))
        for topic_id, (name, offsets) in found.items()
    )
    reply = Reply(read.work.token, DescribedShareOffsets(topics=(*topics, *read.work.missing)))
    return Step(groups, effects=(reply,))


def _offset(summary: ShareSummary, end: tuple[ErrorCode, int] | None) -> ShareOffset:
    """An error of the share coordinator is shown as an undecided offset, as in Apache Kafka 4.3."""
    if summary.error is not ErrorCode.NONE:
        return ShareOffset(summary.partition)
    if end is None:
        return ShareOffset(summary.partition, summary.start_offset, summary.leader_epoch)
    error, end_offset = end
    if error is not ErrorCode.NONE:
        return ShareOffset(summary.partition, start_offset=0, error=error, error_message=error.message)
    lag = as_int64(end_offset - summary.start_offset - summary.delivery_complete_count)
    return ShareOffset(summary.partition, summary.start_offset, summary.leader_epoch, lag)

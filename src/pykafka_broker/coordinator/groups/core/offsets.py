"""Committed offsets: commit and fetch.

A commit is fenced by the group (`kind.py`). A commit to a group that does not exist creates a "simple" group,
which is how consumers with their own assignment and administrators store offsets.

Offsets of open transactions are in `transactional_offsets.py`: a client that asks for stable offsets is told
to wait while one is pending (KIP-447). How offsets are forgotten is in `forgetting.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup
from pykafka_broker.coordinator.groups.core.committed_offset import (
    LATEST_TIMESTAMP_MS,
    NO_EXPIRY,
    CommittedOffset,
)
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import (
    CommitOffsets,
    FetchedOffset,
    FetchOffsets,
    FetchResult,
    PartitionCommit,
    TopicPartitions,
    refused_commit,
)
from pykafka_broker.coordinator.groups.core.kinds import kind_of
from pykafka_broker.coordinator.groups.core.offset_metadata import is_too_long, storable
from pykafka_broker.coordinator.groups.core.offset_record import OffsetRecord
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.turn import refuse
from pykafka_broker.machine.step import Reply, Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.topic_partition import PartitionKey

#: The first OffsetCommit version with GROUP_ID_NOT_FOUND for a missing group.
FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 9


# ---- OffsetCommit ----


def on_commit(groups: Groups, event: CommitOffsets, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Store offsets; a partition whose metadata is too long is refused alone."""
    group_id = event.group_id
    group = groups.groups.get(group_id)
    kind = None if group is None else kind_of(group)
    error = _no_group_error(event) if kind is None else kind.commit_error(group, event)
    if error is not ErrorCode.NONE and kind is not None:
        # Partitions with too long metadata are refused alone, without fencing; they are rare.
        storable_topics = storable(event.topics, config.offset_metadata_max_bytes)
        error = kind.commit_error(group, event._replace(topics=storable_topics))
    if error is not ErrorCode.NONE:
        return refuse(groups, event.token, refused_commit(event.topics, error))

    records: list[OffsetRecord] = []
    changes: dict[PartitionKey, CommittedOffset] = {}
    answers = []
    for topic, partitions, topic_id in event.topics:
        errors = []
        for commit in partitions:
            partition = commit.partition
            if commit.metadata and is_too_long(commit.metadata, config.offset_metadata_max_bytes):
                errors.append((partition, ErrorCode.OFFSET_METADATA_TOO_LARGE))
                continue
            committed = _committed(commit, topic_id, event)
            records.append(OffsetRecord(group_id, topic, partition, committed))
            changes[topic, partition] = committed
            errors.append((partition, ErrorCode.NONE))
        answers.append((topic, topic_id, tuple(errors)))

    state = groups
    if group is None:
        state = state.with_group(ClassicGroup(group_id))
    if changes:
        state = state.with_offsets(group_id, changes)
    alive = [] if kind is None else kind.commit_effects(group, event)
    return Step(state, tuple(records), (Reply(event.token, tuple(answers)), *alive))


def _no_group_error(event: CommitOffsets) -> ErrorCode:
    if event.generation < 0:
        return ErrorCode.NONE
    if event.version >= FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.ILLEGAL_GENERATION


def _committed(commit: PartitionCommit, topic_id: bytes, event: CommitOffsets) -> CommittedOffset:
    """The offset as it will be read back: a record with an expiry keeps neither epoch nor topic id."""
    if event.retention_ms == -1:
        return CommittedOffset(
            commit.offset, commit.leader_epoch, commit.metadata or "", event.now_ms, NO_EXPIRY, topic_id
        )
    return CommittedOffset(
        commit.offset,
        metadata=commit.metadata or "",
        commit_timestamp_ms=event.now_ms,
        expire_timestamp_ms=min(event.now_ms + event.retention_ms, LATEST_TIMESTAMP_MS),
    )


# ---- OffsetFetch ----


def on_fetch(groups: Groups, event: FetchOffsets) -> Step[Groups]:
    """Read offsets. A group or partition that is not there reads as offset -1 without an error."""
    group = groups.groups.get(event.group_id)
    error = ErrorCode.NONE if group is None else kind_of(group).fetch_error(group, event)
    if error is not ErrorCode.NONE:
        return refuse(groups, event.token, FetchResult(error))
    if event.topics is None:
        topics = _all_offsets(groups, event.group_id)
    else:
        topics = tuple(
            (topic.topic, topic.topic_id, tuple(_fetched(groups, event.group_id, topic)))
            for topic in event.topics
        )
    if event.require_stable and event.group_id in groups.pending.by_group:
        topics = _without_unstable(groups, event.group_id, topics)
    return refuse(groups, event.token, FetchResult(ErrorCode.NONE, topics))


def _without_unstable(
    groups: Groups, group_id: str, topics: tuple[tuple[str, bytes, tuple[FetchedOffset, ...]], ...]
) -> tuple[tuple[str, bytes, tuple[FetchedOffset, ...]], ...]:
    """Answer UNSTABLE_OFFSET_COMMIT for offsets that an open transaction may still change."""
    return tuple(
        (
            topic,
            topic_id,
            tuple(
                FetchedOffset(found.partition, error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
                if groups.pending.at(group_id, topic, found.partition)
                else found
                for found in partitions
            ),
        )
        for topic, topic_id, partitions in topics
    )


def _fetched(groups: Groups, group_id: str, asked: TopicPartitions) -> Iterator[FetchedOffset]:
    for partition in asked.partitions:
        committed = groups.committed(group_id, asked.topic, partition)
        if committed is None or not committed.is_for(asked.topic_id):
            yield FetchedOffset(partition)
        else:
            yield _shown(partition, committed)


def _all_offsets(groups: Groups, group_id: str) -> tuple[tuple[str, bytes, tuple[FetchedOffset, ...]], ...]:
    shown: dict[str, list[FetchedOffset]] = {}
    topic_ids: dict[str, bytes] = {}
    for (topic, partition), committed in (groups.offsets.get(group_id) or {}).items():
        topic_ids.setdefault(topic, committed.topic_id)
        shown.setdefault(topic, []).append(_shown(partition, committed))
    return tuple((topic, topic_ids[topic], tuple(partitions)) for topic, partitions in shown.items())


def _shown(partition: int, committed: CommittedOffset) -> FetchedOffset:
    return FetchedOffset(partition, committed.offset, committed.leader_epoch, committed.metadata)

"""Committed offsets: commit, fetch, delete, and how they age.

A commit is fenced by the group: members of the present generation may commit (not while the assignment is
being made), anybody may when the group has no members. A commit to a group that does not exist creates a
"simple" group, which is how consumers with their own assignment and administrators store offsets.

Offsets age as KIP-211 says: those of an empty group from when it became empty, those of a simple group from
their commit; those of a stable consumer group from their commit if nobody subscribes to the topic any more. A
commit with its own retention (OffsetCommit v2-4) keeps that. A group without members and without offsets is
forgotten.

Offsets of open transactions are in `transactional_offsets.py`. While one is pending for a partition, the
partition's offset does not expire, and who asks for stable offsets is told to wait (KIP-447).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pykafka_broker.coordinator.group.classic.records import group_tombstone
from pykafka_broker.coordinator.group.classic.state import ClassicGroup, Phase
from pykafka_broker.coordinator.group.classic.turn import fenced, session_timer
from pykafka_broker.coordinator.group.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.group.consumer import commits
from pykafka_broker.coordinator.group.consumer.records import consumer_group_tombstones
from pykafka_broker.coordinator.group.consumer.state import ConsumerGroup
from pykafka_broker.coordinator.group.events import (
    CommitOffsets,
    CommitResult,
    DeleteOffsets,
    DeleteOffsetsResult,
    FetchedOffset,
    FetchOffsets,
    FetchResult,
    PartitionCommit,
    TopicPartitions,
    TopicsDeleted,
)
from pykafka_broker.coordinator.group.offset_metadata import utf16_length
from pykafka_broker.coordinator.group.record import Record
from pykafka_broker.coordinator.group.records import offset_record, offset_tombstone
from pykafka_broker.coordinator.group.state import NO_TOPIC_ID, CommittedOffset, Group, Groups
from pykafka_broker.coordinator.group.turn import refuse
from pykafka_broker.coordinator.versioned_map import VersionedMap
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.step import Effect, Reply, SetTimer, Step

#: OffsetCommit versions from which on a missing group is named as such.
FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 9

LATEST_TIMESTAMP_MS = 2**63 - 1

Changes = dict[str, dict[int, CommittedOffset | None]]


# ---- OffsetCommit ----


def on_commit(groups: Groups, event: CommitOffsets, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Store offsets; a partition whose metadata is too long is refused alone."""
    group = groups.groups.get(event.group_id)
    error = _commit_error(group, event)
    if error is not ErrorCode.NONE:
        result: CommitResult = tuple(
            (topic.topic, topic.topic_id, tuple((commit.partition, error) for commit in topic.partitions))
            for topic in event.topics
        )
        return refuse(groups, event.token, result)

    records: list[Record] = []
    changes: Changes = {}
    answers = []
    for topic in event.topics:
        errors = []
        for commit in topic.partitions:
            if utf16_length(commit.metadata) > config.offset_metadata_max_bytes:
                errors.append((commit.partition, ErrorCode.OFFSET_METADATA_TOO_LARGE))
                continue
            committed = _committed(commit, topic.topic_id, event)
            records.append(offset_record(event.group_id, topic.topic, commit.partition, committed))
            changes.setdefault(topic.topic, {})[commit.partition] = committed
            errors.append((commit.partition, ErrorCode.NONE))
        answers.append((topic.topic, topic.topic_id, tuple(errors)))

    state = groups
    if group is None:
        state = state.with_group(ClassicGroup(event.group_id))
    if changes:
        state = state.with_offsets(event.group_id, changes)
    effects: list[Effect] = [Reply(event.token, tuple(answers))]
    if isinstance(group, ClassicGroup) and group.phase in (Phase.STABLE, Phase.PREPARING_REBALANCE):
        # Who commits is alive.
        timeout_ms = group.members[event.member_id].session_timeout_ms
        key = session_timer(event.group_id, event.member_id)
        effects.append(SetTimer(key, event.now_ms + timeout_ms))
    return Step(state, tuple(records), tuple(effects))


def _commit_error(group: Group | None, event: CommitOffsets) -> ErrorCode:
    if isinstance(group, ConsumerGroup):
        return commits.commit_error(group, event)
    if group is None:
        if event.generation < 0:
            return ErrorCode.NONE
        if event.version >= FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.ILLEGAL_GENERATION
    if event.generation < 0 and group.phase is Phase.EMPTY:
        return ErrorCode.NONE
    if event.generation < 0 and not event.member_id and event.group_instance_id is None:
        # Nobody in particular may commit only while there are no members.
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = fenced(group, event.member_id, event.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if event.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.phase is Phase.COMPLETING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _committed(commit: PartitionCommit, topic_id: bytes, event: CommitOffsets) -> CommittedOffset:
    """The offset as it will be read back: a record with an expiry keeps neither epoch nor topic id."""
    if event.retention_ms == -1:
        return CommittedOffset(
            commit.offset, commit.leader_epoch, commit.metadata or "", event.now_ms, topic_id=topic_id
        )
    return CommittedOffset(
        commit.offset,
        metadata=commit.metadata or "",
        commit_timestamp_ms=event.now_ms,
        expire_timestamp_ms=min(event.now_ms + event.retention_ms, LATEST_TIMESTAMP_MS),
    )


# ---- OffsetFetch ----


def on_fetch(groups: Groups, event: FetchOffsets) -> Step[Groups]:
    """Read offsets. What is not there, group or partition, reads as offset -1 without an error."""
    group = groups.consumer(event.group_id)
    error = ErrorCode.NONE if group is None else commits.fetch_error(group, event)
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
    """Where an open transaction may still change the offset, the reader has to come back."""
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
    topics = groups.offsets.get(group_id) or VersionedMap()
    return tuple(
        (
            topic,
            next((committed.topic_id for committed in partitions.values()), NO_TOPIC_ID),
            tuple(_shown(partition, committed) for partition, committed in partitions.items()),
        )
        for topic, partitions in topics.items()
    )


def _shown(partition: int, committed: CommittedOffset) -> FetchedOffset:
    return FetchedOffset(partition, committed.offset, committed.leader_epoch, committed.metadata)


# ---- OffsetDelete, deleted topics ----


def on_delete_offsets(groups: Groups, event: DeleteOffsets) -> Step[Groups]:
    """Forget offsets of topics nobody reads, which is only known of consumer groups while they live."""
    if not event.group_id:
        return refuse(groups, event.token, DeleteOffsetsResult(ErrorCode.INVALID_GROUP_ID))
    group = groups.groups.get(event.group_id)
    if group is None:
        return refuse(groups, event.token, DeleteOffsetsResult(ErrorCode.GROUP_ID_NOT_FOUND))
    if isinstance(group, ClassicGroup) and group.phase is not Phase.EMPTY and not group.is_consumer_group:
        return refuse(groups, event.token, DeleteOffsetsResult(ErrorCode.NON_EMPTY_GROUP))
    records: list[Record] = []
    changes: Changes = {}
    answers = []
    for topic in event.topics:
        subscribed = group.is_subscribed_to(topic.topic)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        answers.append((topic.topic, tuple((partition, error) for partition in topic.partitions)))
        for partition in () if subscribed else topic.partitions:
            if groups.has_offset(event.group_id, topic.topic, partition):
                _forget(event.group_id, topic.topic, partition, records, changes)
    reply = Reply(event.token, DeleteOffsetsResult(ErrorCode.NONE, tuple(answers)))
    state = groups.with_offsets(event.group_id, changes) if changes else groups
    return Step(state, tuple(records), (reply,))


def on_topics_deleted(groups: Groups, event: TopicsDeleted) -> Step[Groups]:
    """Drop the offsets of deleted topics, but not those already committed to a new topic of the same name."""
    state = groups
    records: list[Record] = []
    for group_id, topics in tuple(groups.offsets.items()):
        changes: Changes = {}
        for topic, topic_id in event.topics:
            for partition, committed in (topics.get(topic) or {}).items():
                if committed.is_for(topic_id):
                    _forget(group_id, topic, partition, records, changes)
        if changes:
            state = state.with_offsets(group_id, changes)
    deleted = {topic for topic, _ in event.topics}
    for group_id in tuple(state.pending.by_group):
        # Nothing is said of the topic's id in a transaction's offsets: they go by its name.
        gone: Changes = {}
        for topic, partition in state.pending.places_of(group_id):
            if topic in deleted:
                _forget(group_id, topic, partition, records, gone)
        if gone:
            state = state.with_offsets(group_id, gone)
    return Step(state, tuple(records))


def _forget(group_id: str, topic: str, partition: int, records: list[Record], changes: Changes) -> None:
    records.append(offset_tombstone(group_id, topic, partition))
    changes.setdefault(topic, {})[partition] = None


def forget_all_offsets(groups: Groups, group_id: str, records: list[Record]) -> Groups:
    """Drop every offset of a group."""
    for topic, partitions in (groups.offsets.get(group_id) or {}).items():
        records.extend(offset_tombstone(group_id, topic, partition) for partition in partitions)
    pending = groups.pending
    for place in pending.places_of(group_id):
        if groups.committed(group_id, *place) is None:
            records.append(offset_tombstone(group_id, *place))
        pending = pending.without_place(group_id, place)
    return groups._replace(offsets=groups.offsets.without(group_id), pending=pending)


# ---- expiry ----


def expire(
    groups: Groups, group_ids: Iterable[str], now_ms: int, config: GroupCoordinatorConfig
) -> tuple[Groups, tuple[Record, ...]]:
    """Drop what is too old in these groups, and those of them of which nothing is left."""
    state = groups
    records: list[Record] = []
    for group_id in group_ids:
        group = groups.groups.get(group_id)
        if group is None:
            continue  # it has gone since somebody made the list
        changes: Changes = {}
        nothing_left = True
        for topic, partition, committed in _offsets_of(groups, group_id):
            is_pending = groups.pending.at(group_id, topic, partition)
            if not is_pending and _is_expired(group, topic, committed, now_ms, config):
                _forget(group_id, topic, partition, records, changes)
            else:
                nothing_left = False
        if changes:
            state = state.with_offsets(group_id, changes)
        if nothing_left and is_empty(group) and group_id not in groups.pending.by_group:
            records += group_tombstones(group)
            state = state.without_group(group_id)
    return state, tuple(records)


def is_empty(group: Group) -> bool:
    """Has the group no members, so that it can be deleted?"""
    return not group.members if isinstance(group, ConsumerGroup) else group.phase is Phase.EMPTY


def group_tombstones(group: Group) -> list[Record]:
    """The records that a group is gone; its offsets have their own."""
    if isinstance(group, ConsumerGroup):
        return consumer_group_tombstones(group)
    return [group_tombstone(group.group_id)]


def _offsets_of(groups: Groups, group_id: str) -> Iterator[tuple[str, int, CommittedOffset]]:
    for topic, partitions in (groups.offsets.get(group_id) or {}).items():
        for partition, committed in partitions.items():
            yield topic, partition, committed


def _is_expired(
    group: Group, topic: str, committed: CommittedOffset, now_ms: int, config: GroupCoordinatorConfig
) -> bool:
    if group.is_subscribed_to(topic):
        return False
    since_ms = committed.commit_timestamp_ms
    if isinstance(group, ClassicGroup) and group.protocol_type is not None:
        if group.phase is Phase.EMPTY:
            # Old brokers did not record when a group became empty.
            since_ms = group.phase_began_ms if group.phase_began_ms != -1 else since_ms
        elif group.phase is not Phase.STABLE or group.subscribed_topics is None:
            return False
    if committed.expire_timestamp_ms != -1:
        return now_ms >= committed.expire_timestamp_ms
    return now_ms - since_ms >= config.offsets_retention_ms

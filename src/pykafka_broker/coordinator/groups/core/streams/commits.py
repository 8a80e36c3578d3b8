"""Decides which clients may commit and fetch offsets of a streams group.

A member names its epoch when it commits. An older epoch is accepted for partitions of tasks that it has had
since then: a commit may be in flight while the member's epoch moves on.
"""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.events import (
    CommitOffsets,
    CommitTransactionalOffsets,
    FetchOffsets,
)
from pykafka_broker.coordinator.groups.core.streams.state import StreamsGroup, StreamsMember
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.protocol.errors import ErrorCode

#: The first OffsetCommit version whose clients understand the errors of the streams protocol.
FIRST_VERSION_FOR_STREAMS = 9


def commit_error(group: StreamsGroup, event: CommitOffsets) -> ErrorCode:
    """May these offsets be committed? All or none of them."""
    if event.generation < 0 and not group.members:
        return ErrorCode.NONE
    member = group.members.get(event.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if event.version < FIRST_VERSION_FOR_STREAMS:
        return ErrorCode.UNSUPPORTED_VERSION
    return _epoch_error(group, member, event)


def commit_error_in_transaction(
    group: StreamsGroup, event: CommitTransactionalOffsets, topics: TopicDirectory
) -> ErrorCode:
    """May these offsets be committed in a transaction? A client without identity may. In an older epoch all
    topics must exist.
    """
    if event.generation < 0 and not group.members:
        return ErrorCode.NONE
    if event.generation == -1 and not event.member_id and event.group_instance_id is None:
        return ErrorCode.NONE
    member = group.members.get(event.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = _epoch_error(group, member, event)
    if event.generation < member.member_epoch and any(
        topics.topic(each.topic) is None for each in event.topics
    ):
        error = ErrorCode.STALE_MEMBER_EPOCH
    return ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH else error


def _epoch_error(
    group: StreamsGroup, member: StreamsMember, event: CommitOffsets | CommitTransactionalOffsets
) -> ErrorCode:
    if event.generation == member.member_epoch:
        return ErrorCode.NONE
    if event.generation < member.member_epoch and had_all_since(group, member, event):
        return ErrorCode.NONE
    return ErrorCode.STALE_MEMBER_EPOCH


def had_all_since(
    group: StreamsGroup, member: StreamsMember, event: CommitOffsets | CommitTransactionalOffsets
) -> bool:
    """Has the member had the active task of every partition since the epoch it commits in?"""
    if group.topology is None:
        return False
    for topic in event.topics:
        part = group.topology.subtopology_of(topic.topic)
        if part is None:
            return False
        assigned = member.assigned.active.get(part.subtopology_id, {})
        revoked = member.pending_revocation.active.get(part.subtopology_id, {})
        for commit in topic.partitions:
            since = assigned.get(commit.partition, revoked.get(commit.partition))
            if since is None or event.generation < since:
                return False
    return True


def fetch_error(group: StreamsGroup, event: FetchOffsets) -> ErrorCode:
    """May the sender see the group's offsets? A client without identity may; a member must know its epoch."""
    if event.member_id is None and event.member_epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(event.member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if event.member_epoch == member.member_epoch else ErrorCode.STALE_MEMBER_EPOCH

"""Decides which clients may commit and fetch offsets of a consumer group.

A member names its epoch when it commits. An older epoch is accepted for partitions that it has held since
then: a commit may be in flight while the member's epoch moves on.
"""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.consumer.state import ConsumerGroup, ConsumerMember
from pykafka_broker.coordinator.groups.core.events import CommitOffsets, FetchOffsets
from pykafka_broker.protocol.errors import ErrorCode

#: The first OffsetCommit version whose clients understand the errors of the consumer protocol.
FIRST_VERSION_FOR_CONSUMERS = 9


def commit_error(group: ConsumerGroup, event: CommitOffsets) -> ErrorCode:
    """May these offsets be committed? All or none of them."""
    if event.generation < 0 and not group.members:
        return ErrorCode.NONE
    member = group.members.get(event.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member.classic is None and event.version < FIRST_VERSION_FOR_CONSUMERS:
        return ErrorCode.UNSUPPORTED_VERSION
    if event.generation == member.member_epoch:
        return ErrorCode.NONE
    if event.generation < member.member_epoch and _had_all_since(member, event):
        return ErrorCode.NONE
    return stale(member)


def _had_all_since(member: ConsumerMember, event: CommitOffsets) -> bool:
    """Has the member had every partition since the epoch it commits in?"""
    for topic in event.topics:
        assigned = member.assigned.get(topic.topic_id, {})
        revoked = member.pending_revocation.get(topic.topic_id, {})
        for commit in topic.partitions:
            since = assigned.get(commit.partition, revoked.get(commit.partition))
            if since is None or event.generation < since:
                return False
    return True


def fetch_error(group: ConsumerGroup, event: FetchOffsets) -> ErrorCode:
    """May the sender see the group's offsets? A client without identity may; a member must know its epoch."""
    if event.member_id is None and event.member_epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(event.member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if event.member_epoch == member.member_epoch else stale(member)


def stale(member: ConsumerMember) -> ErrorCode:
    """The error for a member with a wrong epoch, by the protocol that it speaks."""
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION

"""TxnOffsetCommit: offsets that count when their producer's transaction commits, and the markers that say so.

The offsets are written at once, in a batch of the transaction. The rules of plain commits decide which
clients may write them, except that a producer may commit during a rebalance, and without naming a member
(before KIP-447).
"""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup
from pykafka_broker.coordinator.groups.core.committed_offset import CommittedOffset
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import (
    CommitTransactionalOffsets,
    CompleteTransaction,
    refused_commit,
)
from pykafka_broker.coordinator.groups.core.kinds import kind_of
from pykafka_broker.coordinator.groups.core.offset_metadata import is_too_long, storable
from pykafka_broker.coordinator.groups.core.offset_record import OffsetRecord
from pykafka_broker.coordinator.groups.core.state import Group, Groups
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.coordinator.groups.core.transactional_records import TransactionalRecord, TransactionEnd
from pykafka_broker.coordinator.groups.core.turn import refuse
from pykafka_broker.machine.step import Reply, Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.topic_partition import PartitionKey


def on_commit(
    groups: Groups, event: CommitTransactionalOffsets, config: GroupCoordinatorConfig
) -> Step[Groups]:
    """Keep offsets until the marker comes; a partition whose metadata is too long is refused alone."""
    group = groups.groups.get(event.group_id)
    error = _commit_error(group, event, groups.topics)
    if error is not ErrorCode.NONE:
        # As in a plain commit, partitions that are refused alone are not fenced.
        storable_topics = storable(event.topics, config.offset_metadata_max_bytes)
        error = _commit_error(group, event._replace(topics=storable_topics), groups.topics)
    if error is not ErrorCode.NONE:
        return refuse(groups, event.token, refused_commit(event.topics, error))

    records: list[TransactionalRecord] = []
    pending = groups.pending
    answers = []
    for topic in event.topics:
        errors = []
        for commit in topic.partitions:
            if is_too_long(commit.metadata, config.offset_metadata_max_bytes):
                errors.append((commit.partition, ErrorCode.OFFSET_METADATA_TOO_LARGE))
                continue
            committed = CommittedOffset(
                commit.offset, commit.leader_epoch, commit.metadata or "", event.now_ms
            )
            record = OffsetRecord(event.group_id, topic.topic, commit.partition, committed)
            records.append(TransactionalRecord(event.producer_id, event.producer_epoch, event.guard, record))
            place = topic.topic, commit.partition
            pending = pending.with_offset(event.producer_id, event.group_id, place, committed)
            errors.append((commit.partition, ErrorCode.NONE))
        answers.append((topic.topic, topic.topic_id, tuple(errors)))
    state = groups if group is not None else groups.with_group(ClassicGroup(event.group_id))
    reply = Reply(event.token, tuple(answers))
    return Step(state._replace(pending=pending), tuple(records), (reply,))


def _commit_error(
    group: Group | None, event: CommitTransactionalOffsets, directory: TopicDirectory
) -> ErrorCode:
    says_nothing = event.generation < 0 and not event.member_id and event.group_instance_id is None
    if group is None:
        return ErrorCode.NONE if event.generation < 0 else ErrorCode.ILLEGAL_GENERATION
    kind = kind_of(group)
    if says_nothing and kind.keeps_offsets:
        return ErrorCode.NONE
    return kind.commit_error_in_transaction(group, event, directory)


def on_end(groups: Groups, event: CompleteTransaction) -> Step[Groups]:
    """Write the marker; with it the offsets of the transaction count, or are forgotten."""
    marker = event.marker
    state = end_transaction(groups, marker.producer_id, commit=marker.commit)
    return Step(state, (TransactionEnd(marker),), (Reply(event.token, ErrorCode.NONE),))


def end_transaction(groups: Groups, producer_id: int, *, commit: bool) -> Groups:
    """The state after a producer's marker."""
    pending, counting = groups.pending.ended(producer_id, commit=commit)
    state = groups._replace(pending=pending)
    changes: dict[str, dict[PartitionKey, CommittedOffset]] = {}
    for group_id, place, committed in counting:
        changes.setdefault(group_id, {})[place] = committed
    for group_id, offsets in changes.items():
        state = state.with_committed(group_id, offsets)
    return state

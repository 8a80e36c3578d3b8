"""Which states are deleted before their share group, and which a group forgets with deleted topics."""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.share.events import (
    DeleteShareState,
    DeletionPurpose,
    ShareStateDeleted,
)
from pykafka_broker.coordinator.groups.core.share.initializing import combined
from pykafka_broker.coordinator.groups.core.share.records import apply, states_record, states_record_named
from pykafka_broker.coordinator.groups.core.share.state import NamedPartitions, ShareGroup, StatePartitions
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.protocol.errors import ErrorCode


def states_to_delete(
    group: ShareGroup, token: int, topics: TopicDirectory
) -> tuple[list[Record], DeleteShareState | None]:
    """The record that all states of a group are being deleted, and the work, if there are any.

    States already being deleted are requested again, for all partitions of their topics.
    """
    if group.states is None:
        return [], None
    again = {
        topic_id: NamedPartitions(topic.name, tuple(range(topic.partition_count)))
        for topic_id in group.states.deleting
        if (topic := topics.topic_by_id(topic_id)) is not None
    }
    gone = combined(combined(group.states.initialized, group.states.initializing), again)
    names = {topic_id: named.topic_name for topic_id, named in gone.items()}
    record = states_record_named(group.group_id, StatePartitions(deleting=tuple(gone)), names)
    if not gone:
        return [record], None
    asked = tuple((topic_id, named.partitions) for topic_id, named in gone.items())
    return [record], DeleteShareState(token, group.group_id, DeletionPurpose.GROUP, asked)


def error_of_deletion(event: ShareStateDeleted) -> ErrorCode:
    """The error that keeps a group from being deleted: that of the last topic with one; else NONE."""
    last = ErrorCode.NONE
    for _, errors in event.topics:
        failed = (error for _, error, _ in errors if error is not ErrorCode.NONE)
        last = next(failed, last)
    return last


def without_topics(
    group: ShareGroup, topic_ids: frozenset[bytes], topics: TopicDirectory, now_ms: int
) -> tuple[ShareGroup, list[Record]]:
    """Forget that partitions of deleted topics have states; the share coordinator deletes those by itself."""
    states = group.states
    if states is None or topic_ids.isdisjoint((*states.initializing, *states.initialized, *states.deleting)):
        return group, []
    left = StatePartitions(
        {key: named for key, named in states.initializing.items() if key not in topic_ids},
        {key: named for key, named in states.initialized.items() if key not in topic_ids},
        tuple(topic_id for topic_id in states.deleting if topic_id not in topic_ids),
    )
    record = states_record(group.group_id, left, topics)
    changed = apply(group, record)
    assert changed is not None
    return changed._replace(states_written_ms=now_ms, is_settled=False), [record]

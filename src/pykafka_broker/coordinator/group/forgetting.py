"""How committed offsets are forgotten, and groups of which nothing is left: by request, with topics, by age.

Offsets age as KIP-211 says; since when, their group's kind knows (`kind.py`). A commit with its own retention
(OffsetCommit v2-4) keeps that. A group without members and without offsets is forgotten. While an offset of
an open transaction is pending for a partition, the partition's offset does not expire.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pykafka_broker.coordinator.group.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.group.events import (
    DeleteOffsets,
    DeleteOffsetsResult,
    TopicsDeleted,
)
from pykafka_broker.coordinator.group.kinds import kind_of
from pykafka_broker.coordinator.group.record import Record
from pykafka_broker.coordinator.group.records import offset_tombstone
from pykafka_broker.coordinator.group.state import CommittedOffset, Group, Groups
from pykafka_broker.coordinator.group.turn import refuse
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.step import Reply, Step

Changes = dict[str, dict[int, CommittedOffset | None]]


def on_delete_offsets(groups: Groups, event: DeleteOffsets) -> Step[Groups]:
    """Forget offsets of topics nobody reads, which is only known of consumer groups while they live."""
    if not event.group_id:
        return refuse(groups, event.token, DeleteOffsetsResult(ErrorCode.INVALID_GROUP_ID))
    group = groups.groups.get(event.group_id)
    if group is None:
        return refuse(groups, event.token, DeleteOffsetsResult(ErrorCode.GROUP_ID_NOT_FOUND))
    kind = kind_of(group)
    error = kind.deletion_error(group)
    if error is not ErrorCode.NONE:
        return refuse(groups, event.token, DeleteOffsetsResult(error))
    records: list[Record] = []
    changes: Changes = {}
    answers = []
    for topic in event.topics:
        subscribed = kind.is_subscribed_to(group, topic.topic)
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
        if nothing_left and kind_of(group).is_empty(group) and group_id not in groups.pending.by_group:
            records += kind_of(group).tombstones(group)
            state = state.without_group(group_id)
    return state, tuple(records)


def _offsets_of(groups: Groups, group_id: str) -> Iterator[tuple[str, int, CommittedOffset]]:
    for topic, partitions in (groups.offsets.get(group_id) or {}).items():
        for partition, committed in partitions.items():
            yield topic, partition, committed


def _is_expired(
    group: Group, topic: str, committed: CommittedOffset, now_ms: int, config: GroupCoordinatorConfig
) -> bool:
    kind = kind_of(group)
    since_ms = kind.ages_since_ms(group, committed)
    if since_ms is None or kind.is_subscribed_to(group, topic):
        return False
    if committed.expire_timestamp_ms != -1:
        return now_ms >= committed.expire_timestamp_ms
    return now_ms - since_ms >= config.offsets_retention_ms

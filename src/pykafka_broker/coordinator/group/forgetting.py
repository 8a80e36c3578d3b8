"""How committed offsets are forgotten, and groups of which nothing is left: by request, with topics, by age.

Offsets age as KIP-211 says; since when, their group's kind knows (`kind.py`). A commit with its own retention
(OffsetCommit v2-4) keeps that. A group without members and without offsets is forgotten. While an offset of
an open transaction is pending for a partition, the partition's offset does not expire.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pykafka_broker.coordinator.group.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.group.events import (
    DeleteOffsets,
    DeleteOffsetsResult,
    TopicsDeleted,
)
from pykafka_broker.coordinator.group.kinds import kind_of
from pykafka_broker.coordinator.group.offset_record import OffsetRecord
from pykafka_broker.coordinator.group.pending import Place
from pykafka_broker.coordinator.group.record import AnyRecord
from pykafka_broker.coordinator.group.state import CommittedOffset, Group, Groups
from pykafka_broker.coordinator.group.turn import refuse
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.step import Reply, Step

#: The search for old offsets looks at so many groups in one go, and at no further one when those have so many
#: offsets; then it lets others have their turn.
GROUPS_PER_EXPIRY_SLICE = 500
OFFSETS_PER_EXPIRY_SLICE = 2_000


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
    records: list[AnyRecord] = []
    forgotten: list[Place] = []
    answers = []
    for topic in event.topics:
        subscribed = kind.is_subscribed_to(group, topic.topic)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        answers.append((topic.topic, tuple((partition, error) for partition in topic.partitions)))
        forgotten += [
            (topic.topic, partition)
            for partition in (() if subscribed else topic.partitions)
            if groups.has_offset(event.group_id, topic.topic, partition)
        ]
    reply = Reply(event.token, DeleteOffsetsResult(ErrorCode.NONE, tuple(answers)))
    state = _forget(groups, event.group_id, forgotten, records)
    return Step(state, tuple(records), (reply,))


def on_topics_deleted(groups: Groups, event: TopicsDeleted) -> Step[Groups]:
    """Drop the offsets of deleted topics, but not those already committed to a new topic of the same name."""
    state = groups
    records: list[AnyRecord] = []
    deleted: dict[str, list[bytes]] = {}
    for topic, topic_id in event.topics:
        deleted.setdefault(topic, []).append(topic_id)
    for group_id, offsets in tuple(groups.offsets.items()):
        gone = [
            place
            for place, committed in offsets.items()
            if place[0] in deleted and any(map(committed.is_for, deleted[place[0]]))
        ]
        state = _forget(state, group_id, gone, records)
    for group_id in tuple(state.pending.by_group):
        # Nothing is said of the topic's id in a transaction's offsets: they go by its name.
        gone = [place for place in state.pending.places_of(group_id) if place[0] in deleted]
        state = _forget(state, group_id, gone, records)
    return Step(state, tuple(records))


def _forget(groups: Groups, group_id: str, places: Sequence[Place], records: list[AnyRecord]) -> Groups:
    """Drop the offsets of these partitions."""
    if not places:
        return groups
    records.extend(OffsetRecord(group_id, *place, None) for place in places)
    return groups.without_offsets(group_id, places)


def forget_all_offsets(groups: Groups, group_id: str, records: list[AnyRecord]) -> Groups:
    """Drop every offset of a group."""
    records.extend(OffsetRecord(group_id, *place, None) for place in groups.offsets.get(group_id) or ())
    pending = groups.pending
    for place in pending.places_of(group_id):
        if groups.committed(group_id, *place) is None:
            records.append(OffsetRecord(group_id, *place, None))
        pending = pending.without_place(group_id, place)
    return groups._replace(offsets=groups.offsets.without(group_id), pending=pending)


# ---- expiry ----


def expiry_slice(groups: Groups, group_ids: Sequence[str]) -> int:
    """How many of these groups to look at in one go: one at least, if there is one."""
    offsets = 0
    for count, group_id in enumerate(group_ids, 1):
        offsets += len(groups.offsets.get(group_id) or ())
        if count == GROUPS_PER_EXPIRY_SLICE or offsets >= OFFSETS_PER_EXPIRY_SLICE:
            return count
    return len(group_ids)


def expire(
    groups: Groups, group_ids: Iterable[str], now_ms: int, config: GroupCoordinatorConfig
) -> tuple[Groups, tuple[AnyRecord, ...]]:
    """Drop what is too old in these groups, and those of them of which nothing is left."""
    state = groups
    records: list[AnyRecord] = []
    for group_id in group_ids:
        # Of the newest state: reading an older one costs as much as what has changed since.
        group = state.groups.get(group_id)
        if group is None:
            continue  # it has gone since somebody made the list
        forgotten: list[Place] = []
        nothing_left = True
        pending = state.pending.by_group.get(group_id) or ()
        for place, committed in (state.offsets.get(group_id) or {}).items():
            is_pending = place in pending
            if not is_pending and _is_expired(group, place[0], committed, now_ms, config):
                forgotten.append(place)
            else:
                nothing_left = False
        state = _forget(state, group_id, forgotten, records)
        if nothing_left and kind_of(group).is_empty(group) and not pending:
            records += kind_of(group).tombstones(group)
            state = state.without_group(group_id)
    return state, tuple(records)


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

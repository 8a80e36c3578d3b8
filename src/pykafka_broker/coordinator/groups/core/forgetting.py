"""Forgets committed offsets: on request, with their deleted topic, or by age; and empty groups.

To forget an offset takes some 8 us. Many offsets are forgotten in slices: each slice is a step of its own
that sets a timer for the next. Requests in between may find some of the offsets gone: Apache Kafka too
forgets old offsets and those of deleted topics some time later. Whole groups are deleted in `deletion.py`.

Offsets age by KIP-211; the kind of group tells since when (`kind.py`). A commit may have its own retention
(OffsetCommit v2-4). A group without members and without offsets is forgotten, unless it is a share group.
While an offset of an open transaction is pending for a partition, the partition's offset does not expire.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from pykafka_broker.coordinator.groups.core.committed_offset import CommittedOffset
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import (
    DeleteOffsets,
    DeleteOffsetsResult,
    TopicsDeleted,
)
from pykafka_broker.coordinator.groups.core.kinds import kind_of
from pykafka_broker.coordinator.groups.core.offset_record import OffsetRecord
from pykafka_broker.coordinator.groups.core.record import AnyRecord
from pykafka_broker.coordinator.groups.core.state import DeletedTopic, Group, Groups
from pykafka_broker.coordinator.groups.core.turn import refuse
from pykafka_broker.machine.step import AT_ONCE_MS, Reply, SetTimer, Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.topic_partition import PartitionKey

#: The most offsets forgotten in one slice.
OFFSETS_PER_SLICE = 1_000
#: The most offsets of deleted topics forgotten at once: all shards handle a deleted topic in the same turn.
OFFSETS_AT_ONCE = 20
#: Checking this many offsets that stay takes as long as forgetting one.
LOOKS_PER_OFFSET = 64
#: A slice of the search for old offsets ends after this many groups or offsets, whichever comes first.
GROUPS_PER_EXPIRY_SLICE = 500
OFFSETS_PER_EXPIRY_SLICE = 2_000
#: The timer of the next slice of the offsets of deleted topics.
DELETED_TOPICS_TIMER = ("deleted topics",)


def on_delete_offsets(groups: Groups, event: DeleteOffsets) -> Step[Groups]:
    """Forget offsets of topics that no member reads; NON_EMPTY_GROUP if the members' topics are unknown."""
    group = groups.groups.get(event.group_id)
    if group is None:
        return refuse(groups, event.token, DeleteOffsetsResult(ErrorCode.GROUP_ID_NOT_FOUND))
    kind = kind_of(group)
    error = kind.deletion_error(group)
    if error is not ErrorCode.NONE:
        return refuse(groups, event.token, DeleteOffsetsResult(error))
    records: list[AnyRecord] = []
    forgotten: list[PartitionKey] = []
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
    state = forget(groups, event.group_id, forgotten, records)
    return Step(state, tuple(records), (reply,))


# ---- deleted topics ----


def on_topics_deleted(groups: Groups, event: TopicsDeleted) -> Step[Groups]:
    """Drop the offsets of deleted topics, but not those already committed to a new topic of the same name.

    At most `OFFSETS_AT_ONCE` are dropped at once, more of them slice by slice.
    """
    ids: dict[str, tuple[bytes, ...]] = {}
    for topic, topic_id in event.topics:
        ids[topic] = (*ids.get(topic, ()), topic_id)
    with_offsets = [
        DeletedTopic(topic, topic_ids, event.now_ms, group_ids)
        for topic, topic_ids in ids.items()
        if (group_ids := _groups_with_offsets(groups, topic))
    ]
    if not with_offsets:
        return Step(groups)
    count = sum(sum(groups.offset_counts.get(deleted.topic, {}).values()) for deleted in with_offsets)
    state = groups._replace(deleted_topics=(*groups.deleted_topics, *with_offsets))
    if count > OFFSETS_AT_ONCE or groups.deleted_topics:
        return Step(state, (), (SetTimer(DELETED_TOPICS_TIMER, AT_ONCE_MS),))
    return on_deleted_topics_timer(state)


def on_deleted_topics_timer(groups: Groups) -> Step[Groups]:
    """Drop the next offsets of deleted topics."""
    state = groups
    records: list[AnyRecord] = []
    left = OFFSETS_PER_SLICE
    while state.deleted_topics and left > 0:
        deleted, *later = state.deleted_topics
        group_id, *others = deleted.group_ids
        gone = list(islice(_offsets_of(state, group_id, deleted), left))
        state = forget(state, group_id, gone, records)
        is_looked_through = len(gone) < left
        left -= len(gone) + 1 + len(state.offsets.get(group_id) or ()) // LOOKS_PER_OFFSET
        if is_looked_through:
            rest = [deleted._replace(group_ids=tuple(others))] if others else []
            state = state._replace(deleted_topics=(*rest, *later))
    effects = (SetTimer(DELETED_TOPICS_TIMER, AT_ONCE_MS),) if state.deleted_topics else ()
    return Step(state, tuple(records), effects)


def _groups_with_offsets(groups: Groups, topic: str) -> tuple[str, ...]:
    """The groups that have offsets of a topic, or may get them by a marker."""
    found = dict.fromkeys(groups.offset_counts.get(topic) or ())
    for group_id, places in groups.pending.by_group.items():
        if any(place[0] == topic for place in places):
            found[group_id] = None
    return tuple(found)


def _offsets_of(groups: Groups, group_id: str, deleted: DeletedTopic) -> Iterator[PartitionKey]:
    """The places of a group's offsets of a deleted topic."""
    for place, committed in (groups.offsets.get(group_id) or {}).items():
        if place[0] == deleted.topic and _is_of(deleted, committed):
            yield place
    # Offsets of transactions carry no topic id: they are found by the topic's name.
    for place, pending in (groups.pending.by_group.get(group_id) or {}).items():
        if place[0] != deleted.topic:
            continue
        committed_too = groups.committed(group_id, *place)
        if committed_too is not None and _is_of(deleted, committed_too):
            continue  # found above
        if all(each.committed.commit_timestamp_ms <= deleted.deleted_ms for each in pending):
            yield place


def _is_of(deleted: DeletedTopic, committed: CommittedOffset) -> bool:
    if committed.topic_id == ZERO_UUID and committed.commit_timestamp_ms > deleted.deleted_ms:
        return False
    return any(map(committed.is_for, deleted.topic_ids))


# ---- common to all ----


def places_of(groups: Groups, group_id: str, count: int) -> list[PartitionKey]:
    """The first `count` places at which a group has an offset, or may get one by a marker."""
    found = dict.fromkeys(islice(groups.offsets.get(group_id) or (), count))
    for place in groups.pending.by_group.get(group_id) or ():
        if len(found) == count:
            break
        found[place] = None
    return list(found)


def forget(groups: Groups, group_id: str, places: Sequence[PartitionKey], records: list[AnyRecord]) -> Groups:
    """Drop the offsets of these partitions."""
    if not places:
        return groups
    records.extend(OffsetRecord(group_id, *place, None) for place in places)
    return groups.without_offsets(group_id, places)


# ---- expiry ----


def expiry_slice(groups: Groups, group_ids: Sequence[str]) -> int:
    """The number of these groups to check in one slice: at least one, if there is one."""
    offsets = 0
    for count, group_id in enumerate(group_ids, 1):
        offsets += len(groups.offsets.get(group_id) or ())
        if count == GROUPS_PER_EXPIRY_SLICE or offsets >= OFFSETS_PER_EXPIRY_SLICE:
            return count
    return len(group_ids)


def expire(
    groups: Groups, group_ids: Sequence[str], now_ms: int, config: GroupCoordinatorConfig
) -> tuple[Groups, tuple[AnyRecord, ...], Sequence[str]]:
    """Drop expired offsets of these groups, and groups that are left empty.

    Also returns the groups that are not finished: a slice drops at most `OFFSETS_PER_SLICE` offsets.
    """
    state = groups
    records: list[AnyRecord] = []
    left = OFFSETS_PER_SLICE
    for position, group_id in enumerate(group_ids):
        # Read the newest state: reading an older one costs as much as the changes since.
        group = state.groups.get(group_id)
        if group is None:
            continue  # it was forgotten since the list was made
        expired = list(islice(_expired_offsets(state, group_id, group, now_ms, config), left))
        state = forget(state, group_id, expired, records)
        left -= len(expired)
        if not left:
            return state, tuple(records), group_ids[position:]
        nothing_left = group_id not in state.offsets and group_id not in state.pending.by_group
        kind = kind_of(group)
        if nothing_left and kind.is_empty(group) and kind.expires(group):
            records += kind.tombstones(group)
            state = state.without_group(group_id)
    return state, tuple(records), ()


def _expired_offsets(
    groups: Groups, group_id: str, group: Group, now_ms: int, config: GroupCoordinatorConfig
) -> Iterator[PartitionKey]:
    pending = groups.pending.by_group.get(group_id) or ()
    for place, committed in (groups.offsets.get(group_id) or {}).items():
        if place not in pending and _is_expired(group, place[0], committed, now_ms, config):
            yield place


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

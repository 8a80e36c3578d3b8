"""The records of share groups, as Apache Kafka 4.3 writes them, and how each changes a group.

Six kinds of records describe a group: its epoch, the epoch of its target, the partitions that have a state at
the share coordinator, and per member the subscription, the target, and the assignment it has. Transitions
change a group only by applying records they also write, so a replay leads to the same group.

Topics and partitions in a record are in the iteration order of Java's hash maps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from pykafka_broker.coordinator.groups.core.epoch_records import (
    group_tombstones,
    known_state,
    with_target,
    with_target_epoch,
    without_assignment,
)
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.share.state import (
    NO_ASSIGNMENT,
    Assignment,
    MemberState,
    NamedPartitions,
    PartitionsByTopic,
    ShareGroup,
    ShareMember,
    StatePartitions,
)
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.protocol.java_hash import int_hash, uuid_hash, walked
from pykafka_broker.protocol.messages.records import group as m

ShareGroupKey = (
    m.ShareGroupMemberMetadataKey
    | m.ShareGroupMetadataKey
    | m.ShareGroupTargetAssignmentMetadataKey
    | m.ShareGroupTargetAssignmentMemberKey
    | m.ShareGroupCurrentMemberAssignmentKey
    | m.ShareGroupStatePartitionMetadataKey
)

#: Written as the name of a topic that does not exist.
UNKNOWN_TOPIC_NAME = "<UNKNOWN>"


# ---- records that transitions write ----


def epoch_record(group_id: str, group_epoch: int, metadata_hash: int) -> Record:
    """The group has moved to an epoch."""
    return Record(
        m.ShareGroupMetadataKey(group_id=group_id),
        m.ShareGroupMetadataValue(epoch=group_epoch, metadata_hash=metadata_hash),
    )


def subscription_record(group_id: str, member: ShareMember) -> Record:
    """A member's identity and subscription."""
    return Record(
        m.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        m.ShareGroupMemberMetadataValue(
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.subscribed_topic_names, key=_as_java_sorts),
        ),
    )


def _as_java_sorts(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def target_epoch_record(group_id: str, assignment_epoch: int, assignment_timestamp_ms: int) -> Record:
    """A target has been made for an epoch."""
    return Record(
        m.ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
        m.ShareGroupTargetAssignmentMetadataValue(
            assignment_epoch=assignment_epoch, assignment_timestamp=assignment_timestamp_ms
        ),
    )


def target_record(group_id: str, member_id: str, target: Assignment) -> Record:
    """The target assignment of a member."""
    return Record(
        m.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        m.ShareGroupTargetAssignmentMemberValue(
            topic_partitions=[
                m.TopicPartition(topic_id=topic_id, partitions=list(partitions))
                for topic_id, partitions in target.items()
            ]
        ),
    )


def current_record(group_id: str, member: ShareMember) -> Record:
    """The partitions a member has, its epoch and its state."""
    return Record(
        m.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        m.ShareGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state.value,
            assigned_partitions=[
                m.ShareGroupCurrentMemberAssignmentTopicPartitions(
                    topic_id=topic_id, partitions=list(partitions)
                )
                for topic_id, partitions in member.assigned.items()
            ],
        ),
    )


def states_record(group_id: str, states: StatePartitions, topics: TopicDirectory) -> Record:
    """The partitions whose state at the share coordinator is initialized, initializing or being deleted.

    A topic whose state is being deleted is written with its current name.
    """
    names = {topic_id: topics.topic_by_id(topic_id) for topic_id in states.deleting}
    return states_record_named(
        group_id,
        states,
        {key: UNKNOWN_TOPIC_NAME if topic is None else topic.name for key, topic in names.items()},
    )


def states_record_named(group_id: str, states: StatePartitions, names: Mapping[bytes, str]) -> Record:
    """The same with given names of the topics whose state is being deleted."""
    return Record(
        m.ShareGroupStatePartitionMetadataKey(group_id=group_id),
        m.ShareGroupStatePartitionMetadataValue(
            initializing_topics=_infos(states.initializing),
            initialized_topics=_infos(states.initialized),
            deleting_topics=[
                m.ShareGroupStatePartitionMetadataTopicInfo(topic_id=topic_id, topic_name=names[topic_id])
                for topic_id in walked(states.deleting, uuid_hash)
            ],
        ),
    )


def _infos(topics: PartitionsByTopic) -> list[m.TopicPartitionsInfo]:
    return [
        m.TopicPartitionsInfo(
            topic_id=topic_id,
            topic_name=topics[topic_id].topic_name,
            partitions=list(topics[topic_id].partitions),
        )
        for topic_id in walked(topics, uuid_hash)
    ]


def member_tombstones(group_id: str, member_id: str) -> tuple[Record, Record, Record]:
    """The tombstones of a member: of its assignment, its target, and its metadata, in this order."""
    return (
        Record(m.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        Record(m.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        Record(m.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    )


def share_group_tombstones(group: ShareGroup) -> list[Record]:
    """The tombstones of a group."""
    group_id = group.group_id
    return group_tombstones(
        (member_tombstones(group_id, name) for name in group.members),
        m.ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
        m.ShareGroupStatePartitionMetadataKey(group_id=group_id),
        m.ShareGroupMetadataKey(group_id=group_id),
    )


def partitions_in_order(partitions: Iterable[int]) -> tuple[int, ...]:
    """Partitions in the iteration order of a Java set made from a list."""
    return tuple(walked(partitions, int_hash, sized=True))


# ---- how they change a group ----


def apply(group: ShareGroup | None, record: Record) -> ShareGroup | None:
    """`group` after `record`; None stands for no group. A tombstone may name a missing key."""
    key, value = record.key, record.value
    assert isinstance(key, ShareGroupKey)
    if group is None:
        if value is None:
            return None
        group = ShareGroup.new(key.group_id)
    match key:
        case m.ShareGroupMetadataKey():
            if value is None:
                return None
            assert isinstance(value, m.ShareGroupMetadataValue)
            return group._replace(group_epoch=value.epoch, metadata_hash=value.metadata_hash)
        case m.ShareGroupMemberMetadataKey():
            if value is None:
                return group.without_member(key.member_id)
            assert isinstance(value, m.ShareGroupMemberMetadataValue)
            return group.with_member(
                _member(group, key.member_id)._replace(
                    rack_id=value.rack_id,
                    client_id=value.client_id,
                    client_host=value.client_host,
                    subscribed_topic_names=frozenset(value.subscribed_topic_names),
                )
            )
        case m.ShareGroupTargetAssignmentMetadataKey():
            assert value is None or isinstance(value, m.ShareGroupTargetAssignmentMetadataValue)
            return with_target_epoch(group, value)
        case m.ShareGroupTargetAssignmentMemberKey():
            if value is None:
                return with_target(group, key.member_id, None)
            assert isinstance(value, m.ShareGroupTargetAssignmentMemberValue)
            target = _assignment((topic.topic_id, topic.partitions) for topic in value.topic_partitions)
            return with_target(group, key.member_id, target)
        case m.ShareGroupCurrentMemberAssignmentKey():
            if value is None:
                return without_assignment(group, key.member_id, assigned=NO_ASSIGNMENT)
            assert isinstance(value, m.ShareGroupCurrentMemberAssignmentValue)
            return group.with_member(
                _member(group, key.member_id)._replace(
                    member_epoch=value.member_epoch,
                    previous_member_epoch=value.previous_member_epoch,
                    state=known_state(MemberState, value.state),
                    assigned=_assignment(
                        (topic.topic_id, topic.partitions) for topic in value.assigned_partitions
                    ),
                )
            )
        case m.ShareGroupStatePartitionMetadataKey():
            if value is None:
                return group._replace(states=None)
            assert isinstance(value, m.ShareGroupStatePartitionMetadataValue)
            return group._replace(
                states=StatePartitions(
                    _partitions(value.initializing_topics),
                    _partitions(value.initialized_topics),
                    tuple(walked((topic.topic_id for topic in value.deleting_topics), uuid_hash)),
                )
            )
        case _:
            assert_never(key)


def _member(group: ShareGroup, member_id: str) -> ShareMember:
    return group.members.get(member_id) or ShareMember(member_id)


def _assignment(topics: Iterable[tuple[bytes, Iterable[int]]]) -> Assignment:
    """The assignment in a record, in the order of Apache Kafka's hash maps."""
    said = {topic_id: partitions_in_order(partitions) for topic_id, partitions in topics}
    return {topic_id: said[topic_id] for topic_id in walked(said, uuid_hash)}


def _partitions(infos: Iterable[m.TopicPartitionsInfo]) -> PartitionsByTopic:
    said = {
        info.topic_id: NamedPartitions(info.topic_name, partitions_in_order(info.partitions))
        for info in infos
    }
    return {topic_id: said[topic_id] for topic_id in walked(said, uuid_hash)}

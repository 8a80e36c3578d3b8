"""The records of consumer groups, as Apache Kafka 4.3 writes them, and how each changes a group.

Six records describe a group: its epoch, the epoch of its target, its regular expressions, and per member the
subscription, the target, and the assignment it really has. Transitions change a group only by applying
records they also write, so a replay leads to the same group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from pykafka_broker.coordinator.groups.core.classic.state import Protocol
from pykafka_broker.coordinator.groups.core.consumer.assignors.spec import Assignment
from pykafka_broker.coordinator.groups.core.consumer.state import (
    NOTHING_OWNED,
    ClassicMembership,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    OwnedPartitions,
    ResolvedRegex,
)
from pykafka_broker.coordinator.groups.core.epoch_records import (
    group_tombstones,
    known_state,
    with_target,
    with_target_epoch,
    without_assignment,
)
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.protocol.messages.records import group as m

ConsumerGroupKey = (
    m.ConsumerGroupMetadataKey
    | m.ConsumerGroupPartitionMetadataKey
    | m.ConsumerGroupMemberMetadataKey
    | m.ConsumerGroupTargetAssignmentMetadataKey
    | m.ConsumerGroupTargetAssignmentMemberKey
    | m.ConsumerGroupCurrentMemberAssignmentKey
    | m.ConsumerGroupRegularExpressionKey
)


# ---- records that transitions write ----


def epoch_record(group_id: str, group_epoch: int, metadata_hash: int) -> Record:
    """The group has moved to an epoch."""
    return Record(
        m.ConsumerGroupMetadataKey(group_id=group_id),
        m.ConsumerGroupMetadataValue(epoch=group_epoch, metadata_hash=metadata_hash),
    )


def subscription_record(group_id: str, member: ConsumerMember) -> Record:
    """A member's identity and subscription."""
    classic = None
    if member.classic is not None:
        classic = m.ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                m.ClassicProtocol(name=protocol.name, metadata=protocol.metadata)
                for protocol in member.classic.protocols
            ],
        )
    return Record(
        m.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        m.ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.subscribed_topic_names),
            subscribed_topic_regex=member.subscribed_topic_regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.server_assignor,
            classic_member_metadata=classic,
        ),
    )


def target_epoch_record(group_id: str, assignment_epoch: int, assignment_timestamp_ms: int) -> Record:
    """A target has been made for an epoch."""
    return Record(
        m.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        m.ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=assignment_epoch, assignment_timestamp=assignment_timestamp_ms
        ),
    )


def target_record(group_id: str, member_id: str, target: Assignment) -> Record:
    """The target assignment of a member."""
    return Record(
        m.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        m.ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                m.TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in target.items()
            ]
        ),
    )


def current_record(group_id: str, member: ConsumerMember) -> Record:
    """The partitions a member has, its epoch and its state."""
    return Record(
        m.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        m.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state.value,
            assigned_partitions=_owned(member.assigned),
            partitions_pending_revocation=_owned(member.pending_revocation),
        ),
    )


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> Record:
    """The topics a regular expression stands for."""
    return Record(
        m.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        m.ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
        ),
    )


def regex_tombstone(group_id: str, regex: str) -> Record:
    """No member subscribes to a regular expression any more."""
    return Record(m.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)


def subscription_metadata_tombstone(group_id: str) -> Record:
    """Delete the topic metadata that older brokers stored with the group."""
    return Record(m.ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_tombstones(group_id: str, member_id: str) -> tuple[Record, Record, Record]:
    """The tombstones of a member: of its assignment, its target, and its metadata, in this order."""
    return (
        Record(m.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        Record(m.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        Record(m.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    )


def consumer_group_tombstones(group: ConsumerGroup, member_ids: Iterable[str] | None = None) -> list[Record]:
    """The tombstones of a group; `member_ids` overrides the ids of its members."""
    group_id = group.group_id
    regexes = (
        m.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
        for regex in group.regexes
    )
    return group_tombstones(
        (member_tombstones(group_id, name) for name in member_ids or group.members),
        m.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        *regexes,
        m.ConsumerGroupPartitionMetadataKey(group_id=group_id),
        m.ConsumerGroupMetadataKey(group_id=group_id),
    )


def consumer_group_records(group: ConsumerGroup) -> list[Record]:
    """All records of a group that was just converted from another kind."""
    group_id = group.group_id
    return [
        *(subscription_record(group_id, member) for member in group.members.values()),
        epoch_record(group_id, group.group_epoch, group.metadata_hash),
        *(target_record(group_id, member_id, group.target_of(member_id)) for member_id in group.members),
        target_epoch_record(group_id, group.assignment_epoch, group.assignment_timestamp_ms),
        *(current_record(group_id, member) for member in group.members.values()),
    ]


def _owned(owned: OwnedPartitions) -> list[m.ConsumerGroupCurrentMemberAssignmentTopicPartitions]:
    result = []
    for topic_id, epochs in owned.items():
        partitions = sorted(epochs)
        result.append(
            m.ConsumerGroupCurrentMemberAssignmentTopicPartitions(
                topic_id=topic_id,
                partitions=partitions,
                assignment_epochs=[epochs[partition] for partition in partitions],
            )
        )
    return result


# ---- how they change a group ----


def apply(group: ConsumerGroup | None, record: Record) -> ConsumerGroup | None:
    """`group` after `record`; None stands for no group. A tombstone may name a missing key."""
    key, value = record.key, record.value
    assert isinstance(key, ConsumerGroupKey)
    if group is None:
        if value is None:
            return None
        group = ConsumerGroup.new(key.group_id)
    match key:
        case m.ConsumerGroupMetadataKey():
            if value is None:
                return None
            assert isinstance(value, m.ConsumerGroupMetadataValue)
            return group._replace(group_epoch=value.epoch, metadata_hash=value.metadata_hash)
        case m.ConsumerGroupPartitionMetadataKey():
            return group._replace(has_subscription_metadata_record=value is not None)
        case m.ConsumerGroupMemberMetadataKey():
            if value is None:
                return group.without_member(key.member_id)
            assert isinstance(value, m.ConsumerGroupMemberMetadataValue)
            return group.with_member(_with_subscription(_member(group, key.member_id), value))
        case m.ConsumerGroupTargetAssignmentMetadataKey():
            assert value is None or isinstance(value, m.ConsumerGroupTargetAssignmentMetadataValue)
            return with_target_epoch(group, value)
        case m.ConsumerGroupTargetAssignmentMemberKey():
            if value is None:
                return with_target(group, key.member_id, None)
            assert isinstance(value, m.ConsumerGroupTargetAssignmentMemberValue)
            target = {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}
            return with_target(group, key.member_id, target)
        case m.ConsumerGroupCurrentMemberAssignmentKey():
            if value is None:
                return without_assignment(
                    group, key.member_id, assigned=NOTHING_OWNED, pending_revocation=NOTHING_OWNED
                )
            assert isinstance(value, m.ConsumerGroupCurrentMemberAssignmentValue)
            return group.with_member(_with_assignment(_member(group, key.member_id), value))
        case m.ConsumerGroupRegularExpressionKey():
            regexes = dict(group.regexes)
            regexes.pop(key.regular_expression, None)
            if value is not None:
                assert isinstance(value, m.ConsumerGroupRegularExpressionValue)
                regexes[key.regular_expression] = ResolvedRegex(
                    frozenset(value.topics), value.version, value.timestamp
                )
            return group._replace(regexes=regexes)
        case _:
            assert_never(key)


def _member(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    return group.members.get(member_id) or ConsumerMember(member_id)


def _with_subscription(member: ConsumerMember, value: m.ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    classic = None
    if value.classic_member_metadata is not None:
        said = value.classic_member_metadata
        classic = ClassicMembership(
            said.session_timeout_ms,
            tuple(Protocol(protocol.name, bytes(protocol.metadata)) for protocol in said.supported_protocols),
        )
    return member._replace(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=frozenset(value.subscribed_topic_names),
        subscribed_topic_regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=classic,
    )


def _with_assignment(
    member: ConsumerMember, value: m.ConsumerGroupCurrentMemberAssignmentValue
) -> ConsumerMember:
    return member._replace(
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=known_state(MemberState, value.state),
        assigned=_owned_from(value.assigned_partitions, value.member_epoch),
        pending_revocation=_owned_from(value.partitions_pending_revocation, value.member_epoch),
    )


def _owned_from(
    topics: Iterable[m.ConsumerGroupCurrentMemberAssignmentTopicPartitions], member_epoch: int
) -> OwnedPartitions:
    """The partitions in a record; without assignment epochs (older brokers) the member's epoch counts."""
    owned: dict[bytes, Mapping[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs or ()
        if len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return owned

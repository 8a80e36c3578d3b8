"""Membership of a consumer group: finding the sender of a request, replacing a static member, and leaving."""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.coordinator.groups.core.consumer.records import (
    current_record,
    member_tombstones,
    regex_tombstone,
    subscription_record,
    target_record,
)
from pykafka_broker.coordinator.groups.core.consumer.state import ConsumerGroup, ConsumerMember
from pykafka_broker.coordinator.groups.core.consumer.turn import ConsumerTurn
from pykafka_broker.protocol.epochs import JOIN_EPOCH, LEAVE_STATIC_EPOCH
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


def static_member(group: ConsumerGroup, instance_id: str | None) -> ConsumerMember | None:
    """The current member with an instance id."""
    owner = group.static_members.get(instance_id) if instance_id is not None else None
    return None if owner is None else group.members.get(owner)


def static_member_named(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    """The static member with this instance id, if it has this member id.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.

    """
    member = static_member(group, instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def joining_static_member(
    turn: ConsumerTurn, member_id: str, instance_id: str, *, is_classic: bool
) -> ConsumerMember:
    """A static member that joins: a new one, or one that replaces the last member with its instance id.

    Raises:
        KafkaError: UNRELEASED_INSTANCE_ID, the last member has not left.

    """
    former = static_member(turn.group, instance_id)
    if former is None:
        return turn.group.members.get(member_id) or ConsumerMember(member_id)
    has_left = former.member_epoch == LEAVE_STATIC_EPOCH
    if not is_classic and former.classic is None and not has_left:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
            f"instance id is owned by {former.member_id} member.",
        )
    successor = former._replace(
        member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=JOIN_EPOCH
    )
    target = turn.group.target_of(former.member_id)
    turn.write(
        *member_tombstones(turn.group_id, former.member_id),
        subscription_record(turn.group_id, successor),
        target_record(turn.group_id, member_id, target),
        current_record(turn.group_id, successor),
    )
    if former.member_id != member_id:
        turn.cancel_timers(former.member_id)
    return successor


def remove_members(turn: ConsumerTurn, members: Iterable[ConsumerMember]) -> None:
    """Remove members from the group, which moves to its next epoch."""
    removed = list(members)
    for member in removed:
        turn.write(*member_tombstones(turn.group_id, member.member_id))
        turn.cancel_timers(member.member_id)
    for regex in dict.fromkeys(member.subscribed_topic_regex for member in removed):
        if regex and regex not in turn.group.regex_counts:
            turn.write(regex_tombstone(turn.group_id, regex))
    turn.bump_epoch(always=True)

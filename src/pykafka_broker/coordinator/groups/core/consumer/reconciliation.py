"""The steps of a member from its partitions to its target, in which no partition ever has two owners.

    STABLE ── new target ──▶ UNREVOKED_PARTITIONS ── confirmed ──▶ (UNRELEASED_PARTITIONS) ──▶ STABLE
                             asked to give up                       waits for others to
                             partitions                             give up theirs

A member is first told to keep only those of its partitions that are in its target. Once it confirms that by
naming the ones it owns, it moves to the epoch of the target and gets those of its new partitions that are
free; the others follow when they become free. Each partition carries the epoch in which its member got it, so
that a commit in an older epoch is accepted only if the member had the partition then.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import assert_never

from pykafka_broker.coordinator.groups.core.consumer.assignors.spec import Assignment
from pykafka_broker.coordinator.groups.core.consumer.state import (
    NOTHING_OWNED,
    ConsumerMember,
    MemberState,
    OwnedPartitions,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.named_tuple import NamedTuple

#: The partitions that a member reports, as (topic id, partitions); None without a report.
OwnedByClaim = tuple[tuple[bytes, tuple[int, ...]], ...] | None


class Target(NamedTuple):
    """The target assignment of a member, and the partitions that others still own."""

    assignment_epoch: int
    assignment: Assignment
    #: Existing topics the member subscribes to, which the target may not know yet.
    subscribed_topic_ids: Set[bytes]
    #: The subscription has just changed.
    subscription_changed: bool
    #: (topic id, partition) -> the epoch of the member that has it.
    partition_epochs: Mapping[tuple[bytes, int], int]


def reconciled(member: ConsumerMember, target: Target, owned: OwnedByClaim) -> ConsumerMember:
    """The member after its next step towards the target; the same if it has to wait.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH, the member must give up everything and join again.

    """
    match member.state:
        case MemberState.STABLE:
            if member.member_epoch != target.assignment_epoch:
                return _advance(member, member.member_epoch, target, owned)
            if target.subscription_changed:
                return _give_up_unsubscribed(member, target, owned)
            return member
        case MemberState.UNREVOKED_PARTITIONS:
            if not _owns_any(member.pending_revocation, owned):
                return _advance(member, member.member_epoch, target, owned)
            if target.subscription_changed:
                return _give_up_unsubscribed(member, target, owned)
            return member
        case MemberState.UNRELEASED_PARTITIONS:
            return _advance(member, member.member_epoch, target, owned)
        case MemberState.UNKNOWN:
            if owned is None or owned:
                raise KafkaError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The consumer group member is in a unknown state. "
                    "The member must abandon all its partitions and rejoin.",
                )
            return _advance(member, target.assignment_epoch, target, owned)
        case _:
            assert_never(member.state)


def _owns_any(partitions: OwnedPartitions, owned: OwnedByClaim) -> bool:
    """Does the member still own any of these partitions? It does until it reports otherwise."""
    if owned is None:
        return True
    return any(
        partition in partitions.get(topic_id, ()) for topic_id, claimed in owned for partition in claimed
    )


def _give_up_unsubscribed(member: ConsumerMember, target: Target, owned: OwnedByClaim) -> ConsumerMember:
    """Take away topics the member does not subscribe to any more, without waiting for a new target."""
    kept = {
        topic_id: partitions
        for topic_id, partitions in member.assigned.items()
        if topic_id in target.subscribed_topic_ids
    }
    if len(kept) == len(member.assigned):
        return member
    revoked = {topic_id: dict(partitions) for topic_id, partitions in member.pending_revocation.items()}
    for topic_id, partitions in member.assigned.items():
        if topic_id not in kept:
            revoked.setdefault(topic_id, {}).update(partitions)
    if _owns_any(revoked, owned):
        return _moved(member, member.member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
    return _moved(member, member.member_epoch, member.state, kept, member.pending_revocation)


def _advance(
    member: ConsumerMember, member_epoch: int, target: Target, owned: OwnedByClaim
) -> ConsumerMember:
    """Compute the partitions that the member may have now, as a step to the target."""
    kept: dict[bytes, dict[int, int]] = {}
    revoked: dict[bytes, dict[int, int]] = {}
    free: dict[bytes, list[int]] = {}
    must_wait = False
    for topic_id in {**target.assignment, **member.assigned}:
        wanted = target.assignment.get(topic_id, frozenset())
        if topic_id not in target.subscribed_topic_ids:
            wanted = frozenset()
        has = member.assigned.get(topic_id, {})
        for partition, epoch in has.items():
            part = kept if partition in wanted else revoked
            part.setdefault(topic_id, {})[partition] = epoch
        just_revoked = member.pending_revocation.get(topic_id, ())
        for partition in wanted:
            if partition in has:
                continue
            if (topic_id, partition) in target.partition_epochs and partition not in just_revoked:
                must_wait = True
            else:
                free.setdefault(topic_id, []).append(partition)

    if revoked and _owns_any(revoked, owned):
        return _moved(member, member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
    for topic_id, partitions in free.items():
        given = kept.setdefault(topic_id, {})
        given.update(dict.fromkeys(partitions, target.assignment_epoch))
    state = MemberState.UNRELEASED_PARTITIONS if must_wait else MemberState.STABLE
    return _moved(member, target.assignment_epoch, state, kept, NOTHING_OWNED)


def _moved(
    member: ConsumerMember,
    member_epoch: int,
    state: MemberState,
    assigned: OwnedPartitions,
    pending_revocation: OwnedPartitions,
) -> ConsumerMember:
    return member._replace(
        member_epoch=member_epoch,
        previous_member_epoch=member.member_epoch,
        state=state,
        assigned=assigned,
        pending_revocation=pending_revocation,
    )

"""A group with members changes between the classic and the consumer protocol (KIP-848).

It becomes a consumer group when the first member joins with the consumer protocol: classic members stay, with
their partitions, and are answered through `classic_members.py`. It becomes a classic group again when the
last member with the consumer protocol leaves, or restarts with the classic one under its instance id.
`group.consumer.migration.policy` may forbid either.

Apache Kafka takes the targets as the assignments of the classic group. Here the assignments are the
partitions that members really have, and if a member is not at its target, all members are asked to join
again. Otherwise a group that is upgraded again too early would give away partitions in use.
"""

from __future__ import annotations

from collections.abc import Collection

from pykafka_broker.coordinator.groups.core.classic.rebalance import prepare_rebalance, supporters_after
from pykafka_broker.coordinator.groups.core.classic.records import group_record, group_tombstone
from pykafka_broker.coordinator.groups.core.classic.state import (
    CONSUMER_PROTOCOL_TYPE,
    ClassicGroup,
    Member,
    Phase,
)
from pykafka_broker.coordinator.groups.core.classic.subscription import subscribed_topics
from pykafka_broker.coordinator.groups.core.classic.turn import Turn, join_timer, session_timer, sync_timer
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.consumer.assignors.spec import Assignment
from pykafka_broker.coordinator.groups.core.consumer.consumer_protocol import (
    by_topic_id,
    read_assignment,
    read_subscription,
    write_assignment,
)
from pykafka_broker.coordinator.groups.core.consumer.members import remove_members
from pykafka_broker.coordinator.groups.core.consumer.records import (
    consumer_group_records,
    consumer_group_tombstones,
)
from pykafka_broker.coordinator.groups.core.consumer.state import (
    NOTHING_OWNED,
    ClassicMembership,
    ConsumerGroup,
    ConsumerMember,
    held_partitions,
)
from pykafka_broker.coordinator.groups.core.consumer.turn import ConsumerTurn
from pykafka_broker.coordinator.groups.core.events import JoinResult, SyncResult
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory, group_hash
from pykafka_broker.machine.step import CancelTimer, Reply
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError


def group_to_join(
    groups: Groups, group_id: str, now_ms: int, config: GroupCoordinatorConfig, *, joins: bool
) -> ConsumerTurn:
    """The consumer group that a member names. A member that joins may create it, or convert a classic one.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, there is no such group, or it cannot become one.

    """
    group = groups.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return ConsumerTurn(groups, group, now_ms, config)
    if group is None and not joins:
        raise _not_found(f"Consumer group {group_id} not found.")
    if group is not None and not (joins and isinstance(group, ClassicGroup)):
        raise _not_found(f"Group {group_id} is not a consumer group.")
    if group is not None and group.phase is not Phase.EMPTY:
        return _upgraded(groups, group, now_ms, config)
    turn = ConsumerTurn(groups, ConsumerGroup.new(group_id), now_ms, config)
    if group is not None:
        turn.records.append(group_tombstone(group_id))
    return turn


def _not_found(message: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)


# ---- upgrade ----


def _upgraded(
    groups: Groups, classic: ClassicGroup, now_ms: int, config: GroupCoordinatorConfig
) -> ConsumerTurn:
    cannot = f"Cannot upgrade classic group {classic.group_id} to consumer group because "
    if not config.consumer_group_migration_policy.allows_upgrade:
        raise _not_found(cannot + "online upgrade is disabled.")
    if not classic.is_consumer_group:
        raise _not_found(cannot + "the group does not use the consumer embedded protocol.")
    if len(classic.members) > config.consumer_group_max_size:
        raise _not_found(cannot + "the group size exceeds the consumer group maximum size.")
    if classic.protocol_name is None:
        # Its members are still joining their first generation. The error is Kafka's.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        group = consumer_group_of(classic, groups.topics)
    except ProtocolError:
        raise _not_found(cannot + "the embedded consumer protocol is malformed.") from None
    except _CustomAssignorError:
        raise _not_found(
            cannot + "an unsupported custom assignor is in use. Please refer to the documentation or switch "
            "to a default assignor before re-attempting the upgrade."
        ) from None
    turn = ConsumerTurn(groups, group, now_ms, config)
    turn.records += [group_tombstone(classic.group_id), *consumer_group_records(group)]
    for member_id, token in classic.joining.items():
        turn.effects.append(Reply(token, JoinResult(ErrorCode.REBALANCE_IN_PROGRESS, member_id)))
    for token in classic.syncing.values():
        turn.effects.append(Reply(token, SyncResult(ErrorCode.REBALANCE_IN_PROGRESS)))
    for timer in (join_timer(classic.group_id), sync_timer(classic.group_id)):
        turn.effects.append(CancelTimer(timer))
    for member_id in (*classic.members, *sorted(classic.pending_members)):
        turn.effects.append(CancelTimer(session_timer(classic.group_id, member_id)))
    for member in group.members.values():
        assert member.classic is not None
        turn.reset_session(member.member_id, member.classic.session_timeout_ms)
    return turn


class _CustomAssignorError(Exception):
    """An assignment carries user data of its assignor, which a consumer group cannot keep."""


def consumer_group_of(classic: ClassicGroup, topics: TopicDirectory) -> ConsumerGroup:
    """The consumer group that a classic group becomes; all its epochs are the generation.

    Raises:
        ProtocolError: the metadata of members cannot be read.
        _CustomAssignorError: see there.

    """
    epoch = classic.generation
    group = ConsumerGroup.new(classic.group_id)._replace(group_epoch=epoch, assignment_epoch=epoch)
    for member in classic.members.values():
        subscription = read_subscription(member.metadata(classic.protocol_name))
        target = _assignment_of(member, topics)
        new = ConsumerMember(
            member.member_id,
            member_epoch=epoch,
            previous_member_epoch=epoch,
            instance_id=member.group_instance_id,
            rack_id=subscription.rack_id or None,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=frozenset(subscription.topics),
            assigned={topic_id: dict.fromkeys(sorted(target[topic_id]), epoch) for topic_id in target}
            or NOTHING_OWNED,
            classic=ClassicMembership(member.session_timeout_ms, member.protocols),
        )
        group = group.with_member(new)
        group = group._replace(targets=group.targets.with_item(member.member_id, target))
    if not _covers_subscriptions(group, topics):
        # Without a fingerprint the group checks its topics at once. Apache Kafka sets one here, and waits
        # until something else changes.
        return group
    return group._replace(metadata_hash=group_hash(group.name_counts, topics))


def _covers_subscriptions(group: ConsumerGroup, topics: TopicDirectory) -> bool:
    """Is every subscribed partition in the target of a member?"""
    subscribed = [topic for name in group.name_counts if (topic := topics.topic(name)) is not None]
    return all(
        any(number in target.get(topic.topic_id, ()) for target in group.targets.values())
        for topic in subscribed
        for number in range(topic.partition_count)
    )


def _assignment_of(member: Member, topics: TopicDirectory) -> Assignment:
    if not member.assignment:
        return {}
    assignment = read_assignment(member.assignment)
    if assignment.user_data:
        raise _CustomAssignorError
    assigned = by_topic_id(assignment.assigned_partitions, topics)
    return {topic_id: frozenset(partitions) for topic_id, partitions in assigned if partitions}


# ---- downgrade ----


def fence_members(turn: ConsumerTurn, members: Collection[ConsumerMember]) -> None:
    """Remove members. If only classic members are left, the group becomes a classic one."""
    if not members:
        return
    leaving = {member.member_id for member in members}
    staying = [member for name, member in turn.group.members.items() if name not in leaving]
    if (
        staying
        and all(member.classic is not None for member in staying)
        and may_downgrade(turn, len(staying))
    ):
        become_classic(turn, staying, rebalance=True)
    else:
        remove_members(turn, members)


def may_downgrade(turn: ConsumerTurn, size: int) -> bool:
    """May the group become a classic one of `size` members?"""
    return turn.config.consumer_group_migration_policy.allows_downgrade and size <= turn.config.group_max_size


def become_classic(turn: ConsumerTurn, staying: Collection[ConsumerMember], *, rebalance: bool) -> None:
    """Make the group a classic one of the members that stay; their partitions become their assignments."""
    group = turn.group
    rebalance = rebalance or not all(each.is_reconciled_to(group.assignment_epoch) for each in staying)
    members: dict[str, Member] = {}
    supporters: dict[str, int] = {}
    for each in staying:
        assert each.classic is not None
        supporters = dict(supporters_after(supporters, (), each.classic.protocols))
        members[each.member_id] = Member(
            each.member_id,
            each.client_id,
            each.client_host,
            each.rebalance_timeout_ms,
            each.classic.session_timeout_ms,
            each.classic.protocols,
            each.instance_id,
        )
    classic = ClassicGroup(
        group.group_id,
        phase=Phase.STABLE,
        generation=turn.epoch_before,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        leader_id=next(iter(members)),
        phase_began_ms=turn.now_ms,
        members=members,
        static_members={each.instance_id: each.member_id for each in staying if each.instance_id is not None},
        supporters=supporters,
    )
    protocol_name = classic.chosen_protocol()
    assigned = {
        name: member._replace(
            assignment=write_assignment(
                _held(group.members[name]), member.metadata(protocol_name), turn.groups.topics
            )
        )
        for name, member in members.items()
    }
    classic = classic._replace(
        protocol_name=protocol_name,
        members=assigned,
        subscribed_topics=subscribed_topics(CONSUMER_PROTOCOL_TYPE, protocol_name, assigned.values()),
    )
    turn.records += [*consumer_group_tombstones(group), group_record(classic)]
    for member_id in group.members:
        turn.cancel_timers(member_id)
    successor = Turn(classic, turn.now_ms, turn.config)
    for member in assigned.values():
        successor.reset_session(member)
    if rebalance:
        prepare_rebalance(successor)
    turn.records += successor.records
    turn.effects += successor.effects
    turn.successor = successor.group


def _held(member: ConsumerMember) -> Assignment:
    held: dict[bytes, set[int]] = {}
    for topic_id, partition in held_partitions(member):
        held.setdefault(topic_id, set()).add(partition)
    return {topic_id: frozenset(partitions) for topic_id, partitions in held.items()}

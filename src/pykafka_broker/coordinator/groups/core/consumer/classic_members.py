"""Members of a consumer group that speak the classic protocol: their JoinGroup, SyncGroup, Heartbeat and
LeaveGroup (KIP-848).

To such a member the group looks like a classic one in which it never leads: its generation is its member
epoch, it joins again whenever its assignment is to change, and SyncGroup brings the assignment at once. Its
subscription names the partitions it owns.
"""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.classic.join import FIRST_VERSION_WITH_HANDSHAKE, join_refusal
from pykafka_broker.coordinator.groups.core.classic.state import CONSUMER_PROTOCOL_TYPE
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig, MigrationPolicy
from pykafka_broker.coordinator.groups.core.consumer.consumer_protocol import (
    by_topic_id,
    read_subscription,
    write_assignment,
)
from pykafka_broker.coordinator.groups.core.consumer.heartbeat import (
    check_room,
    reconcile,
    refresh_metadata,
    write_subscription,
)
from pykafka_broker.coordinator.groups.core.consumer.members import (
    joining_static_member,
    static_member,
    static_member_named,
)
from pykafka_broker.coordinator.groups.core.consumer.migration import (
    become_classic,
    fence_members,
    may_downgrade,
)
from pykafka_broker.coordinator.groups.core.consumer.regexes import RegexUpdate, update_regex
from pykafka_broker.coordinator.groups.core.consumer.state import (
    ClassicMembership,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
)
from pykafka_broker.coordinator.groups.core.consumer.target import update_target
from pykafka_broker.coordinator.groups.core.consumer.turn import (
    ConsumerTurn,
    classic_join_timer,
    classic_sync_timer,
)
from pykafka_broker.coordinator.groups.core.events import (
    Heartbeat,
    JoinGroup,
    JoinResult,
    LeaveGroup,
    LeaveResult,
    LeavingMember,
    SyncGroup,
    SyncResult,
)
from pykafka_broker.coordinator.groups.core.heartbeats import member_named
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.turn import refuse
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError

# ---- JoinGroup ----


def on_join(
    groups: Groups, group: ConsumerGroup, event: JoinGroup, config: GroupCoordinatorConfig
) -> Step[Groups]:
    """Add a classic member to the group, or move it towards the group's current assignment."""
    turn = ConsumerTurn(groups, group, event.now_ms, config)
    try:
        refusal = join_refusal(event, config)
        if refusal is not ErrorCode.NONE:
            return refuse(groups, event.token, JoinResult(refusal, event.member_id))
        _join(turn, event)
    except KafkaError as error:
        return refuse(groups, event.token, JoinResult(error.code, ""))
    return turn.step()


def _join(turn: ConsumerTurn, event: JoinGroup) -> None:
    if turn.config.consumer_group_migration_policy is MigrationPolicy.DISABLED:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    member_id = event.member_id or event.uuid
    check_room(turn, member_id)
    if not _supports(turn.group, event):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    dynamic = event.group_instance_id is None
    if not event.member_id and dynamic and event.version >= FIRST_VERSION_WITH_HANDSHAKE:
        turn.reply(event.token, JoinResult(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        return
    try:
        subscription = read_subscription(event.protocols[0].metadata)
    except ProtocolError:
        # Kafka's answer to a member whose metadata is not of the consumer protocol.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from None
    replaced = static_member(turn.group, event.group_instance_id)
    downgrade = replaced is not None and _is_last_consumer(turn, replaced)

    before = _sender(turn, event, member_id)
    timeout_ms = event.rebalance_timeout_ms
    after = before._replace(
        instance_id=before.instance_id if dynamic else event.group_instance_id,
        rack_id=subscription.rack_id or before.rack_id,
        rebalance_timeout_ms=before.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        client_id=event.client_id,
        client_host=event.client_host,
        classic=ClassicMembership(event.session_timeout_ms, event.protocols),
    )
    bump = write_subscription(turn, before, after)
    bump = update_regex(turn, before, after, event) is not RegexUpdate.UNCHANGED or bump
    refresh_metadata(turn, bump=bump)
    owned = by_topic_id(subscription.owned_partitions, turn.groups.topics)
    stale = turn.group.assignment_epoch < turn.group.group_epoch
    if not downgrade:
        update_target(turn, after)
    if not downgrade or not stale:
        after = reconcile(turn, after, owned, changed_subscription=bump)
    result = JoinResult(
        ErrorCode.NONE, member_id, after.member_epoch, CONSUMER_PROTOCOL_TYPE, event.protocols[0].name
    )
    turn.reply(event.token, result)
    if downgrade:
        others = [member for name, member in turn.group.members.items() if name != member_id]
        become_classic(turn, [*others, after], rebalance=stale)
        return
    turn.cancel_timer(classic_join_timer(turn.group_id, member_id))
    turn.soft(expected_to_join=turn.group.expected_to_join - {member_id})
    turn.reset_session(member_id, event.session_timeout_ms)
    turn.set_timer(classic_sync_timer(turn.group_id, member_id), event.rebalance_timeout_ms)


def _supports(group: ConsumerGroup, event: JoinGroup) -> bool:
    """Is there a protocol that all classic members, and this one, can speak?"""
    if event.protocol_type != CONSUMER_PROTOCOL_TYPE or not event.protocols:
        return False
    supporters: dict[str, int] = {}
    for member in group.members.values():
        for protocol in member.classic.protocols if member.classic is not None else ():
            supporters[protocol.name] = supporters.get(protocol.name, 0) + 1
    return any(supporters.get(offered.name, 0) == group.classic_count for offered in event.protocols)


def _is_last_consumer(turn: ConsumerTurn, replaced: ConsumerMember) -> bool:
    """Is this the only member with the consumer protocol, in a group that may become classic without it?"""
    group = turn.group
    return (
        replaced.classic is None
        and group.classic_count == len(group.members) - 1
        and may_downgrade(turn, len(group.members))
    )


def _sender(turn: ConsumerTurn, event: JoinGroup, member_id: str) -> ConsumerMember:
    if event.group_instance_id is None:
        return turn.group.members.get(member_id) or ConsumerMember(member_id)
    if event.member_id:
        return static_member_named(turn.group, member_id, event.group_instance_id)
    return joining_static_member(turn, member_id, event.group_instance_id, is_classic=True)


# ---- SyncGroup, Heartbeat ----


def on_sync(
    groups: Groups, group: ConsumerGroup, event: SyncGroup, config: GroupCoordinatorConfig
) -> Step[Groups]:
    """Give a member its assignment, unless there is a newer one for which it has to join again."""
    turn = ConsumerTurn(groups, group, event.now_ms, config)
    try:
        member, classic = _classic_member(turn, event.member_id, event.group_instance_id, event.generation)
        _check_protocol(classic, event)
    except KafkaError as error:
        return refuse(groups, event.token, SyncResult(error.code))
    if group.assignment_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        _expect_to_join(turn, member)
        turn.reply(event.token, SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
        return turn.step()
    turn.cancel_timer(classic_sync_timer(turn.group_id, member.member_id))
    turn.reset_session(member.member_id, classic.session_timeout_ms)
    assignment = {topic_id: frozenset(epochs) for topic_id, epochs in member.assigned.items()}
    encoded = write_assignment(assignment, classic.protocols[0].metadata, groups.topics)
    turn.reply(event.token, SyncResult(ErrorCode.NONE, event.protocol_type, event.protocol_name, encoded))
    return turn.step()


def _check_protocol(classic: ClassicMembership, event: SyncGroup) -> None:
    known_type = event.protocol_type in (None, CONSUMER_PROTOCOL_TYPE)
    if not known_type or event.protocol_name not in (None, classic.protocols[0].name):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def on_heartbeat(
    groups: Groups, group: ConsumerGroup, event: Heartbeat, config: GroupCoordinatorConfig
) -> Step[Groups]:
    """Keep a member's session alive; tell it to join again if its epoch or its partitions would change."""
    turn = ConsumerTurn(groups, group, event.now_ms, config)
    try:
        member, classic = _classic_member(turn, event.member_id, event.group_instance_id, event.generation)
    except KafkaError as error:
        return refuse(groups, event.token, error.code)
    turn.reset_session(member.member_id, classic.session_timeout_ms)
    error_code = ErrorCode.NONE
    if _has_news(group, member):
        error_code = ErrorCode.REBALANCE_IN_PROGRESS
        _expect_to_join(turn, member)
    turn.reply(event.token, error_code)
    return turn.step()


def _has_news(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Would joining again change the member's epoch or its partitions?"""
    if member.member_epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    if member.state is not MemberState.UNRELEASED_PARTITIONS:
        return False
    return not any(
        (topic_id, partition) in group.partition_epochs
        for topic_id, partitions in group.target_of(member.member_id).items()
        for partition in partitions
        if partition not in member.assigned.get(topic_id, {})
    )


def _expect_to_join(turn: ConsumerTurn, member: ConsumerMember) -> None:
    if member.member_id not in turn.group.expected_to_join:
        turn.soft(expected_to_join=turn.group.expected_to_join | {member.member_id})
        turn.set_timer(classic_join_timer(turn.group_id, member.member_id), member.rebalance_timeout_ms)


def _classic_member(
    turn: ConsumerTurn, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerMember, ClassicMembership]:
    """The sender, if it is a classic member in this generation.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.

    """
    if instance_id is None:
        member = member_named(turn.group, member_id)
    else:
        member = static_member_named(turn.group, member_id, instance_id)
    if member.classic is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.member_epoch != generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return member, member.classic


# ---- LeaveGroup ----


def on_leave(
    groups: Groups, group: ConsumerGroup, event: LeaveGroup, config: GroupCoordinatorConfig
) -> Step[Groups]:
    """Remove members of either protocol: administrators, too, remove them by LeaveGroup."""
    turn = ConsumerTurn(groups, group, event.now_ms, config)
    leaving: dict[str, ConsumerMember] = {}
    answers = []
    for identity in event.members:
        try:
            member = _leaver(group, identity)
        except KafkaError as error:
            answers.append((identity, error.code))
            continue
        leaving[member.member_id] = member
        answers.append((identity, ErrorCode.NONE))
    fence_members(turn, leaving.values())
    turn.reply(event.token, LeaveResult(ErrorCode.NONE, tuple(answers)))
    return turn.step()


def _leaver(group: ConsumerGroup, identity: LeavingMember) -> ConsumerMember:
    if identity.group_instance_id is None:
        return member_named(group, identity.member_id)
    if identity.member_id:
        return static_member_named(group, identity.member_id, identity.group_instance_id)
    member = static_member(group, identity.group_instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member

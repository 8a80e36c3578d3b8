"""ConsumerGroupHeartbeat: how a consumer joins, states its subscription and partitions, learns its target,
and leaves (KIP-848).
"""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.consumer.assignors import ASSIGNORS
from pykafka_broker.coordinator.groups.core.consumer.members import joining_static_member, static_member_named
from pykafka_broker.coordinator.groups.core.consumer.migration import fence_members, group_to_join
from pykafka_broker.coordinator.groups.core.consumer.reconciliation import OwnedByClaim, Target, reconciled
from pykafka_broker.coordinator.groups.core.consumer.records import (
    current_record,
    subscription_metadata_tombstone,
    subscription_record,
)
from pykafka_broker.coordinator.groups.core.consumer.regexes import RegexUpdate, update_regex
from pykafka_broker.coordinator.groups.core.consumer.state import (
    NOTHING_OWNED,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    OwnedPartitions,
)
from pykafka_broker.coordinator.groups.core.consumer.target import update_target
from pykafka_broker.coordinator.groups.core.consumer.turn import (
    ConsumerTurn,
    revocation_timer,
    session_timer,
)
from pykafka_broker.coordinator.groups.core.events import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResult
from pykafka_broker.coordinator.groups.core.heartbeats import (
    METADATA_REFRESH_INTERVAL_MS,
    NOT_GIVEN_MS,
    check_not_blank,
    fenced,
    invalid,
    member_named,
)
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.turn import refuse
from pykafka_broker.machine.step import Reply, SetTimer, Step
from pykafka_broker.protocol.epochs import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.java_hash import int_hash, string_hash, walked

#: From this version on clients make their member ids themselves.
CLIENT_MADE_MEMBER_ID_VERSION = 1


def on_heartbeat(
    groups: Groups, event: ConsumerGroupHeartbeat, config: GroupCoordinatorConfig
) -> Step[Groups]:
    """Answer one heartbeat; one that is refused changes nothing."""
    group = groups.consumer(event.group_id)
    if group is not None and _is_without_news(group, event):
        return _alive(groups, event, config)
    try:
        _check(event, config)
        if event.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            turn = _leave(groups, event, config)
        else:
            turn = _join_or_stay(groups, event, config)
    except KafkaError as error:
        return refuse(groups, event.token, ConsumerGroupHeartbeatResult(error.code, error.message))
    return turn.step()


def _is_without_news(group: ConsumerGroup, event: ConsumerGroupHeartbeat) -> bool:
    """Does the heartbeat change nothing? The usual case: the member is at its target and reports no news."""
    member = group.members.get(event.member_id)
    return (
        member is not None
        and event.member_epoch == member.member_epoch > JOIN_EPOCH
        and event.instance_id is None
        and member.is_reconciled_to(group.assignment_epoch)
        and group.assignment_epoch == group.group_epoch
        and event.now_ms < group.refresh_deadline_ms
        and not group.regex_counts
        and _as_said(member, event) is member
    )


def _alive(groups: Groups, event: ConsumerGroupHeartbeat, config: GroupCoordinatorConfig) -> Step[Groups]:
    settings = config.consumer_settings(event.group_id)
    result = ConsumerGroupHeartbeatResult(
        member_id=event.member_id,
        member_epoch=event.member_epoch,
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
    )
    timer = session_timer(event.group_id, event.member_id)
    effects = (SetTimer(timer, event.now_ms + settings.session_timeout_ms), Reply(event.token, result))
    return Step(groups, effects=effects)


def _check(event: ConsumerGroupHeartbeat, config: GroupCoordinatorConfig) -> None:
    epoch = event.member_epoch
    by_client = event.version >= CLIENT_MADE_MEMBER_ID_VERSION
    check_not_blank(event.member_id if by_client or epoch > 0 or epoch == LEAVE_EPOCH else None, "MemberId")
    check_not_blank(event.group_id, "GroupId")
    check_not_blank(event.instance_id, "InstanceId")
    check_not_blank(event.rack_id, "RackId")
    if epoch == JOIN_EPOCH:
        if event.rebalance_timeout_ms == NOT_GIVEN_MS:
            raise invalid("RebalanceTimeoutMs must be provided in first request.")
        if event.owned is None or event.owned:
            raise invalid("TopicPartitions must be empty when (re-)joining.")
        if event.subscribed_topic_names is None and event.subscribed_topic_regex is None:
            raise invalid(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
            )
    elif epoch == LEAVE_STATIC_EPOCH:
        if event.instance_id is None:
            raise invalid("InstanceId can't be null.")
    elif epoch < LEAVE_STATIC_EPOCH:
        raise invalid("MemberEpoch is invalid.")
    served = [name for name in config.consumer_group_assignors if name in ASSIGNORS]
    if event.server_assignor is not None and event.server_assignor not in served:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {event.server_assignor} is not supported. Supported assignors: "
            f"{', '.join(walked(served, string_hash))}.",
        )


# ---- joining and staying ----


def _join_or_stay(
    groups: Groups, event: ConsumerGroupHeartbeat, config: GroupCoordinatorConfig
) -> ConsumerTurn:
    turn = group_to_join(groups, event.group_id, event.now_ms, config, joins=event.member_epoch == JOIN_EPOCH)
    check_room(turn, event.member_id)
    member_id = event.member_id or event.uuid
    before = _sender(turn, event, member_id)
    after = _as_said(before, event)
    changed_names = write_subscription(turn, before, after)
    update = update_regex(turn, before, after, event)
    bump = changed_names or update is RegexUpdate.CHANGED_AND_RESOLVED
    refresh_metadata(turn, bump=bump)
    update_target(turn, after)
    changed_subscription = changed_names or update is not RegexUpdate.UNCHANGED
    member = reconcile(turn, after, event.owned, changed_subscription=changed_subscription)
    turn.reset_session(member_id)
    says_all = (
        event.rebalance_timeout_ms != NOT_GIVEN_MS
        and (event.subscribed_topic_names is not None or event.subscribed_topic_regex is not None)
        and event.owned is not None
    )
    has_news = says_all or event.member_epoch == JOIN_EPOCH or member.assigned != before.assigned
    result = ConsumerGroupHeartbeatResult(
        member_id=member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=turn.settings.heartbeat_interval_ms,
        assignment=_shown(member.assigned) if has_news else None,
    )
    turn.reply(event.token, result)
    return turn


def check_room(turn: ConsumerTurn, member_id: str) -> None:
    """May a member with this id be in the group?

    Raises:
        KafkaError: GROUP_MAX_SIZE_REACHED.

    """
    limit = turn.config.consumer_group_max_size
    if len(turn.group.members) >= limit and member_id not in turn.group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {limit} members.",
        )


def _sender(turn: ConsumerTurn, event: ConsumerGroupHeartbeat, member_id: str) -> ConsumerMember:
    """The member as it was; a new one if it joins."""
    joins = event.member_epoch == JOIN_EPOCH
    if event.instance_id is not None:
        if joins:
            return joining_static_member(turn, member_id, event.instance_id, is_classic=False)
        member = static_member_named(turn.group, member_id, event.instance_id)
    elif joins:
        member = turn.group.members.get(member_id) or ConsumerMember(member_id)
    else:
        member = member_named(turn.group, member_id)
    _check_epoch(member, event.member_epoch, event.owned)
    return member


def _check_epoch(member: ConsumerMember, received: int, owned: OwnedByClaim) -> None:
    """A member that lost an answer may repeat the heartbeat in its previous epoch, if it owns only assigned
    partitions.
    """
    if received in (JOIN_EPOCH, member.member_epoch):
        return
    if (
        received < member.member_epoch
        and received == member.previous_member_epoch
        and _owns_only(owned, member.assigned)
    ):
        return
    raise fenced("consumer", received, member.member_epoch)


def _owns_only(owned: OwnedByClaim, assigned: OwnedPartitions) -> bool:
    return owned is not None and all(
        topic_id in assigned and all(partition in assigned[topic_id] for partition in partitions)
        for topic_id, partitions in owned
    )


def _as_said(member: ConsumerMember, event: ConsumerGroupHeartbeat) -> ConsumerMember:
    """The member with the details of the heartbeat; details that it leaves out stay."""
    names, regex = event.subscribed_topic_names, event.subscribed_topic_regex
    timeout_ms = event.rebalance_timeout_ms
    if (
        names is None
        and regex is None
        and event.rack_id is None
        and event.server_assignor is None
        and member.classic is None
        and timeout_ms == NOT_GIVEN_MS
        and event.instance_id in (None, member.instance_id)
        and (event.client_id, event.client_host) == (member.client_id, member.client_host)
    ):
        return member  # the usual case
    return member._replace(
        instance_id=member.instance_id if event.instance_id is None else event.instance_id,
        rack_id=member.rack_id if event.rack_id is None else event.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NOT_GIVEN_MS else timeout_ms,
        server_assignor=member.server_assignor if event.server_assignor is None else event.server_assignor,
        subscribed_topic_names=member.subscribed_topic_names if names is None else frozenset(names),
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
        client_id=event.client_id,
        client_host=event.client_host,
        classic=None,
    )


def write_subscription(turn: ConsumerTurn, before: ConsumerMember, after: ConsumerMember) -> bool:
    """Write the changes of a member; True if it names other topics."""
    if after is before or after == before:
        return False
    turn.write(subscription_record(turn.group_id, after))
    return after.subscribed_topic_names != before.subscribed_topic_names


def refresh_metadata(turn: ConsumerTurn, *, bump: bool) -> None:
    """Check the subscribed topics, if it is time or the subscription of a member has changed."""
    if not bump and turn.now_ms < turn.group.refresh_deadline_ms:
        return
    turn.bump_epoch(always=bump)
    turn.soft(refresh_deadline_ms=turn.now_ms + METADATA_REFRESH_INTERVAL_MS)
    if turn.group.has_subscription_metadata_record:
        turn.write(subscription_metadata_tombstone(turn.group_id))


def reconcile(
    turn: ConsumerTurn, member: ConsumerMember, owned: OwnedByClaim, *, changed_subscription: bool
) -> ConsumerMember:
    """Let a member take its next step towards its target.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH.

    """
    group = turn.group
    if not changed_subscription and member.is_reconciled_to(group.assignment_epoch):
        return member
    topics = (turn.groups.topics.topic(name) for name in group.topics_of(member))
    target = Target(
        group.assignment_epoch,
        group.target_of(member.member_id, member.instance_id),
        {topic.topic_id for topic in topics if topic is not None},
        changed_subscription,
        group.partition_epochs,
    )
    after = reconciled(member, target, owned)
    if after == member:
        return member
    turn.write(current_record(turn.group_id, after))
    if after.classic is None:
        timer = revocation_timer(turn.group_id, after.member_id)
        if after.state is MemberState.UNREVOKED_PARTITIONS:
            turn.set_timer(timer, after.rebalance_timeout_ms)
        else:
            turn.cancel_timer(timer)
    return after


def _shown(assigned: OwnedPartitions) -> tuple[tuple[bytes, tuple[int, ...]], ...]:
    """The assignment in an answer; partitions are in the order of Apache Kafka's hash set."""
    return tuple(
        (topic_id, tuple(walked(sorted(partitions), int_hash))) for topic_id, partitions in assigned.items()
    )


# ---- leaving ----


def _leave(groups: Groups, event: ConsumerGroupHeartbeat, config: GroupCoordinatorConfig) -> ConsumerTurn:
    turn = ConsumerTurn(groups, consumer_group(groups, event.group_id), event.now_ms, config)
    if event.instance_id is None:
        member = member_named(turn.group, event.member_id)
    else:
        member = static_member_named(turn.group, event.member_id, event.instance_id)
    if event.instance_id is not None and event.member_epoch == LEAVE_STATIC_EPOCH:
        _leave_for_a_while(turn, member)
    else:
        fence_members(turn, [member])
    result = ConsumerGroupHeartbeatResult(member_id=member.member_id, member_epoch=event.member_epoch)
    turn.reply(event.token, result)
    return turn


def _leave_for_a_while(turn: ConsumerTurn, member: ConsumerMember) -> None:
    """A static member restarts: its partitions wait for it until its session ends."""
    kept = {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.assigned.items()}
    away = member._replace(member_epoch=LEAVE_STATIC_EPOCH, assigned=kept, pending_revocation=NOTHING_OWNED)
    turn.write(current_record(turn.group_id, away))


def consumer_group(groups: Groups, group_id: str) -> ConsumerGroup:
    """The consumer group with this id.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND.

    """
    group = groups.consumer(group_id)
    if group is None:
        kind = f"Group {group_id} is not a consumer group." if group_id in groups.groups else ""
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, kind or f"Group {group_id} not found.")
    return group


# ---- timers ----


def on_session_timer(
    groups: Groups, group_id: str, member_id: str, now_ms: int, config: GroupCoordinatorConfig
) -> Step[Groups]:
    """A member was silent for its session timeout, or was too late to revoke partitions, join or sync."""
    group = groups.consumer(group_id)
    member = None if group is None else group.members.get(member_id)
    if group is None or member is None:
        return Step(groups)
    turn = ConsumerTurn(groups, group, now_ms, config)
    fence_members(turn, [member])
    return turn.step()


def on_revocation_timer(
    groups: Groups, group_id: str, member_id: str, now_ms: int, config: GroupCoordinatorConfig
) -> Step[Groups]:
    """A member's rebalance timeout to revoke partitions is over."""
    group = groups.consumer(group_id)
    member = None if group is None else group.members.get(member_id)
    if member is None or member.state is not MemberState.UNREVOKED_PARTITIONS or member.member_epoch < 0:
        return Step(groups)
    return on_session_timer(groups, group_id, member_id, now_ms, config)

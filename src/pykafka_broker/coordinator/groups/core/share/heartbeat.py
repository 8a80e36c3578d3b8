"""ShareGroupHeartbeat: how a consumer joins a share group, states its subscription, learns its partitions,
and leaves (KIP-932).
"""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.heartbeats import (
    METADATA_REFRESH_INTERVAL_MS,
    check_not_blank,
    fenced,
    invalid,
    member_named,
)
from pykafka_broker.coordinator.groups.core.share.events import ShareGroupHeartbeat, ShareGroupHeartbeatResult
from pykafka_broker.coordinator.groups.core.share.initializing import (
    initialize_subscribed,
    is_assignment_pending,
)
from pykafka_broker.coordinator.groups.core.share.records import member_tombstones, subscription_record
from pykafka_broker.coordinator.groups.core.share.state import ShareGroup, ShareMember
from pykafka_broker.coordinator.groups.core.share.target import reconcile, same_partitions, updated_target
from pykafka_broker.coordinator.groups.core.share.turn import (
    ShareTurn,
    session_timer,
    share_group,
    share_group_or_new,
)
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.turn import refuse
from pykafka_broker.machine.step import Reply, SetTimer, Step
from pykafka_broker.protocol.epochs import JOIN_EPOCH, LEAVE_EPOCH
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


def on_heartbeat(groups: Groups, event: ShareGroupHeartbeat, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Answer one heartbeat; one that is refused changes nothing."""
    group = groups.share(event.group_id)
    if group is not None and is_without_news(group, event):
        return _alive(groups, event, config)
    try:
        _check(event)
        if event.member_epoch == LEAVE_EPOCH:
            turn = _leave(groups, event, config)
        else:
            turn = _join_or_stay(groups, event, config)
    except KafkaError as error:
        return refuse(groups, event.token, ShareGroupHeartbeatResult(error.code, error.message))
    return turn.step()


def is_without_news(group: ShareGroup, event: ShareGroupHeartbeat) -> bool:
    """Does this heartbeat, like the last one, change nothing? The usual case."""
    member = group.members.get(event.member_id)
    return (
        member is not None
        and group.is_settled
        and event.member_epoch == member.member_epoch > JOIN_EPOCH
        and member.is_reconciled_to(group.assignment_epoch)
        and event.now_ms < group.refresh_deadline_ms
        and event.subscribed_topic_names is None
        and event.rack_id is None
        and (event.client_id, event.client_host) == (member.client_id, member.client_host)
    )


def _alive(groups: Groups, event: ShareGroupHeartbeat, config: GroupCoordinatorConfig) -> Step[Groups]:
    settings = config.share_settings(event.group_id)
    result = ShareGroupHeartbeatResult(
        member_id=event.member_id,
        member_epoch=event.member_epoch,
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
    )
    timer = session_timer(event.group_id, event.member_id)
    effects = (SetTimer(timer, event.now_ms + settings.session_timeout_ms), Reply(event.token, result))
    return Step(groups, effects=effects)


def _check(event: ShareGroupHeartbeat) -> None:
    check_not_blank(event.member_id, "MemberId")
    check_not_blank(event.group_id, "GroupId")
    check_not_blank(event.rack_id, "RackId")
    if event.member_epoch == JOIN_EPOCH:
        if not event.subscribed_topic_names:
            raise invalid("SubscribedTopicNames must be set in first request.")
    elif event.member_epoch < LEAVE_EPOCH:
        raise invalid("MemberEpoch is invalid.")


# ---- joining and staying ----


def _join_or_stay(groups: Groups, event: ShareGroupHeartbeat, config: GroupCoordinatorConfig) -> ShareTurn:
    joins = event.member_epoch == JOIN_EPOCH
    group = _group_of(groups, event.group_id, joins=joins)
    check_room(group, event.member_id, config.share_group_max_size)
    known = group.members.get(event.member_id) if joins else member_named(group, event.member_id)
    before = known or ShareMember(event.member_id)
    check_epoch(before, event.member_epoch)
    turn = ShareTurn(groups, group, event.now_ms, config)
    after = _as_said(before, event)
    if after != before:
        turn.write(subscription_record(event.group_id, after))
    bump = after.subscribed_topic_names != before.subscribed_topic_names
    if group.assignment_epoch >= group.group_epoch:
        bump = bump or is_assignment_pending(turn.group, groups.topics)
    if bump or event.now_ms >= group.refresh_deadline_ms:
        bump = turn.bump_epoch(always=bump)
        turn.group = turn.group._replace(refresh_deadline_ms=event.now_ms + METADATA_REFRESH_INTERVAL_MS)
    target = updated_target(turn, event.member_id)
    member = reconcile(turn, after, target, changed_subscription=bump)
    turn.reset_session(event.member_id)
    says_all = joins or event.subscribed_topic_names is not None
    has_news = says_all or not same_partitions(member.assigned, before.assigned)
    result = ShareGroupHeartbeatResult(
        member_id=event.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=turn.settings.heartbeat_interval_ms,
        assignment=tuple(member.assigned.items()) if has_news else None,
    )
    turn.reply(event.token, result)
    initialize_subscribed(turn)
    turn.settle()
    return turn


def _group_of(groups: Groups, group_id: str, *, joins: bool) -> ShareGroup:
    """The share group that a member names; one that joins may create it.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND.

    """
    if not joins and group_id not in groups.groups:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
    return share_group_or_new(groups, group_id)


def check_room(group: ShareGroup, member_id: str, limit: int) -> None:
    """May a member with this id be in the group?

    Raises:
        KafkaError: GROUP_MAX_SIZE_REACHED.

    """
    if len(group.members) >= limit and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The share group has reached its maximum capacity of {limit} members.",
        )


def check_epoch(member: ShareMember, received: int) -> None:
    """A member that lost the answer to its last heartbeat may repeat it in its previous epoch.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH.

    """
    if received in (JOIN_EPOCH, member.member_epoch):
        return
    if received > member.member_epoch:
        raise fenced("share", received, member.member_epoch)
    if received != member.previous_member_epoch:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a smaller member epoch ({received}) than the one known by the group "
            f"coordinator ({member.member_epoch}), and it does not match the previous member epoch "
            f"({member.previous_member_epoch}). The member must abandon all its partitions and rejoin.",
        )


def _as_said(member: ShareMember, event: ShareGroupHeartbeat) -> ShareMember:
    """The member with the details of the heartbeat; details that it leaves out stay."""
    names = event.subscribed_topic_names
    return member._replace(
        rack_id=member.rack_id if event.rack_id is None else event.rack_id,
        client_id=event.client_id,
        client_host=event.client_host,
        subscribed_topic_names=member.subscribed_topic_names if names is None else frozenset(names),
    )


# ---- leaving ----


def _leave(groups: Groups, event: ShareGroupHeartbeat, config: GroupCoordinatorConfig) -> ShareTurn:
    turn = ShareTurn(groups, share_group(groups, event.group_id), event.now_ms, config)
    member_named(turn.group, event.member_id)
    _remove(turn, event.member_id)
    turn.reply(
        event.token, ShareGroupHeartbeatResult(member_id=event.member_id, member_epoch=event.member_epoch)
    )
    return turn


def _remove(turn: ShareTurn, member_id: str) -> None:
    """Remove a member from the group, which moves to its next epoch."""
    turn.write(*member_tombstones(turn.group_id, member_id))
    turn.bump_epoch(always=True)
    turn.cancel_timer(session_timer(turn.group_id, member_id))


def on_session_timer(
    groups: Groups, group_id: str, member_id: str, now_ms: int, config: GroupCoordinatorConfig
) -> Step[Groups]:
    """A member was silent for its session timeout."""
    group = groups.share(group_id)
    if group is None or member_id not in group.members:
        return Step(groups)
    turn = ShareTurn(groups, group, now_ms, config)
    _remove(turn, member_id)
    return turn.step()

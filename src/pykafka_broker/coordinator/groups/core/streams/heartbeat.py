"""StreamsGroupHeartbeat: how a thread of an application joins its group, states its topology and its tasks,
learns its target, and leaves (KIP-1071).
"""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.config import StreamsGroupSettings
from pykafka_broker.coordinator.groups.core.heartbeats import (
    METADATA_REFRESH_INTERVAL_MS,
    NOT_GIVEN_MS,
    member_named,
)
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.streams.checks import (
    check_epoch,
    check_heartbeat,
    check_names,
    check_tasks,
)
from pykafka_broker.coordinator.groups.core.streams.endpoints import endpoint_partitions
from pykafka_broker.coordinator.groups.core.streams.events import (
    StreamsGroupHeartbeat,
    StreamsGroupHeartbeatResult,
)
from pykafka_broker.coordinator.groups.core.streams.leaving import leave
from pykafka_broker.coordinator.groups.core.streams.reconciliation import Target, reconciled
from pykafka_broker.coordinator.groups.core.streams.records import (
    current_record,
    member_record,
    topology_record,
)
from pykafka_broker.coordinator.groups.core.streams.state import MemberState, StreamsGroup, StreamsMember
from pykafka_broker.coordinator.groups.core.streams.status import Status, StatusCode
from pykafka_broker.coordinator.groups.core.streams.target import update_target
from pykafka_broker.coordinator.groups.core.streams.tasks import OwnedTasks, Tasks
from pykafka_broker.coordinator.groups.core.streams.topology.configured import ConfiguredTopology, configured
from pykafka_broker.coordinator.groups.core.streams.topology.declared import Topology
from pykafka_broker.coordinator.groups.core.streams.turn import (
    GroupStep,
    StreamsTurn,
    initial_rebalance_timer,
    revocation_timer,
    session_timer,
)
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.machine.step import Reply, Step
from pykafka_broker.protocol.epochs import JOIN_EPOCH
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


def on_heartbeat(
    group: StreamsGroup | None,
    event: StreamsGroupHeartbeat,
    topics: TopicDirectory,
    settings: StreamsGroupSettings,
    replaced: tuple[Record, ...] = (),
) -> GroupStep:
    """Answer one heartbeat; one that is refused changes nothing.

    A member that joins may create the group; `replaced` are the records that delete the empty classic group
    of that name, if there is one.
    """
    try:
        check_heartbeat(event)
        if event.member_epoch < JOIN_EPOCH:
            return leave(group, event, topics, settings)
        return _join_or_stay(group, event, topics, settings, replaced)
    except KafkaError as error:
        result = StreamsGroupHeartbeatResult(error.code, error.explanation)
        return Step(group, effects=(Reply(event.token, result),))


# ---- joining and staying ----


def _join_or_stay(
    group: StreamsGroup | None,
    event: StreamsGroupHeartbeat,
    topics: TopicDirectory,
    settings: StreamsGroupSettings,
    replaced: tuple[Record, ...],
) -> GroupStep:
    joins = event.member_epoch == JOIN_EPOCH
    if group is None and not joins:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {event.group_id} not found.")
    turn = StreamsTurn(group or StreamsGroup.new(event.group_id), topics, settings, event.now_ms)
    if group is None:
        turn.records.extend(replaced)
    before = _sender(turn, event)
    check_names(event)
    after = _as_said(before, event)
    statuses = _stale_status(turn.group, after)
    has_changed = _write_member(turn, before, after)
    topology = _topology(turn, event.topology)
    view = _configured(turn, topology)
    _check_owned(event, view)
    _bump_if_changed(turn, view, has_changed=has_changed)
    _delay_first_assignment(turn)
    delay = update_target(turn, view, dict(turn.assignment_configs))
    member = _reconcile(turn, after, event.owned)
    turn.set_timer(session_timer(turn.group_id, member.member_id), settings.session_timeout_ms)
    if event.shutdown_application and turn.group.shutdown_member_id is None:
        turn.soft(shutdown_member_id=member.member_id)
    has_news = joins or member.assigned != before.assigned
    if has_news and member.user_endpoint is not None:
        turn.soft(endpoint_information_epoch=turn.group.endpoint_information_epoch + 1)
    epoch = turn.group.endpoint_information_epoch
    endpoints = None
    if epoch != event.endpoint_information_epoch:
        endpoints = tuple(endpoint_partitions(turn.group, member, topics))
    statuses += [delay] if delay is not None else []
    statuses += _problems(turn.group, view)
    result = StreamsGroupHeartbeatResult(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
        statuses=tuple(statuses),
        tasks=_shown(member.assigned) if has_news else None,
        endpoint_information_epoch=epoch if group is not None or replaced else 0,
        endpoints=endpoints,
        internal_topics=tuple(view.internal_topics.values()),
    )
    turn.reply(event.token, result)
    if group is None:
        _forget_first_look(turn)
    return turn.step()


def _sender(turn: StreamsTurn, event: StreamsGroupHeartbeat) -> StreamsMember:
    """The member as it was; a new one if it joins.

    Raises:
        KafkaError: GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH.

    """
    limit = turn.settings.max_size
    joins = event.member_epoch == JOIN_EPOCH
    if joins and len(turn.group.members) >= limit:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The streams group has reached its maximum capacity of {limit} members.",
        )
    member = turn.group.members.get(event.member_id)
    if member is None and joins:
        turn.newcomer = event.member_id
        return StreamsMember.joining(event.member_id)
    member = member_named(turn.group, event.member_id)
    check_epoch(member, event)
    return member


def _as_said(member: StreamsMember, event: StreamsGroupHeartbeat) -> StreamsMember:
    """The member with the details of the heartbeat; details that it leaves out stay."""
    timeout_ms, tags = event.rebalance_timeout_ms, event.client_tags
    return member._replace(
        rack_id=member.rack_id if event.rack_id is None else event.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NOT_GIVEN_MS else timeout_ms,
        topology_epoch=member.topology_epoch if event.topology is None else event.topology.epoch,
        client_id=event.client_id,
        client_host=event.client_host,
        process_id=member.process_id if event.process_id is None else event.process_id,
        user_endpoint=member.user_endpoint if event.user_endpoint is None else event.user_endpoint,
        client_tags=member.client_tags if tags is None else tuple(sorted(tags)),
    )


def _write_member(turn: StreamsTurn, before: StreamsMember, after: StreamsMember) -> bool:
    """Write what has changed of a member."""
    if after == before:
        return False
    turn.write(member_record(turn.group_id, after))
    return True


def _topology(turn: StreamsTurn, said: Topology | None) -> Topology:
    """The topology of the group, which its first member brings.

    Raises:
        KafkaError: INVALID_REQUEST, a member brings another one.

    """
    known = turn.group.topology
    if known is None:
        if said is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        turn.write(topology_record(turn.group_id, said))
        return said
    if said is not None and known.epoch <= said.epoch and not known.is_same_as(said):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
    return known


def _configured(turn: StreamsTurn, topology: Topology) -> ConfiguredTopology:
    """The topology over the topics, computed again if it is time, or if there is none yet."""
    known, is_first = turn.group.configured, turn.before.topology is None
    if known is not None and not is_first and turn.now_ms < turn.group.refresh_deadline_ms:
        return known
    fingerprint = topology.metadata_hash(turn.topics)
    turn.soft(refresh_deadline_ms=turn.now_ms + METADATA_REFRESH_INTERVAL_MS)
    if known is not None and not is_first and fingerprint == turn.before.metadata_hash:
        return known
    view = configured(topology, turn.topics, fingerprint)
    turn.soft(configured=view)
    return view


def _check_owned(event: StreamsGroupHeartbeat, view: ConfiguredTopology) -> None:
    if view.is_ready:
        for listed in (event.active_tasks, event.standby_tasks, event.warmup_tasks):
            check_tasks(listed, view.subtopologies or {})


def _bump_if_changed(turn: StreamsTurn, view: ConfiguredTopology, *, has_changed: bool) -> None:
    """Move the group to its next epoch if the member, the topics or the settings have changed."""
    before = turn.before
    validated = view.topology_epoch if view.is_ready else -1
    configs = turn.assignment_configs
    if (
        has_changed
        or view.metadata_hash != before.metadata_hash
        or validated != before.validated_topology_epoch
        or configs != before.last_assignment_configs
    ):
        turn.bump_epoch(
            metadata_hash=view.metadata_hash,
            validated_topology_epoch=validated,
            last_assignment_configs=configs,
        )


def _delay_first_assignment(turn: StreamsTurn) -> None:
    """An empty group waits for more members before its tasks are assigned."""
    delay_ms = turn.settings.initial_rebalance_delay_ms
    if turn.was_empty and delay_ms > 0 and not turn.group.is_delayed:
        turn.soft(is_delayed=True)
        turn.set_timer(initial_rebalance_timer(turn.group_id), delay_ms)


def _reconcile(turn: StreamsTurn, member: StreamsMember, owned: Tasks | None) -> StreamsMember:
    """Let a member take its next step towards its target.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH.

    """
    group = turn.group
    # As in Apache Kafka, the tasks of a member that has just changed its process do not block it.
    holders = turn.before.holders
    if member.is_reconciled_to(group.assignment_epoch):
        return member
    tasks = Tasks() if group.is_delayed else group.target_of(member.member_id)
    after = reconciled(member, Target(group.assignment_epoch, tasks, holders), owned)
    if after == member:
        return member
    turn.write(current_record(turn.group_id, after))
    timer = revocation_timer(turn.group_id, after.member_id)
    if after.state is MemberState.UNREVOKED_TASKS:
        turn.set_timer(timer, after.rebalance_timeout_ms)
    else:
        turn.cancel_timer(timer)
    return after


def _stale_status(group: StreamsGroup, member: StreamsMember) -> list[Status]:
    if group.topology is None or member.topology_epoch >= group.topology.epoch:
        return []
    text = (
        f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch "
        f"{group.topology.epoch}."
    )
    return [Status(StatusCode.STALE_TOPOLOGY, text)]


def _problems(group: StreamsGroup, view: ConfiguredTopology) -> list[Status]:
    found = [] if view.problem is None else [view.problem]
    if group.shutdown_member_id is not None:
        text = (
            f"Streams group member {group.shutdown_member_id} encountered a fatal error and requested a "
            "shutdown for the entire application."
        )
        found.append(Status(StatusCode.SHUTDOWN_APPLICATION, text))
    return found


def _forget_first_look(turn: StreamsTurn) -> None:
    """Drop soft state: in Apache Kafka 4.3 the replay of a group's first records creates the group again."""
    turn.soft(configured=None, refresh_deadline_ms=0, shutdown_member_id=None, endpoint_information_epoch=0)


def _shown(assigned: OwnedTasks) -> Tasks:
    active = {name: frozenset(epochs) for name, epochs in assigned.active.items()}
    return Tasks(active, assigned.standby, assigned.warmup)

"""The life of a broker as the controller sees it: registration, heartbeats, fencing, controlled shutdown.

A broker registers and gets an epoch. It is fenced until it has caught up with its own registration, stays
unfenced while its heartbeats come, and leaves by controlled shutdown: its leaderships move before it stops.

A new incarnation that registers with the id of a broker with a session is refused as a duplicate, as in
Kafka. Two cases are allowed, because the earlier process must have ended: the broker is in the controller's
own process, whose directory is locked; or it has the registered directories and addresses, and every
connection that carried the earlier incarnation's heartbeats is closed. This deviation is made on purpose:
without it a restart would wait for `broker.session.timeout.ms`.
"""

from __future__ import annotations

from enum import Enum, auto

from pykafka_broker.cluster.features import CORDONED_DIRECTORIES_SINCE, DIRECTORY_IDS_SINCE, can_work_at
from pykafka_broker.cluster.image import (
    METADATA_VERSION,
    BrokerRegistration,
    ControllerRegistration,
    FeatureRange,
    replay,
)
from pykafka_broker.cluster.replica_directories import FIRST_DIRECTORY_ID
from pykafka_broker.cluster.snapshot import broker_record, controller_record
from pykafka_broker.controller.core import early_fencing
from pykafka_broker.controller.core.events import (
    BrokerHeartbeat,
    BrokerProbed,
    ExpireSessions,
    HeartbeatResult,
    Moment,
    RegisterBroker,
    RegisterController,
    UnregisterBroker,
)
from pykafka_broker.controller.core.partitions import (
    in_isr,
    in_isr_or_elr,
    leader_and_isr_changes,
    leaderless,
    leads_something,
)
from pykafka_broker.controller.core.state import ControllerState, Decision, Session
from pykafka_broker.machine.step import CancelTimer, Effect, SetTimer, Start
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.messages.records import metadata as m


class _Standing(Enum):
    """The state of a broker for the controller (Kafka's BrokerControlState)."""

    FENCED = auto()
    UNFENCED = auto()
    CONTROLLED_SHUTDOWN = auto()
    SHUTDOWN_NOW = auto()


def activate(state: ControllerState, now_ms: int) -> ControllerState:
    """Give every unfenced broker on another node one full session to find the new controller."""
    sessions = {
        broker.broker_id: early_fencing.unseen(now_ms)
        for broker in state.image.brokers.values()
        if not broker.fenced and broker.broker_id != state.rules.node_id
    }
    return state._replace(sessions=sessions)


def check_broker_epoch(state: ControllerState, broker_id: int, broker_epoch: int) -> BrokerRegistration:
    """The registration of a broker; requests with an earlier epoch are refused."""
    broker = state.image.brokers.get(broker_id)
    if broker is None:
        text = f"No broker registration found for broker id {broker_id}"
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, text)
    if broker.epoch != broker_epoch:
        text = f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}"
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, text)
    return broker


# -- registration -----------------------------------------------------------------------------------


def register_broker(state: ControllerState, event: RegisterBroker, moment: Moment) -> Decision:
    """A new incarnation gets a new epoch and starts fenced; the known incarnation amends its registration."""
    _check_registration(state, event, moment.now_ms)
    existing = state.image.brokers.get(event.broker_id)
    records: list[object] = []
    sessions = dict(state.sessions)
    if existing is None or existing.incarnation_id != event.incarnation_id:
        records += partitions_after_shutdown(state, event, existing)
        epoch, fenced, in_controlled_shutdown = state.next_offset, True, False
        sessions.pop(event.broker_id, None)
    else:
        epoch, fenced = existing.epoch, existing.fenced
        in_controlled_shutdown = existing.in_controlled_shutdown
    sessions[event.broker_id] = Session(moment.now_ms)
    registration = BrokerRegistration(
        event.broker_id,
        epoch,
        event.incarnation_id,
        event.listeners,
        event.rack,
        fenced,
        in_controlled_shutdown,
        event.directories if state.image.metadata_version >= DIRECTORY_IDS_SINCE else (),
        event.features,
    )
    records.append(broker_record(registration))
    return Decision(tuple(records), epoch, sessions)


def _check_registration(state: ControllerState, event: RegisterBroker, now_ms: int) -> None:
    rules, image = state.rules, state.image
    if event.cluster_id != rules.cluster_id:
        text = f"Expected cluster ID {rules.cluster_id}, but got cluster ID {event.cluster_id}"
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, text)
    existing = image.brokers.get(event.broker_id)
    if (
        existing is not None
        and existing.incarnation_id != event.incarnation_id
        and event.broker_id != rules.node_id
        and not _has_started_again(state, existing, event)
        and _has_valid_session(state, event.broker_id, now_ms)
    ):
        text = (
            "Another broker is registered with that broker id. If the broker was recently restarted this "
            "should self-resolve once the heartbeat manager expires the broker's session."
        )
        raise KafkaError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, text)
    _check_directories(state, event)
    if METADATA_VERSION not in event.features:
        text = "Request features do not contain 'metadata.version'"
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, text)
    for name, level in image.features.items():
        supported = event.features.get(name, FeatureRange(0, 0))
        if not can_work_at(name, level, supported):
            text = (
                f"Unable to register because the broker does not support finalized version {level} of "
                f"{name}. The broker wants a version between {supported.min_level} and "
                f"{supported.max_level}, inclusive."
            )
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)


def _has_started_again(state: ControllerState, existing: BrokerRegistration, event: RegisterBroker) -> bool:
    """Whether the broker has the registered directories and addresses, and the earlier process has gone."""
    session = state.sessions.get(event.broker_id)
    known = set(existing.directories)
    is_same_place = known == set(event.directories) and existing.listeners == event.listeners
    return bool(known) and is_same_place and session is not None and not session.is_heard


def _check_directories(state: ControllerState, event: RegisterBroker) -> None:
    def refuse(text: str) -> KafkaError:
        return KafkaError(ErrorCode.INVALID_REGISTRATION, text)

    if not event.directories:
        raise refuse("No directories specified in request")
    if any(int.from_bytes(directory, "big") < FIRST_DIRECTORY_ID for directory in event.directories):
        raise refuse("Reserved directory ID in request")
    if len(set(event.directories)) < len(event.directories):
        raise refuse("Duplicate directory ID in request")
    for other in state.image.brokers.values():
        if other.broker_id != event.broker_id:
            for directory in event.directories:
                if directory in other.directories:
                    raise refuse(
                        f"Broker {other.broker_id} is already registered with directory "
                        f"{uuid_text(directory)}"
                    )


def _has_valid_session(state: ControllerState, broker_id: int, now_ms: int) -> bool:
    session = state.sessions.get(broker_id)
    return session is not None and now_ms < _end_ms(state, session)


def _end_ms(state: ControllerState, session: Session) -> int:
    """When a session ends without another heartbeat."""
    return session.last_contact_ms + state.rules.session_timeout_ms


def _first_end(state: ControllerState) -> tuple[int, int] | None:
    """The time at which the first session of an unfenced broker on another node ends, and the broker's id;
    None without such a session.
    """
    return min(
        (
            (_end_ms(state, session), broker_id)
            for broker_id, session in state.sessions.items()
            if broker_id != state.rules.node_id
            and (broker := state.image.brokers.get(broker_id)) is not None
            and not broker.fenced
        ),
        default=None,
    )


def partitions_after_shutdown(
    state: ControllerState, event: RegisterBroker, existing: BrokerRegistration | None
) -> list[object]:
    """Remove a new incarnation from every ISR; after an unclean stop, with ELR, from every ELR too."""
    broker_id = event.broker_id
    clean = existing is not None and event.previous_broker_epoch == existing.epoch
    if clean or not state.elr_enabled:
        return leader_and_isr_changes(state, in_isr(broker_id), removed=broker_id)
    return leader_and_isr_changes(state, in_isr_or_elr(broker_id), lost=broker_id)


def register_controller(state: ControllerState, event: RegisterController) -> Decision:
    """Record the endpoints of a controller and the features it supports."""
    registration = ControllerRegistration(
        event.controller_id, event.incarnation_id, event.listeners, event.features
    )
    return Decision((controller_record(registration),))


def unregister_broker(state: ControllerState, event: UnregisterBroker) -> Decision:
    """Forget a broker: it leaves every ISR and ELR."""
    broker = state.image.brokers.get(event.broker_id)
    if broker is None:
        text = f"Broker ID {event.broker_id} is not currently registered"
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, text)
    changes = leader_and_isr_changes(state, in_isr_or_elr(event.broker_id), removed=event.broker_id)
    record = m.UnregisterBrokerRecord(broker_id=event.broker_id, broker_epoch=broker.epoch)
    sessions = {key: session for key, session in state.sessions.items() if key != event.broker_id}
    return Decision((*changes, record), None, sessions)


# -- heartbeats -------------------------------------------------------------------------------------


def heartbeat(state: ControllerState, event: BrokerHeartbeat, moment: Moment) -> Decision:
    """Keep the session alive, and move the broker to the standing it asks for once that is safe."""
    broker = check_broker_epoch(state, event.broker_id, event.broker_epoch)
    session = state.sessions.get(event.broker_id, Session(moment.now_ms))
    session = session._replace(
        last_contact_ms=moment.now_ms, metadata_offset=event.metadata_offset, absence=None, is_heard=True
    )
    current = _standing(broker, session)
    following = _next_standing(state, event, broker, session, current)
    records: list[object] = []
    if following is not current:
        if following is _Standing.UNFENCED:
            records += _unfence(state, broker)
        elif following is _Standing.CONTROLLED_SHUTDOWN:
            records += _begin_controlled_shutdown(state, broker)
        else:
            records += fence(state, broker)
    if event.offline_directories or event.cordoned_directories is not None:
        # A partition that has just got this broker as its leader may lose it again with the directory.
        image = replay(state.image, records, offset=state.next_offset, epoch=state.image.epoch)
        records += _directory_changes(state._replace(image=image), image.brokers[broker.broker_id], event)
    shutdown_offset = session.shutdown_offset
    if following is _Standing.CONTROLLED_SHUTDOWN and shutdown_offset is None:
        shutdown_offset = state.image.offset + len(records)
    elif following is not _Standing.CONTROLLED_SHUTDOWN:
        shutdown_offset = None
    sessions = {**state.sessions, broker.broker_id: session._replace(shutdown_offset=shutdown_offset)}
    if following is _Standing.SHUTDOWN_NOW:
        # After a controlled shutdown the broker may register again at once; in Apache Kafka 4 only after its
        # session has ended.
        del sessions[broker.broker_id]
    result = HeartbeatResult(
        is_caught_up=event.metadata_offset >= broker.record_offset,
        is_fenced=following in (_Standing.FENCED, _Standing.SHUTDOWN_NOW),
        should_shut_down=following is _Standing.SHUTDOWN_NOW,
    )
    return Decision(tuple(records), result, sessions)


def _standing(broker: BrokerRegistration, session: Session) -> _Standing:
    if session.shutdown_offset is not None:
        return _Standing.CONTROLLED_SHUTDOWN
    return _Standing.FENCED if broker.fenced else _Standing.UNFENCED


def _next_standing(
    state: ControllerState,
    event: BrokerHeartbeat,
    broker: BrokerRegistration,
    session: Session,
    current: _Standing,
) -> _Standing:
    if current is _Standing.FENCED:
        if event.want_shutdown:
            return _Standing.SHUTDOWN_NOW
        caught_up = event.metadata_offset >= broker.record_offset
        return _Standing.UNFENCED if caught_up and not event.want_fence else _Standing.FENCED
    leads = (
        leads_something(state, broker.broker_id) if event.want_shutdown or session.shutdown_offset else False
    )
    if current is _Standing.UNFENCED:
        if event.want_fence:
            return _Standing.SHUTDOWN_NOW if event.want_shutdown else _Standing.FENCED
        if event.want_shutdown:
            return _Standing.CONTROLLED_SHUTDOWN if leads else _Standing.SHUTDOWN_NOW
        return _Standing.UNFENCED
    may_go = not leads and _others_have_moved(state, broker, session)
    return _Standing.SHUTDOWN_NOW if may_go else _Standing.CONTROLLED_SHUTDOWN


def _others_have_moved(state: ControllerState, broker: BrokerRegistration, session: Session) -> bool:
    """Whether the brokers that stay know the new leaders.

    Brokers that are stopping as well are not waited for, nor is the broker in the controller's process: it
    applies each record before the decision is answered.
    """
    assert session.shutdown_offset is not None
    return all(
        other.metadata_offset >= session.shutdown_offset
        for broker_id, other in state.sessions.items()
        if broker_id not in (broker.broker_id, state.rules.node_id)
        and other.shutdown_offset is None
        and (known := state.image.brokers.get(broker_id)) is not None
        and not known.fenced
    )


def _unfence(state: ControllerState, broker: BrokerRegistration) -> list[object]:
    record = m.BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=-1
    )
    return [record, *leader_and_isr_changes(state, leaderless, added=broker.broker_id)]


def fence(state: ControllerState, broker: BrokerRegistration) -> list[object]:
    """Fence a broker: it leaves every ISR, and others lead in its place."""
    changes = leader_and_isr_changes(state, in_isr(broker.broker_id), removed=broker.broker_id)
    record = m.BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=1)
    return [*changes, record]


def _begin_controlled_shutdown(state: ControllerState, broker: BrokerRegistration) -> list[object]:
    changes = leader_and_isr_changes(state, in_isr(broker.broker_id), removed=broker.broker_id)
    if broker.in_controlled_shutdown:
        return changes
    record = m.BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=1
    )
    return [record, *changes]


def _directory_changes(
    state: ControllerState, broker: BrokerRegistration, event: BrokerHeartbeat
) -> list[object]:
    """Move leaderships away from failed directories; record which directories are cordoned.

    Only records that the finalized metadata.version allows are written: Apache Kafka does not start on a log
    with others.
    """
    metadata_version = state.image.metadata_version
    records: list[object] = []
    failed = [directory for directory in broker.directories if directory in event.offline_directories]
    if failed:
        records += leader_and_isr_changes(
            state,
            lambda partition: (
                any(
                    replica == broker.broker_id and directory in failed
                    for replica, directory in zip(partition.replicas, partition.directories, strict=False)
                )
                and broker.broker_id in partition.isr
            ),
            removed=broker.broker_id,
        )
        if metadata_version >= DIRECTORY_IDS_SINCE:
            records.append(
                m.BrokerRegistrationChangeRecord(
                    broker_id=broker.broker_id,
                    broker_epoch=broker.epoch,
                    log_dirs=[directory for directory in broker.directories if directory not in failed],
                )
            )
    cordoned = event.cordoned_directories
    can_tell = metadata_version >= CORDONED_DIRECTORIES_SINCE
    if can_tell and cordoned is not None and cordoned != broker.cordoned_directories:
        records.append(
            m.BrokerRegistrationChangeRecord(
                broker_id=broker.broker_id, broker_epoch=broker.epoch, cordoned_log_dirs=list(cordoned)
            )
        )
    return records


#: The key of the timer that ends sessions.
SESSIONS = "sessions"


def watch_sessions(before: ControllerState, after: ControllerState) -> tuple[Effect, ...]:
    """The timer of the session that ends first, and the brokers to probe if they are others than before."""
    first = _first_end(after)
    timer: Effect = CancelTimer(SESSIONS) if first is None else SetTimer(SESSIONS, first[0])
    suspects = early_fencing.suspects(after)
    return (timer,) if suspects == early_fencing.suspects(before) else (timer, Start(suspects))


def expire_sessions(state: ControllerState, event: ExpireSessions, moment: Moment) -> Decision:
    """Fence one silent broker: one at a time, so that a slow controller does not fence all at once."""
    first = _first_end(state)
    if first is None or first[0] > moment.now_ms:
        return Decision()
    return end_session(state, first[1])


def broker_probed(state: ControllerState, event: BrokerProbed, moment: Moment) -> Decision:
    """Count the probe, and fence the broker if its process has ended."""
    absence = early_fencing.counted(state, event)
    if absence is None:
        return Decision()
    if early_fencing.has_ended(absence, moment.now_ms):
        return end_session(state, event.broker_id)
    session = state.sessions[event.broker_id]._replace(absence=absence)
    return Decision(sessions={**state.sessions, event.broker_id: session})


def end_session(state: ControllerState, broker_id: int) -> Decision:
    """Fence a broker that is silent or gone."""
    sessions = {key: session for key, session in state.sessions.items() if key != broker_id}
    return Decision(tuple(fence(state, state.image.brokers[broker_id])), None, sessions)

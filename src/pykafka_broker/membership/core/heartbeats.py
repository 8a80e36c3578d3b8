"""The life of a broker as it tells the controller about it: what to send next, and when. Pure.

    STARTING                      registers, with retries; then heartbeats, fenced, until it has caught up
                                  with the metadata up to its registration
    RECOVERY                      still fenced: the broker gets ready, then asks to be unfenced
    RUNNING                       sends a heartbeat in every interval
    PENDING_CONTROLLED_SHUTDOWN   asks to stop until the controller has moved its leaderships to other brokers
    SHUTTING_DOWN                 sends nothing any more

States, order and pauses are those of Apache Kafka's BrokerLifecycleManager. One request is in flight at a
time; after a failed one a pause follows, which doubles with each failure. A running broker that the
controller fences for its silence is unfenced by its next heartbeat. A running broker that was
unregistered (STALE_BROKER_EPOCH) keeps asking without success until it is restarted, as in Apache Kafka.

Only the shutdown differs. A broker asks to stop for the second time at once, then with growing pauses. It
stops without permission after five minutes, when it was unregistered, when no controller has answered within
the session time-out, or when too few controllers are left to elect a leader.

Times are those of a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from pykafka_broker.controller.core.events import BrokerHeartbeat, HeartbeatResult
from pykafka_broker.machine.backoff import Backoff
from pykafka_broker.system.named_tuple import NamedTuple

#: The longest time that a broker waits for permission to stop.
SHUTDOWN_PATIENCE_MS = 5 * 60_000
#: The pause between the heartbeats of a starting broker, which report how far it has caught up.
CATCH_UP_PAUSE_MS = 10
#: The first pause between the heartbeats that ask to stop.
SHUTDOWN_PAUSE = Backoff(first_ms=50)


class Phase(Enum):
    """Kafka's BrokerState."""

    STARTING = auto()
    RECOVERY = auto()
    RUNNING = auto()
    PENDING_CONTROLLED_SHUTDOWN = auto()
    SHUTTING_DOWN = auto()


class LifeSettings(NamedTuple):
    """`broker.heartbeat.interval.ms`, `broker.session.timeout.ms`, `initial.broker.registration.timeout.ms`
    and `log.dir.failure.timeout.ms`.
    """

    heartbeat_interval_ms: int = 2_000
    session_timeout_ms: int = 9_000
    registration_timeout_ms: int = 60_000
    directory_failure_timeout_ms: int = 30_000

    @property
    def patience_ms(self) -> int:
        """The time-out of a heartbeat including retries: half a session, as in Kafka's BrokerServer, so that
        another one can arrive before the session ends (KAFKA-14392).
        """
        return self.session_timeout_ms // 2


class FailedDirectory(NamedTuple):
    """A log directory that has failed: the controller has to know of it by `deadline_ms`."""

    deadline_ms: int
    is_told: bool = False


class Request(Enum):
    """The requests of a broker."""

    REGISTRATION = auto()
    HEARTBEAT = auto()


class Life(NamedTuple):
    """The state of a broker. `next_ms` is when it sends the next request, None while one is in flight."""

    settings: LifeSettings
    #: When a broker that could not register gives up.
    registration_deadline_ms: int
    next_ms: int | None
    phase: Phase = Phase.STARTING
    #: Given at the registration; -1 before.
    broker_epoch: int = -1
    #: The registration is up to date: heartbeats follow.
    is_registered: bool = False
    #: The registration in flight is already out of date.
    is_amended: bool = False
    #: Heartbeats ask to be unfenced.
    is_ready: bool = False
    #: The requests that have failed in a row.
    failures: int = 0
    #: There is news to send: the next request follows the one in flight at once.
    is_hurried: bool = False
    #: The directories that have failed.
    failed: Mapping[bytes, FailedDirectory] = {}
    #: None until the broker is about to be ready.
    cordoned: tuple[bytes, ...] | None = None
    #: How many answers have not yet let the broker stop.
    refusals: int = 0
    #: When it stops without permission.
    shutdown_deadline_ms: int | None = None
    #: When its session ends unless a controller answers.
    gone_ms: int = 0


def begin(settings: LifeSettings, now_ms: int) -> Life:
    """A broker that starts: it registers at once."""
    return Life(settings, now_ms + settings.registration_timeout_ms, next_ms=now_ms)


# -- what it does
# ---------------


def due(life: Life, now_ms: int) -> Request | None:
    """The request to send now."""
    if life.next_ms is None or now_ms < life.next_ms or life.phase is Phase.SHUTTING_DOWN:
        return None
    return Request.HEARTBEAT if life.is_registered else Request.REGISTRATION


def sent(life: Life) -> Life:
    """The request that was due is in flight."""
    return life._replace(next_ms=None, is_hurried=False)


def heartbeat(life: Life, broker_id: int, metadata_offset: int) -> BrokerHeartbeat:
    """The heartbeat of a broker that has published everything up to `metadata_offset`."""
    return BrokerHeartbeat(
        broker_id,
        life.broker_epoch,
        metadata_offset,
        want_fence=not life.is_ready,
        want_shutdown=life.phase is Phase.PENDING_CONTROLLED_SHUTDOWN,
        offline_directories=tuple(life.failed),
        cordoned_directories=life.cordoned,
    )


def next_wake_ms(life: Life) -> int | None:
    """When the next request is due, or the next deadline ends."""
    if life.phase is Phase.SHUTTING_DOWN:
        return None
    moments = [directory.deadline_ms for directory in life.failed.values() if not directory.is_told]
    if life.next_ms is not None:
        moments.append(life.next_ms)
    if life.broker_epoch < 0:
        moments.append(life.registration_deadline_ms)
    if life.shutdown_deadline_ms is not None:
        moments.append(min(life.shutdown_deadline_ms, life.gone_ms))
    return min(moments, default=None)


def silence_ms(life: Life, now_ms: int) -> int:
    """The time since a controller last answered a heartbeat, for a running broker."""
    return now_ms - (life.gone_ms - life.settings.session_timeout_ms)


def silent_for_ms(life: Life, now_ms: int) -> int | None:
    """The session time-out if no controller has answered a running broker for that long, else None.

    After that another broker may lead its partitions.
    """
    if life.phase is not Phase.RUNNING or now_ms < life.gone_ms:
        return None
    return life.settings.session_timeout_ms


def untold_directory(life: Life, now_ms: int) -> bytes | None:
    """A failed directory that the controller still does not know of at its deadline."""
    for directory_id, directory in life.failed.items():
        if not directory.is_told and now_ms >= directory.deadline_ms:
            return directory_id
    return None


# -- what happens to it
# ---------------------


def time_passed(life: Life, now_ms: int) -> Life:
    """Stop the broker if its time to register, or to wait for permission to stop, is over."""
    if life.broker_epoch < 0 and now_ms >= life.registration_deadline_ms:
        return _stopped(life)
    deadline_ms = life.shutdown_deadline_ms
    if deadline_ms is not None and now_ms >= min(deadline_ms, life.gone_ms):
        return _stopped(life)
    return life


def registered(life: Life, broker_epoch: int, now_ms: int) -> Life:
    """The controller has the registration: the first heartbeat follows at once."""
    life = life._replace(
        broker_epoch=broker_epoch, is_registered=not life.is_amended, is_amended=False, failures=0
    )
    return _after(life, 0, now_ms)


def failed(life: Life, now_ms: int) -> Life:
    """The request has failed: the next one follows after a pause."""
    backoff = Backoff(greatest_ms=life.settings.session_timeout_ms)
    pause_ms = backoff.pause_ms(life.failures)
    return life._replace(failures=life.failures + 1, is_hurried=False, next_ms=now_ms + pause_ms)


def unknown(life: Life, now_ms: int) -> Life:
    """The controller does not know this broker: if the broker asks to stop, it stops, with nothing to hand
    over.
    """
    return _stopped(life) if life.phase is Phase.PENDING_CONTROLLED_SHUTDOWN else failed(life, now_ms)


def answered(life: Life, told: BrokerHeartbeat, result: HeartbeatResult, now_ms: int) -> Life:
    """The controller has answered this heartbeat."""
    directories = {
        directory_id: directory._replace(
            is_told=directory.is_told or directory_id in told.offline_directories
        )
        for directory_id, directory in life.failed.items()
    }
    life = life._replace(failures=0, failed=directories, gone_ms=now_ms + life.settings.session_timeout_ms)
    if life.phase is Phase.STARTING:
        if result.is_caught_up:
            life = life._replace(phase=Phase.RECOVERY)
        return _after(life, CATCH_UP_PAUSE_MS, now_ms)
    if life.phase is Phase.RECOVERY and not result.is_fenced:
        life = life._replace(phase=Phase.RUNNING)
    if life.phase is not Phase.PENDING_CONTROLLED_SHUTDOWN:
        return _after(life, life.settings.heartbeat_interval_ms, now_ms)
    if not told.want_shutdown:
        return _after(life, 0, now_ms)
    if result.should_shut_down:
        return _stopped(life)
    pause_ms = SHUTDOWN_PAUSE.pause_ms(life.refusals - 1) if life.refusals else 0
    life = life._replace(refusals=life.refusals + 1)
    return _after(life, min(pause_ms, life.settings.heartbeat_interval_ms), now_ms)


def ready(life: Life, now_ms: int) -> Life:
    """The broker can lead partitions: ask to be unfenced."""
    return _hurried(life._replace(is_ready=True), now_ms)


def directory_failed(life: Life, directory_id: bytes, now_ms: int) -> Life:
    """A log directory has failed."""
    deadline_ms = now_ms + life.settings.directory_failure_timeout_ms
    life = life._replace(failed={**life.failed, directory_id: FailedDirectory(deadline_ms)})
    return _hurried(life, now_ms) if life.is_registered else life


def cordon(life: Life, directories: tuple[bytes, ...], now_ms: int) -> Life:
    """These directories get no new replicas."""
    life = life._replace(cordoned=directories)
    return _hurried(life, now_ms) if life.is_registered else life


def register_again(life: Life, now_ms: int) -> Life:
    """The registration has to be amended."""
    is_on_its_way = life.next_ms is None and not life.is_registered
    return _hurried(life._replace(is_registered=False, is_amended=is_on_its_way), now_ms)


def begin_shutdown(life: Life, now_ms: int) -> Life:
    """Begin to stop: a running broker asks for permission, any other stops at once."""
    if life.phase is Phase.PENDING_CONTROLLED_SHUTDOWN:
        return life
    if life.phase is not Phase.RUNNING:
        return _stopped(life)
    life = life._replace(
        phase=Phase.PENDING_CONTROLLED_SHUTDOWN,
        shutdown_deadline_ms=now_ms + SHUTDOWN_PATIENCE_MS,
        gone_ms=now_ms + life.settings.session_timeout_ms,
    )
    return _hurried(life, now_ms)


def stop(life: Life) -> Life:
    """The broker stops at once."""
    return _stopped(life)


def _after(life: Life, pause_ms: int, now_ms: int) -> Life:
    """The request is answered: the next one follows after the pause, at once if there is news."""
    return life._replace(next_ms=now_ms if life.is_hurried else now_ms + pause_ms, is_hurried=False)


def _hurried(life: Life, now_ms: int) -> Life:
    """Send the next request at once, or right after the one in flight."""
    if life.next_ms is None:
        return life._replace(is_hurried=True)
    return life._replace(next_ms=min(life.next_ms, now_ms))


def _stopped(life: Life) -> Life:
    return life._replace(phase=Phase.SHUTTING_DOWN, next_ms=None)

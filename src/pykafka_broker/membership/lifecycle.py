"""The lifecycle of this broker (KIP-631): sends the controller what `core/heartbeats.py` decides.

The broker says which log directories have failed and which are cordoned (KIP-858); the controller, in
this process or elsewhere, decides what follows. A node whose own controller is active calls it without a
network, and sends heartbeats all the same, in case another node becomes the active controller.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from pykafka_broker.cluster.features import DIRECTORY_IDS_SINCE, NODE_FEATURES
from pykafka_broker.cluster.image import ClusterImage, RegisteredEndpoint
from pykafka_broker.config import BrokerConfig
from pykafka_broker.controller.channel import ControllerChannel
from pykafka_broker.controller.core import events
from pykafka_broker.controller.core.events import ProducerIdBlock
from pykafka_broker.log.disk.directories import LogDir, LogDirs
from pykafka_broker.machine.clock import Clock, Timer
from pykafka_broker.membership.core import heartbeats
from pykafka_broker.membership.core.heartbeats import Life, LifeSettings, Phase, Request
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.raft.format import random_uuid
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.repeated_lines import RepeatedLines

logger = logging.getLogger("kafka.server.BrokerLifecycleManager")

#: How often a broker that waits for permission to stop checks whether enough controllers are left to give it.
QUORUM_CHECK_MS = 100
#: Logged once; the failed heartbeats that follow are logged at DEBUG only.
UNREGISTERED = (
    "This broker runs, and is registered no more: it was unregistered, or another one has registered with "
    "its node.id. It leads no partition, its replicas do not count as in sync, and no heartbeat lets it "
    "back: restart it, or stop it if it is to go"
)


class LifePorts(NamedTuple):
    """The functions of its node that the lifecycle calls.

    Everything below `published_offset()` has been published. `fail` is called with an error after which
    the broker cannot go on. `raise_if_final` is called with the error of a request, and raises if a retry
    cannot help. `is_quorum_gone()` tells whether too few controllers are left to elect a leader.
    """

    clock: Clock
    published_offset: Callable[[], int]
    fail: Callable[[Exception], None]
    raise_if_final: Callable[[KafkaError], None]
    is_quorum_gone: Callable[[], bool]


def life_settings(config: BrokerConfig) -> LifeSettings:
    """The timers of a broker's life, as configured."""
    return LifeSettings(
        heartbeat_interval_ms=config["broker.heartbeat.interval.ms"],
        session_timeout_ms=config["broker.session.timeout.ms"],
        registration_timeout_ms=config["initial.broker.registration.timeout.ms"],
        directory_failure_timeout_ms=config["log.dir.failure.timeout.ms"],
    )


class BrokerIdentity(NamedTuple):
    """The broker and its cluster."""

    broker_id: int
    cluster_id: str


class _Registration(NamedTuple):
    listeners: Mapping[str, RegisteredEndpoint]
    rack: str | None
    previous_broker_epoch: int


class BrokerLifecycle:
    """Registers the broker and keeps the controller informed about it. Event loop only."""

    def __init__(
        self,
        broker: BrokerIdentity,
        controller: ControllerChannel,
        dirs: LogDirs,
        ports: LifePorts,
        settings: LifeSettings,
    ) -> None:
        self._broker = broker
        self._controller = controller
        self._dirs = dirs
        self._ports = ports
        self._settings = settings
        #: Identifies this start of the broker. Every registration carries it, so that the controller can
        #: tell a repeated registration from another broker with the same id.
        self.incarnation_id = random_uuid()
        self._life: Life | None = None
        self._registration: _Registration | None = None
        self._sending: asyncio.Task[None] | None = None
        self._timer: Timer | None = None
        #: The waiting calls of `_until`: the condition and the future of each.
        self._waiting: list[tuple[Callable[[Life], bool], asyncio.Future[None]]] = []
        self._last_error: KafkaError | None = None
        #: The error that has ended the start of the broker, or its wait for permission to stop.
        self._final_error: Exception | None = None
        self._watching: asyncio.Task[None] | None = None
        #: The metadata had this registration when it was published last.
        self._is_known = False
        self._lines = RepeatedLines(logger, ports.clock.now_ms)

    @property
    def broker_epoch(self) -> int:
        """Given by the controller at registration; -1 before."""
        return -1 if self._life is None else self._life.broker_epoch

    @property
    def phase(self) -> Phase:
        """The phase of the broker's life."""
        return Phase.STARTING if self._life is None else self._life.phase

    @property
    def silent_for_ms(self) -> int | None:
        """The session time-out if no controller has answered this running broker for that long, else None."""
        return None if self._life is None else heartbeats.silent_for_ms(self._life, self._now_ms())

    @property
    def silence_ms(self) -> int:
        """The time since a controller last answered, for a running broker."""
        return heartbeats.silence_ms(self._known_life, self._now_ms())

    async def register(
        self, listeners: Mapping[str, RegisteredEndpoint], *, rack: str | None, previous_broker_epoch: int
    ) -> None:
        """Register, fenced, with the directories that are in service; a second time amends the first.

        This node has published the registration, and all metadata before it, when this returns.
        `previous_broker_epoch` is the epoch noted by the last clean stop, -1 if there is none.

        Raises:
            KafkaError: REQUEST_TIMED_OUT, no controller has registered the broker in time.
            Exception: the node cannot go on.
        """
        self._registration = _Registration(listeners, rack, previous_broker_epoch)
        now_ms = self._now_ms()
        if self._life is None:
            self._go_on(heartbeats.begin(self._settings, now_ms))
        else:
            self._go_on(heartbeats.register_again(self._life, now_ms))
        await self._until(lambda life: life.is_registered and life.phase is not Phase.STARTING)
        self._raise_if_final()
        if self.phase is Phase.SHUTTING_DOWN:
            reason = "" if self._last_error is None else f" It answered: {self._last_error}"
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"Unable to register with the controller quorum in time.{reason}",
            )

    async def unfence(self, cordoned: Iterable[str]) -> None:
        """Tell the controller that the broker is ready to lead; return when it is unfenced.

        New replicas may be placed in all its directories but `cordoned`.

        Raises:
            Exception: the node cannot go on.
        """
        now_ms = self._now_ms()
        life = heartbeats.cordon(self._known_life, self._cordon(cordoned), now_ms)
        self._go_on(heartbeats.ready(life, now_ms))
        await self._until(lambda life: life.phase is Phase.RUNNING)
        self._raise_if_final()

    def _raise_if_final(self) -> None:
        if self._final_error is not None:
            raise self._final_error

    async def shut_down(self, *, is_controlled: bool = True) -> None:
        """Have the controller move leadership away and fence this broker; return when it may stop serving.

        Without `is_controlled` the broker just stops sending. A call after the shutdown does nothing.
        """
        if self._life is not None and self.phase is not Phase.SHUTTING_DOWN:
            life, now_ms = self._life, self._now_ms()
            self._go_on(heartbeats.begin_shutdown(life, now_ms) if is_controlled else heartbeats.stop(life))
            if self._watching is None:  # a call before this one may wait
                self._watching = asyncio.get_running_loop().create_task(self._watch_quorum())
            await self._until(lambda life: False)
        for task in (self._sending, self._watching):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _watch_quorum(self) -> None:
        """Stop without permission once too few controllers are left to give it."""
        while not self._ports.is_quorum_gone():
            await self._ports.clock.sleep(QUORUM_CHECK_MS)
        if self.phase is not Phase.SHUTTING_DOWN:
            logger.warning("No controller can approve controlled shutdown: too few of them are left")
            self._go_on(heartbeats.stop(self._known_life))

    def published(self, image: ClusterImage) -> None:
        """Check newly published metadata: a registration without directory ids is sent again with them.

        A broker that is no longer registered logs it once and keeps sending heartbeats, as in Apache Kafka.
        """
        known = next((b for b in image.brokers.values() if b.incarnation_id == self.incarnation_id), None)
        was_known, self._is_known = self._is_known, known is not None
        life = self._life
        if life is None or not life.is_registered or life.phase is Phase.SHUTTING_DOWN:
            return
        if known is None:
            if was_known:
                logger.error(UNREGISTERED)
        elif not known.directories and image.metadata_version >= DIRECTORY_IDS_SINCE:
            self._go_on(heartbeats.register_again(life, self._now_ms()))

    # -- requests --------------------------------------------------------------------------------------

    @property
    def _known_life(self) -> Life:
        assert self._life is not None, "not registered"
        return self._life

    def _now_ms(self) -> int:
        return self._ports.clock.monotonic_ms()

    def _go_on(self, life: Life) -> None:
        """Make `life` the current state: send the request that is due, wake waiting calls, set the timer."""
        before, self._life = self._life, life
        now_ms = self._now_ms()
        if before is not None and before.phase is not life.phase:
            logger.debug("The broker goes from %s to %s.", before.phase.name, life.phase.name)
        request = heartbeats.due(life, now_ms)
        if request is not None:
            self._life = life = heartbeats.sent(life)
            self._sending = asyncio.get_running_loop().create_task(self._send(request))
        self._tell_waiting(life)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        wake_ms = heartbeats.next_wake_ms(life)
        if wake_ms is not None:
            self._timer = self._ports.clock.call_at(wake_ms, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        life, now_ms = self._known_life, self._now_ms()
        untold = heartbeats.untold_directory(life, now_ms)
        if untold is not None:
            text = f"No controller could be told in time that directory {untold.hex()} has failed."
            self._ports.fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, text))
            life = heartbeats.stop(life)
        after = heartbeats.time_passed(life, now_ms)
        if after.phase is Phase.SHUTTING_DOWN and life.phase is Phase.PENDING_CONTROLLED_SHUTDOWN:
            logger.warning("Timed out waiting for the controller to approve controlled shutdown")
        self._go_on(after)

    async def _send(self, request: Request) -> None:
        try:
            if request is Request.REGISTRATION:
                await self._send_registration()
            else:
                await self._send_heartbeat()
        except KafkaError as error:
            self._last_error = error
            what = "register the broker" if request is Request.REGISTRATION else "send a heartbeat"
            if error.code is ErrorCode.STALE_BROKER_EPOCH and not self._is_known:
                logger.debug("Unable to %s: %s", what, error)  # see UNREGISTERED
            else:
                self._lines.log(logging.WARNING, request.name, "", f"Unable to {what}: {error}")
            self._go_on(self._after_failure(self._known_life, error))
        except Exception as error:  # keep sending: a silent broker is fenced
            self._lines.log(logging.ERROR, request.name, "failed", f"Unable to send {request.name}", error)
            self._go_on(heartbeats.failed(self._known_life, self._now_ms()))

    def _after_failure(self, life: Life, error: KafkaError) -> Life:
        if life.phase is not Phase.RUNNING:
            try:
                self._ports.raise_if_final(error)
            except Exception as final:
                self._final_error = final
                return heartbeats.stop(life)
        if error.code is ErrorCode.STALE_BROKER_EPOCH:
            return heartbeats.unknown(life, self._now_ms())
        return heartbeats.failed(life, self._now_ms())

    async def _send_registration(self) -> None:
        registration = self._registration
        assert registration is not None
        epoch = await self._controller.ask(
            events.RegisterBroker(
                *self._broker,
                self.incarnation_id,
                registration.listeners,
                NODE_FEATURES,
                tuple(d.directory_id for d in self._dirs.online),
                registration.rack,
                registration.previous_broker_epoch,
            )
        )
        self._go_on(heartbeats.registered(self._known_life, epoch, self._now_ms()))

    async def _send_heartbeat(self) -> None:
        published_offset = self._ports.published_offset() - 1
        heartbeat = heartbeats.heartbeat(self._known_life, self._broker.broker_id, published_offset)
        result = await self._controller.ask(heartbeat, self._settings.patience_ms)
        self._go_on(heartbeats.answered(self._known_life, heartbeat, result, self._now_ms()))

    async def _until(self, is_reached: Callable[[Life], bool]) -> None:
        """Return when `is_reached` is true, or when the broker stops."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((is_reached, waiter))
        self._tell_waiting(self._known_life)
        await waiter

    def _tell_waiting(self, life: Life) -> None:
        still: list[tuple[Callable[[Life], bool], asyncio.Future[None]]] = []
        for is_reached, waiter in self._waiting:
            if waiter.done():
                continue
            if life.phase is Phase.SHUTTING_DOWN or is_reached(life):
                waiter.set_result(None)
            else:
                still.append((is_reached, waiter))
        self._waiting = still

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        """A block of producer ids for this broker."""
        block: ProducerIdBlock = await self._controller.ask(
            events.AllocateProducerIds(self._broker.broker_id, self.broker_epoch)
        )
        return block

    # -- log directories -------------------------------------------------------------------------------

    def recordon(self, cordoned: Iterable[str]) -> None:
        """Place new replicas in all directories but the `cordoned`; report a change to the controller."""
        before = self._are_cordoned()
        directories = self._cordon(cordoned)
        if self._life is not None and before != self._are_cordoned():
            self._go_on(heartbeats.cordon(self._life, directories, self._now_ms()))

    def report_failed(self, log_dir: LogDir) -> None:
        """A log directory has failed: the partitions that this broker leads there need another leader."""
        if self._life is not None:
            self._go_on(heartbeats.directory_failed(self._life, log_dir.directory_id, self._now_ms()))

    def _are_cordoned(self) -> list[bool]:
        return [log_dir.is_cordoned for log_dir in self._dirs.of_partitions]

    def _cordon(self, cordoned: Iterable[str]) -> tuple[bytes, ...]:
        self._dirs.cordon(frozenset(cordoned))
        return tuple(d.directory_id for d in self._dirs.online if d.is_cordoned)

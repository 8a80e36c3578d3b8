"""The metadata log on this node: starts and stops the raft host, the publisher and the snapshotter.

    boot -> elected -> the controller begins -> first commit -> published

A node that never leads has the same parts and no `leadership`.
"""

from __future__ import annotations

from collections.abc import Callable

from pykafka_broker.machine.clock import Clock, Timer
from pykafka_broker.machine.scheduler import Scheduler
from pykafka_broker.metadata.feature_check import check_features
from pykafka_broker.metadata.log_leadership import MetadataLeadership
from pykafka_broker.metadata.publisher import MetadataPublisher
from pykafka_broker.metadata.raft_host import RaftHost
from pykafka_broker.metadata.snapshotter import SnapshotSettings, Snapshotter
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.raft.core.quorum import Endpoints, Voter
from pykafka_broker.raft.core.settings import DEFAULTS, Settings
from pykafka_broker.raft.driver import DriverPorts
from pykafka_broker.raft.storage import RaftStorage
from pykafka_broker.system.named_tuple import NamedTuple

#: The longest time that a stop waits for another voter to lead, as in Kafka.
HAND_OVER_TIMEOUT_MS = 5_000
#: A node that waits longer than this logs what it waits for; elections, and starts at the same time, take
#: less.
WAIT_LOGGED_AFTER_MS = 5_000
#: The interval at which it logs this again.
WAIT_LOGGED_EVERY_MS = 60_000


class ReplicaPorts(NamedTuple):
    """The functions of the node that the replica calls.

    `driver` has the functions that the raft driver calls. `on_failure` is called when the metadata log fails
    after the start: a node without metadata must stop.
    """

    scheduler: Scheduler
    driver: DriverPorts
    on_failure: Callable[[Exception], None]


class MetadataReplica:
    """The replica of the metadata log on this node. `publisher` publishes its content."""

    def __init__(
        self,
        storage: RaftStorage,
        local: Voter,
        publisher: MetadataPublisher,
        ports: ReplicaPorts,
        *,
        leadership: MetadataLeadership | None,
        snapshots: SnapshotSettings,
        settings: Settings = DEFAULTS,
        reached_at: Endpoints | None = None,
    ) -> None:
        self.publisher = publisher
        self._ports = ports
        self._is_started = False
        self._hands_over = True
        self.host = RaftHost(
            storage,
            local,
            publisher,
            leadership,
            ports.driver,
            settings=settings,
            reached_at=reached_at,
            on_failure=self._failed,
        )
        self._snapshotter = Snapshotter(
            storage,
            self.host.membership_below,
            ports.scheduler,
            on_change=self.host.snapshots_changed,
            run_blocking=ports.driver.run_blocking,
            settings=snapshots,
        )
        publisher.watch(self._snapshotter.on_published)
        self._wait = _Wait(self.host, ports.driver.clock)
        self.host.watch_leader(self._leader_changed)

    async def start(self) -> None:
        """Read the log, take a role, and return when everything that the quorum has committed is published.

        A replica needs a leader to learn what is committed, and finds it over the network. The only voter of
        a quorum leads at once, and commits its whole log.

        Raises:
            OtherVotersError, CorruptMetadataError, MalformedFile: the log cannot be used by this node.
            OSError, KafkaError: the disk failed.
        """
        self.host.load()
        check_features(self.publisher.replayed_image.features)
        self.host.boot()
        await self.publisher.caught_up()
        self._is_started = True
        self._leader_changed()

    def _leader_changed(self) -> None:
        if self._is_started and self.host.was_led:
            self._wait.end()
        else:
            self._wait.begin()

    def fall_silent(self) -> None:
        """Make `close` skip the handover to another voter."""
        self._hands_over = False

    async def close(self) -> None:
        """Hand over to another voter if started; return when everything appended is on disk and published."""
        self.host.resign(KafkaError(ErrorCode.NOT_CONTROLLER, "The controller is shutting down."))
        if self._is_started and self._hands_over:
            await self.host.hand_over(HAND_OVER_TIMEOUT_MS)
        await self.host.close()
        self._wait.cancel()
        await self.publisher.close()
        if self._is_started:
            await self._snapshotter.close(self.publisher.image)

    def _failed(self, error: Exception) -> None:
        self.publisher.fail(error)
        if self._is_started:
            self._ports.on_failure(error)


class _Wait:
    """The wait of a node that starts, or has lost its leader: logged after a few seconds, and then rarely."""

    def __init__(self, host: RaftHost, clock: Clock) -> None:
        self._host = host
        self._clock = clock
        #: The timer of the next line; None while the node does not wait.
        self._timer: Timer | None = None
        self._is_logged = False

    def begin(self) -> None:
        """Wait, unless the node waits already."""
        if self._timer is None:
            self._log_in(WAIT_LOGGED_AFTER_MS)

    def end(self) -> None:
        """Wait no more; a wait that was logged gets a last line."""
        self.cancel()
        if self._is_logged:
            self._is_logged = False
            self._host.log_end_of_wait()

    def cancel(self) -> None:
        """Log nothing more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _log_in(self, delay_ms: int) -> None:
        self._timer = self._clock.call_at(self._clock.monotonic_ms() + delay_ms, self._log)

    def _log(self) -> None:
        self._is_logged = True
        self._host.log_wait(WAIT_LOGGED_AFTER_MS)
        self._log_in(WAIT_LOGGED_EVERY_MS)

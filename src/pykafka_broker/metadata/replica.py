"""The metadata log on this node: starts and stops the raft host, the publisher and the snapshotter.

    boot -> elected -> the controller begins -> first commit -> published

A node that never leads has the same parts and no `leadership`.
"""

from __future__ import annotations

from collections.abc import Callable

from pykafka_broker.machine.clock import Timer
from pykafka_broker.machine.scheduler import Scheduler
from pykafka_broker.metadata.feature_check import check_features
from pykafka_broker.metadata.leadership import Leadership
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
#: A start that waits longer than this logs what it waits for; other controllers may be starting too.
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
        leadership: Leadership | None,
        snapshots: SnapshotSettings,
        settings: Settings = DEFAULTS,
        reached_at: Endpoints | None = None,
    ) -> None:
        self.publisher = publisher
        self._ports = ports
        self._is_started = False
        self._hands_over = True
        #: Fires when a start has waited so long that it logs what it waits for.
        self._logging: Timer
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

    async def start(self) -> None:
        """Read the log, take a role, and return when everything that the quorum has committed is published.

        A replica needs a leader to learn what is committed, and finds it over the network. A start that waits
        logs what it waits for after `WAIT_LOGGED_AFTER_MS`, then every `WAIT_LOGGED_EVERY_MS`. The only voter
        of a quorum leads at once, and commits its whole log.

        Raises:
            OtherVotersError, CorruptMetadataError, MalformedFile: the log cannot be used by this node.
            OSError, KafkaError: the disk failed.
        """
        self.host.load()
        check_features(self.publisher.replayed_image.features)
        self.host.boot()
        self._log_wait_in(WAIT_LOGGED_AFTER_MS)
        try:
            await self.publisher.caught_up()
        finally:
            self._logging.cancel()
        self._is_started = True

    def _log_wait_in(self, delay_ms: int) -> None:
        clock = self._ports.driver.clock
        self._logging = clock.call_at(clock.monotonic_ms() + delay_ms, self._log_wait)

    def _log_wait(self) -> None:
        self.host.log_wait(WAIT_LOGGED_AFTER_MS)
        self._log_wait_in(WAIT_LOGGED_EVERY_MS)

    def fall_silent(self) -> None:
        """Make `close` skip the handover to another voter."""
        self._hands_over = False

    async def close(self) -> None:
        """Hand over to another voter if started; return when everything appended is on disk and published."""
        self.host.resign(KafkaError(ErrorCode.NOT_CONTROLLER, "The controller is shutting down."))
        if self._is_started and self._hands_over:
            await self.host.hand_over(HAND_OVER_TIMEOUT_MS)
        await self.host.close()
        await self.publisher.close()
        if self._is_started:
            await self._snapshotter.close(self.publisher.image)

    def _failed(self, error: Exception) -> None:
        self.publisher.fail(error)
        if self._is_started:
            self._ports.on_failure(error)

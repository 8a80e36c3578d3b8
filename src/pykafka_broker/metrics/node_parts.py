"""The parts of a node that families of metrics read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from pykafka_broker.metrics.copies import Copies
from pykafka_broker.metrics.rates import Rates
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.apis.fetching.sessions import FetchSessionCache
    from pykafka_broker.apis.ports.quotas import Quotas
    from pykafka_broker.authorization.counts import DecisionCounts
    from pykafka_broker.config import BrokerConfig
    from pykafka_broker.controller.role import ControllerRole
    from pykafka_broker.coordinator.coordinators import Coordinators
    from pykafka_broker.log.manager.log_manager import LogManager
    from pykafka_broker.machine.clock import Clock
    from pykafka_broker.machine.history import History
    from pykafka_broker.membership.lifecycle import BrokerLifecycle
    from pykafka_broker.metadata.publisher import MetadataPublisher
    from pykafka_broker.metadata.raft_host import RaftHost
    from pykafka_broker.network.listeners import Listeners
    from pykafka_broker.network.purgatory import Purgatory
    from pykafka_broker.raft.quorum_peers import QuorumPeers
    from pykafka_broker.replication.replica_fetchers import ReplicaFetchers
    from pykafka_broker.replication.replica_manager import ReplicaManager
    from pykafka_broker.telemetry.client_metrics import ClientMetrics

Made = TypeVar("Made")


class BrokerParts(NamedTuple):
    """The parts of a broker that serves."""

    replicas: ReplicaManager
    fetchers: ReplicaFetchers
    coordinators: Coordinators
    lifecycle: BrokerLifecycle
    purgatory: Purgatory
    sessions: FetchSessionCache
    telemetry: ClientMetrics


class QuorumSide(NamedTuple):
    """The part of a node in the quorum of the metadata log."""

    metadata: MetadataPublisher
    raft: RaftHost
    #: None on a node that is no controller.
    role: ControllerRole | None
    #: The other replicas of the metadata log; None on an only voter.
    peers: QuorumPeers | None


class NodeParts:
    """The parts of a node. The broker comes last: it is None until it serves, and on a controller.

    `decisions` are those of the authorizer; None without one.
    """

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        clock: Clock,
        listeners: Listeners,
        logs: LogManager,
        quorum: QuorumSide,
        quotas: Quotas,
        decisions: DecisionCounts | None,
        history: History,
    ) -> None:
        self._config = config
        self.clock = clock
        self.listeners = listeners
        self.logs = logs
        self.metadata, self.raft, self.role, self.peers = quorum
        self.quotas = quotas
        self.decisions = decisions
        self.history = history
        self.broker: BrokerParts | None = None
        #: What earlier scrapes have seen, for quantiles (by request and stage) and for rates.
        self.copies: dict[tuple[str, str], Copies] = {}
        self.rates = Rates(clock.monotonic_ms)
        #: Whether everything has started that the roles of the node ask for.
        self.has_started = False
        self.is_stopping = False

    def stop(self) -> None:
        """The node begins to stop."""
        self.is_stopping = True

    @property
    def config(self) -> BrokerConfig:
        """The configuration in force."""
        return self._config()


class Scrape:
    """One scrape of a node: what several families need is made once."""

    def __init__(self, node: NodeParts) -> None:
        self.node = node
        self._made: dict[Callable[[NodeParts], Any], Any] = {}

    def once(self, make: Callable[[NodeParts], Made]) -> Made:
        """The result of `make`, which is called once in this scrape."""
        if make not in self._made:
            self._made[make] = make(self.node)
        made: Made = self._made[make]
        return made

"""The controller role of a node: an active controller while the node leads the metadata log, none otherwise.

The raft host tells it of leadership (`metadata/log_leadership.py`); channels ask it. Heartbeats do not watch
the broker in the same process: if that process dies, this controller dies too. Brokers on other nodes have
sessions. Their connections are noted even while this node does not lead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Union

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.controller.active_controller import ActiveController
from pykafka_broker.controller.bootstrap import feature_levels
from pykafka_broker.controller.broker_probes import Probe, is_refused
from pykafka_broker.controller.channel import ChangeRequester
from pykafka_broker.controller.connected_brokers import ConnectedBrokers, NotedConnection
from pykafka_broker.controller.core import events
from pykafka_broker.controller.core.client_quotas import named_hosts
from pykafka_broker.controller.core.state import ControllerRules
from pykafka_broker.controller.hosts import unknown_hosts
from pykafka_broker.machine.scheduler import Scheduler
from pykafka_broker.machine.shard import Prompt
from pykafka_broker.metadata.feature_check import check_features
from pykafka_broker.metadata.log_leadership import LeaderLog
from pykafka_broker.metadata.publisher import MetadataPublisher
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.raft.core.messages import AddVoter, ChangeAnswer, RemoveVoter
from pykafka_broker.raft.quorum_description import QuorumDescription


class ControllerRole:
    """The `MetadataLeadership` of a node that may lead.

    `read_bootstrap` gives the records that an empty log begins with; it is called only if the log is empty.
    """

    def __init__(
        self,
        publisher: MetadataPublisher,
        rules: ControllerRules,
        scheduler: Scheduler,
        *,
        read_bootstrap: Callable[[], tuple[object, ...]],
        probe: Probe = is_refused,
    ) -> None:
        self._publisher = publisher
        self._rules = rules
        self._scheduler = scheduler
        self._read_bootstrap = read_bootstrap
        self._probe = probe
        self._connections = ConnectedBrokers(self._on_connected)
        #: The connections on which brokers register and send heartbeats.
        self._heartbeats = ConnectedBrokers(self._on_heartbeats)
        self._bootstrap: tuple[object, ...] = ()
        self._active: ActiveController | None = None
        #: Unclean elections, and decided events, of active controllers before this one.
        self._unclean_before = 0
        self._decisions_before = 0
        #: Requests whose time-out came before the answer.
        self.timed_out = 0
        #: The heartbeats among them.
        self.timed_out_heartbeats = 0
        #: The error of requests while no controller is active.
        self._inactive = KafkaError(ErrorCode.NOT_CONTROLLER)
        publisher.watch(self._on_published)

    @property
    def active(self) -> ActiveController:
        """The active controller.

        Raises:
            KafkaError: NOT_CONTROLLER, or the error with which this node stopped leading.
        """
        if self._active is None:
            raise self._inactive
        return self._active

    @property
    def is_active(self) -> bool:
        """Whether this node's controller is active."""
        return self._active is not None

    @property
    def unclean_elections(self) -> int:
        """Elections of replicas that were not in sync, decided here since the start."""
        return self._unclean_before + (0 if self._active is None else self._active.unclean_elections)

    @property
    def decisions(self) -> int:
        """Events that were decided here since the start."""
        return self._decisions_before + (0 if self._active is None else self._active.decisions)

    @property
    def heartbeat_ages_ms(self) -> Mapping[int, int]:
        """Those of the active controller; none while there is none here."""
        return {} if self._active is None else self._active.heartbeat_ages_ms

    def note(self, node_id: int, connection: NotedConnection, *, sends_heartbeats: bool = False) -> None:
        """A node has made a request on the connection; while it is open, the node's process is alive."""
        self._connections.note(node_id, connection)
        if sends_heartbeats:
            self._heartbeats.note(node_id, connection)

    async def ask(
        self, event: events.Event, timeout_ms: int | None = None, requester: ChangeRequester | None = None
    ) -> Any:
        """The result of an event, as in `ClusterAdministration`."""
        if timeout_ms is not None and timeout_ms <= 0:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        if isinstance(event, events.AlterClientQuotas):
            event = event._replace(unknown_hosts=await unknown_hosts(named_hosts(event)))
        if isinstance(event, events.UpdateFeatures) and event.raises_kraft_version:
            return await self._raise_kraft_version(event, timeout_ms, requester)
        return await self._decided(event, timeout_ms, requester)

    async def _decided(
        self, event: events.Event, timeout_ms: int | None, requester: ChangeRequester | None
    ) -> Any:
        answer = self.active.ask(event, requester)
        if timeout_ms is None or isinstance(answer, Prompt):
            result = await answer
        else:
            deadline = self._scheduler.call_at(
                self._scheduler.now_ms() + timeout_ms, lambda: self._time_out(event, answer)
            )
            try:
                result = await answer
            finally:
                deadline.cancel()
        if isinstance(result, events.EventError):
            raise KafkaError(result.error, result.message)
        return result

    def _time_out(self, event: events.Event, answer: asyncio.Future[Any]) -> None:
        if not answer.done():
            self.timed_out += 1
            self.timed_out_heartbeats += isinstance(event, events.BrokerHeartbeat)
            answer.set_exception(KafkaError(ErrorCode.REQUEST_TIMED_OUT))

    async def _raise_kraft_version(
        self, event: events.UpdateFeatures, timeout_ms: int | None, requester: ChangeRequester | None
    ) -> None:
        """Check the event, then raise the level by control records."""
        if self.active.kraft_version > 0:
            await self._decided(event, timeout_ms, requester)
            return
        refusal = await self.active.upgrade_kraft_version(validate_only=True)
        await self._decided(event._replace(kraft_version_refusal=refusal), timeout_ms, requester)
        if not event.validate_only:
            await self.active.upgrade_kraft_version(validate_only=False, requester=requester)

    async def change_voters(self, request: Union[AddVoter, RemoveVoter]) -> ChangeAnswer:
        """The answer of the leader to a change of the voters, which may be a refusal."""
        return await self.active.change_voters(request)

    async def describe_quorum(self) -> QuorumDescription:
        """The metadata quorum as its leader sees it now."""
        return self.active.describe_quorum()

    # -- leadership ------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Read the bootstrap records, if the log is empty.

        Raises:
            OSError, MalformedFile, CorruptMetadataError: they are unreadable, or not for this version.
        """
        if not self._publisher.replayed_image.features:
            self._bootstrap = self._read_bootstrap()
            check_features(feature_levels(self._bootstrap))

    def begin(self, log: LeaderLog) -> None:
        """Start an active controller."""
        bootstrap = () if self._publisher.replayed_image.features else self._bootstrap
        active = ActiveController.begin(
            log, self._publisher, self._rules, self._scheduler, bootstrap, self._probe
        )
        for node_id in self._connections.node_ids:
            active.on_connected(node_id, is_connected=True)
        self._active = active

    def end(self, error: KafkaError) -> None:
        """Stop the active controller: waiting and later requests are answered with `error`."""
        active, self._active = self._active, None
        self._inactive = error
        if active is not None:
            self._unclean_before += active.unclean_elections
            self._decisions_before += active.decisions
            active.close(error)

    def _on_connected(self, node_id: int, is_connected: bool) -> None:
        if self._active is not None:
            self._active.on_connected(node_id, is_connected=is_connected)

    def _on_heartbeats(self, node_id: int, has_connection: bool) -> None:
        # A returning broker's next heartbeat tells that it is back.
        if self._active is not None and not has_connection:
            self._active.on_heartbeats_ended(node_id)

    def _on_published(self, image: ClusterImage, offset: int) -> None:
        if self._active is not None:
            self._active.on_published(image, offset)


class NoController:
    """The role of a node that is only a broker."""

    is_active = False

    async def ask(
        self, event: events.Event, timeout_ms: int | None = None, requester: ChangeRequester | None = None
    ) -> Any:
        """Raises KafkaError: NOT_CONTROLLER."""
        raise KafkaError(ErrorCode.NOT_CONTROLLER)

    async def change_voters(self, request: Union[AddVoter, RemoveVoter]) -> ChangeAnswer:
        """Raises KafkaError: NOT_CONTROLLER."""
        raise KafkaError(ErrorCode.NOT_CONTROLLER)

    async def describe_quorum(self) -> QuorumDescription:
        """Raises KafkaError: NOT_CONTROLLER."""
        raise KafkaError(ErrorCode.NOT_CONTROLLER)

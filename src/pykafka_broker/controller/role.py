"""The controller role of a node: an active controller while the node leads the metadata log, none otherwise.

The raft host tells it of leadership (`metadata/leadership.py`); channels ask it. The broker in the same
process is not watched by heartbeats: if it dies, so does its controller. Brokers elsewhere have sessions, and
their connections are noted whether this node leads or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from pykafka_broker.cluster import events
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.cluster.state import ControllerRules
from pykafka_broker.controller.active_controller import ActiveController
from pykafka_broker.controller.bootstrap import feature_levels
from pykafka_broker.controller.broker_connections import BrokerConnections, NotedConnection
from pykafka_broker.controller.broker_probes import Probe, is_refused
from pykafka_broker.machine.scheduler import Scheduler
from pykafka_broker.machine.shard import Answer, Prompt
from pykafka_broker.metadata.controller_channel import Requester
from pykafka_broker.metadata.feature_check import check_features
from pykafka_broker.metadata.leadership import LeaderLog
from pykafka_broker.metadata.publisher import MetadataPublisher
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


class ControllerRole:
    """The `Leadership` of a node that may lead.

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
        self._connections = BrokerConnections(self._on_connected)
        #: Those of them on which brokers register and send heartbeats.
        self._heartbeats = BrokerConnections(self._on_heartbeats)
        self._bootstrap: tuple[object, ...] = ()
        self._active: ActiveController | None = None
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
        """Whether this node's controller decides now."""
        return self._active is not None

    def ask(self, event_with: Callable[[int], events.Event], requester: Requester | None = None) -> Answer:
        """Let the active controller decide; `event_with(token)` builds the event.

        Raises:
            KafkaError: no controller is active here.
        """
        return self.active.ask(event_with, requester)

    def now_ms(self) -> int:
        """The time for an event."""
        return self._scheduler.now_ms()

    def note(self, node_id: int, connection: NotedConnection, *, sends_heartbeats: bool = False) -> None:
        """A node has made a request for itself on the connection: while it is open, its process lives."""
        self._connections.note(node_id, connection)
        if sends_heartbeats:
            self._heartbeats.note(node_id, connection)

    async def result_of(
        self,
        event_with: Callable[[int], events.Event],
        timeout_ms: int | None = None,
        requester: Requester | None = None,
    ) -> Any:
        """The result of an event, which a client has asked for where one is named.

        Raises:
            KafkaError: it was refused as a whole, no controller is active here, or `timeout_ms` have passed
                (REQUEST_TIMED_OUT); what has no time left is not begun, what takes too long may still happen.
        """
        if timeout_ms is not None and timeout_ms <= 0:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        answer = self.ask(event_with, requester)
        if timeout_ms is None or isinstance(answer, Prompt):
            result = await answer
        else:
            deadline = self._scheduler.call_at(
                self._scheduler.now_ms() + timeout_ms, lambda: _time_out(answer)
            )
            try:
                result = await answer
            finally:
                deadline.cancel()
        if isinstance(result, events.EventError):
            raise KafkaError(result.error, result.message)
        return result

    # -- leadership ------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Read the records that an empty log is to begin with.

        Raises:
            OSError, MalformedFile, CorruptMetadataError: that cannot be read, or is not for this version.
        """
        if not self._publisher.replayed_image.features:
            self._bootstrap = self._read_bootstrap()
            check_features(feature_levels(self._bootstrap))

    def begin(self, log: LeaderLog) -> None:
        """Decide from now on."""
        bootstrap = () if self._publisher.replayed_image.features else self._bootstrap
        active = ActiveController.begin(
            log, self._publisher, self._rules, self._scheduler, bootstrap, self._probe
        )
        for node_id in self._connections.node_ids:
            active.on_connected(node_id, is_connected=True)
        self._active = active

    def end(self, error: KafkaError) -> None:
        """Decide no more: requests that wait, and those to come, get `error`."""
        active, self._active = self._active, None
        self._inactive = error
        if active is not None:
            active.close(error)

    def _on_connected(self, node_id: int, is_connected: bool) -> None:
        if self._active is not None:
            self._active.on_connected(node_id, is_connected=is_connected)

    def _on_heartbeats(self, node_id: int, has_connection: bool) -> None:
        # That they come again, the next of them says itself.
        if self._active is not None and not has_connection:
            self._active.on_heartbeats_ended(node_id)

    def _on_published(self, image: ClusterImage, offset: int) -> None:
        if self._active is not None:
            self._active.on_published(image, offset)


class NoController:
    """The role of a node whose controller never decides: one that is only a broker."""

    is_active = False

    @property
    def active(self) -> ActiveController:
        """Raises KafkaError: NOT_CONTROLLER."""
        raise KafkaError(ErrorCode.NOT_CONTROLLER)

    async def result_of(
        self,
        event_with: Callable[[int], events.Event],
        timeout_ms: int | None = None,
        requester: Requester | None = None,
    ) -> Any:
        """Raises KafkaError: NOT_CONTROLLER."""
        raise KafkaError(ErrorCode.NOT_CONTROLLER)


def _time_out(answer: asyncio.Future[Any]) -> None:
    if not answer.done():
        answer.set_exception(KafkaError(ErrorCode.REQUEST_TIMED_OUT))

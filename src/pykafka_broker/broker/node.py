"""A running node: the parts of its roles, started in the order of their dependencies. The composition root.

    shared parts -> metrics -> listeners of controllers -> replica of the metadata log -> controller -> broker

`process.roles` says whether a node is a controller, a broker or both. Each kind of listener is started
separately, with the ports of its own handlers; the broker listeners are started last. Many nodes can run in
one process and event loop; nothing here is global.

Further parts go into `listener_kinds.py`.
"""

from __future__ import annotations

from pykafka_broker.broker.broker_server import BrokerServer, start_broker
from pykafka_broker.broker.controller_server import register_controller, serve_controllers
from pykafka_broker.broker.foundation import Foundation
from pykafka_broker.broker.metrics_server import broker_parts, serve_metrics
from pykafka_broker.broker.partition_history import follow
from pykafka_broker.broker.served_listeners import ServedListeners
from pykafka_broker.broker.shared_server import SharedServer, build_shared, start_replica
from pykafka_broker.broker.stop_order import Undo
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.controller.channel import ClusterAdministration, ControllerChannel
from pykafka_broker.controller.role import ControllerRole
from pykafka_broker.log.manager.log_manager import LogManager
from pykafka_broker.metadata.publisher import MetadataPublisher
from pykafka_broker.metadata.raft_host import RaftHost
from pykafka_broker.metrics.node_parts import NodeParts
from pykafka_broker.network.listeners import Listeners


class Node:
    """The parts of a node that serves."""

    def __init__(self, shared: SharedServer, broker: BrokerServer | None, measured: NodeParts) -> None:
        self._broker = broker
        #: What metrics and explanations are made of.
        self.measured = measured
        self._shared = shared
        self.foundation: Foundation = shared.foundation
        self.logs: LogManager = shared.logs
        self.metadata: MetadataPublisher = shared.metadata
        #: The channel to the active controller, for this node's own requests.
        self.controller: ControllerChannel = shared.quorum.controller
        #: The controller of this node, for the requests of clients.
        self.administration: ClusterAdministration = shared.quorum.own_controller
        #: None on a node that is only a broker.
        self.role: ControllerRole | None = shared.quorum.role
        self.raft: RaftHost = shared.quorum.replica.host
        self.listeners: Listeners = shared.listeners
        self.served_listeners: ServedListeners = shared.served_listeners

    @property
    def image(self) -> ClusterImage:
        """The newest committed metadata."""
        return self.metadata.image

    @property
    def broker(self) -> BrokerServer:
        """The parts of the node's broker.

        Raises:
            RuntimeError: the node has no broker.
        """
        if self._broker is None:
            raise RuntimeError(f"node {self.foundation.node_id} has not the role broker")
        return self._broker

    async def hand_over(self) -> None:
        """Hand the leaderships over to other brokers, and be fenced; answer requests until the stop."""
        if self._broker is not None:
            await self._broker.lifecycle.shut_down()

    async def fall_silent(self) -> None:
        """Let the stop not hand over to other nodes: neither partitions nor the quorum."""
        self._shared.quorum.replica.fall_silent()
        if self._broker is not None:
            await self._broker.lifecycle.shut_down(is_controlled=False)
            await self._broker.places.stop()

    async def break_off(self) -> None:
        """Break all connections off and fall silent. The following stop writes no clean shutdown marker."""
        self._shared.closing.is_clean = False
        self.listeners.break_off()
        if self._broker is not None:
            # Acquired records of members are not released, as after a kill.
            await self._broker.shares.partitions.close()
        await self.fall_silent()


async def start_node(foundation: Foundation, undo: Undo) -> Node:
    """Build all parts and serve. The caller closes `undo` at the stop, and also if this raises.

    Raises:
        LogDirError, StorageFormatError: the data directories cannot be used; the text says what to do.
        OSError: an address cannot be listened on.
        KafkaError: the disk failed, or the controller refuses this broker.
    """
    shared = await build_shared(foundation, undo)
    quorum, measured = shared.quorum, serve_metrics(shared, undo)
    if quorum.role is not None:
        serve_controllers(shared, quorum.role)
    await start_replica(shared, undo)
    shared.metadata.subscribe(follow(foundation.history.tell))
    if quorum.role is not None:
        register_controller(shared, undo)
    broker = None
    if "broker" in foundation.config.process_roles:
        broker = await start_broker(shared, undo)
        measured.broker = broker_parts(broker)
    else:
        shared.metadata.subscribe(lambda _, new: shared.config_follower.apply(new))
        await foundation.threads.run_blocking(shared.reserve.take_back)
    measured.has_started = True
    return Node(shared, broker, measured)

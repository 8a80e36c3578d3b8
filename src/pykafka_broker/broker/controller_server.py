"""The controller of a node (Kafka's ControllerServer): its listeners and its registration.

The listeners serve before the quorum has a leader, because voters elect it through them, and before the ACLs
are read, because those are in its log. With an authorizer only `early.start.listeners` serve that early.
The listeners stop after this node's broker has shut down, because other brokers report over them that they
know the new leaders. A node without a quorum in its configuration has no such listeners: only its own process
asks its controller.
"""

from __future__ import annotations

from pykafka_broker.apis.api import CONTROLLER_LISTENER
from pykafka_broker.apis.ports.controller import ControllerPorts
from pykafka_broker.broker.node_ports import PublishedMetadata, ReplicaQuorum
from pykafka_broker.broker.shared_server import SharedServer
from pykafka_broker.broker.stop_order import StopStep, Undo
from pykafka_broker.controller.registration import ControllerRegistrar
from pykafka_broker.controller.role import ControllerRole


def serve_controllers(shared: SharedServer, role: ControllerRole) -> None:
    """Accept connections on the controller listeners that need not wait for ACLs."""
    f = shared.foundation
    ports = ControllerPorts(
        configs=f.configs,
        metadata=PublishedMetadata(f.node_id, shared.quorum.replica),
        controller=role,
        connections=role,
        quorum=ReplicaQuorum(shared.quorum.replica, shared.storage, f.threads.run_blocking),
        authorizer=shared.authorizer,
        quotas=shared.quotas,
    )
    shared.ports.controller.give(ports)
    may_be_early = None if f.config.authorizer is None else f.config.early_start_listeners
    shared.listeners.start(CONTROLLER_LISTENER, may_be_early)


def register_controller(shared: SharedServer, undo: Undo) -> None:
    """After the ACLs are read, accept connections on all controller listeners and register the controller."""
    served, f = shared.served_listeners, shared.foundation
    shared.listeners.start(CONTROLLER_LISTENER)
    if served.has_controllers:
        registrar = ControllerRegistrar(
            shared.quorum.controller,
            shared.metadata,
            f.clock,
            f.node_id,
            served.registered(CONTROLLER_LISTENER),
        )
        undo.add(StopStep.CONTROLLER_REGISTRATION, registrar.close)
        registrar.start()

"""The controller of a node (Kafka's ControllerServer): listeners on which brokers and other controllers reach
it, and its registration.

The listeners serve before the quorum has a leader, for voters elect it over them, and before ACLs are read,
for those are in its log; where there is an authorizer, `early.start.listeners` may leave some out. They are
stopped after this node's broker has shut down: other brokers say over them that they have learned who leads
instead. A node without a quorum in its configuration has no such listeners: its controller is asked in the
process alone.
"""

from __future__ import annotations

from pykafka_broker.apis.api import CONTROLLER_LISTENER
from pykafka_broker.apis.ports.controller import ControllerPorts
from pykafka_broker.broker.node_ports import PublishedMetadata, ReplicaQuorum
from pykafka_broker.broker.shared_server import SharedServer
from pykafka_broker.broker.undo import StopStep, Undo
from pykafka_broker.controller.registration import ControllerRegistrar
from pykafka_broker.controller.role import ControllerRole


def serve_controllers(shared: SharedServer, role: ControllerRole) -> None:
    """Accept connections of brokers and of other controllers, where that need not wait for ACLs."""
    f = shared.foundation
    shared.ports.controller = ControllerPorts(
        configs=f.configs,
        metadata=PublishedMetadata(f.node_id, shared.quorum.replica),
        controller=role,
        connections=role,
        quorum=ReplicaQuorum(shared.quorum.replica, shared.storage, f.threads.run_blocking),
        authorizer=shared.authorizer,
        quotas=shared.quotas,
    )
    may_be_early = None if f.config.authorizer is None else f.config.early_start_listeners
    shared.listeners.start(CONTROLLER_LISTENER, may_be_early)


def register_controller(shared: SharedServer, undo: Undo) -> None:
    """Accept connections everywhere, and tell the cluster how this node's controller is reached, from now on.
    The ACLs are read.
    """
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

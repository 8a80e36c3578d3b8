"""The metrics and the health of a node: their listeners open first, so that probes learn why the node waits.

What a page shows grows with the parts of the node, which `node.py` adds as they start.
"""

from __future__ import annotations

from pykafka_broker.apis.ports.authorizer import ALLOW_ALL
from pykafka_broker.authorization.counts import DecisionCounts
from pykafka_broker.broker.broker_server import BrokerServer
from pykafka_broker.broker.shared_server import SharedServer
from pykafka_broker.broker.stop_order import StopStep, Undo
from pykafka_broker.metrics.node_parts import BrokerParts, NodeParts, QuorumSide
from pykafka_broker.network.endpoint import METRICS_LISTENER


def serve_metrics(shared: SharedServer, undo: Undo) -> NodeParts:
    """Accept connections on the metrics listeners; returns the parts that they show so far."""
    f, quorum = shared.foundation, shared.quorum
    node = NodeParts(
        lambda: f.config,
        f.clock,
        shared.listeners,
        shared.logs,
        QuorumSide(shared.metadata, quorum.replica.host, quorum.role, quorum.peers),
        shared.quotas,
        _decisions(shared),
        f.history,
    )
    undo.add(StopStep.HAND_OVER, node.stop)
    shared.ports.metrics.give(node)
    shared.listeners.start(METRICS_LISTENER)
    return node


def broker_parts(broker: BrokerServer) -> BrokerParts:
    """The parts of the broker that metrics read."""
    return BrokerParts(
        broker.replicas,
        broker.fetchers,
        broker.coordinators,
        broker.lifecycle,
        broker.purgatory,
        broker.ports.fetching.sessions,
        broker.telemetry,
    )


def _decisions(shared: SharedServer) -> DecisionCounts | None:
    if shared.authorizer is ALLOW_ALL:
        return None
    from pykafka_broker.broker.security.acl_authorizer import StandardAuthorizer

    assert isinstance(shared.authorizer, StandardAuthorizer)
    return shared.authorizer.decisions

"""The health of a node: it lives if it answers; whether it is ready for clients, and if not, why."""

from __future__ import annotations

from pykafka_broker.membership.core.heartbeats import Phase
from pykafka_broker.metrics.node_parts import NodeParts


def why_not_ready(node: NodeParts) -> str | None:
    """The reason why a node is not ready; None if it is.

    A broker is ready when it is unfenced. Every node has to hear from the quorum's leader, and to have
    published all metadata that it knows to be committed.
    """
    if node.is_stopping:
        return "the node is stopping"
    if not node.has_started:
        return "the node is still starting"
    if not node.raft.was_led:
        return "the quorum of controllers has no leader that answers this node"
    if not node.metadata.is_caught_up:
        return "metadata that is committed has not been taken up yet"
    if node.broker is None:
        return None
    lifecycle = node.broker.lifecycle
    if lifecycle.phase is not Phase.RUNNING:
        return "the broker is shutting down"
    registration = node.metadata.image.brokers.get(node.config.node_id)
    if registration is None or registration.epoch != lifecycle.broker_epoch:
        return "the broker is not registered"
    return "the broker is fenced" if registration.fenced else None

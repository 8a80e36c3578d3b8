"""Where the coordinators of a cluster of processes are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from pykafka_broker.client.blocking import BlockingConnection
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.testing.apache.nodes import Node, Nodes

GROUP, TRANSACTION = 0, 1


def coordinator(node: Node, key_type: int, key: str) -> int:
    """The broker that coordinates `key`, as one broker says; -1 while there is none."""
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    with closing(BlockingConnection(parse_address(node.address))) as connection:
        [answer] = connection.send(request, 4).coordinators
    return -1 if answer.error_code else int(answer.node_id)


def coordinated_by(nodes: Nodes, asked: Node, node_id: int, key_type: int) -> Iterator[str]:
    """Groups, or transactional ids, that this broker coordinates."""
    nodes.comes(lambda: coordinator(asked, key_type, "any") >= 0, "there are no coordinators")
    return (key for key in map(str, range(1_000)) if coordinator(asked, key_type, key) == node_id)

"""A broker that exists only in the metadata: topics that controllers without any other can decide about.

It is registered, and topics are created on it, by requests to the active controller. A port of this process
accepts connections for it: at one that refuses them, a controller of ours would take it for ended.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from pykafka_broker.client.blocking import BlockingConnection
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.cluster.features import KEPT_FEATURES, NODE_FEATURES
from pykafka_broker.protocol.errors import ErrorCode, ProtocolError
from pykafka_broker.protocol.messages import broker_heartbeat as beating
from pykafka_broker.protocol.messages import broker_registration as registering
from pykafka_broker.protocol.messages import create_topics as creating
from pykafka_broker.testing.apache.broker import CLUSTER_ID
from pykafka_broker.testing.apache.nodes import Nodes

BROKER = 99
HOST = "127.0.0.1"
INCARNATION = bytes(range(16, 32))
#: The session of the broker, which nothing keeps up.
SESSION = {"broker.session.timeout.ms": "600000"}


def ask(nodes: Nodes, request: Any, is_answer: Callable[[Any], bool]) -> Any:
    """The answer of the active controller, once `is_answer` of it: one that was just elected is not ready."""
    answers: list[Any] = []

    def answered() -> bool:
        try:
            with closing(
                BlockingConnection(parse_address(nodes[nodes.leader()].controller_address))
            ) as connection:
                answers.append(connection.send(request))
        except (OSError, ProtocolError):
            return False
        return is_answer(answers[-1])

    nodes.comes(answered, lambda: f"no answer to {request}, but {answers[-1:]}")
    return answers[-1]


@contextmanager
def registered(nodes: Nodes) -> Iterator[None]:
    """With the broker registered and unfenced."""
    with socket.create_server((HOST, 0)) as listener:
        register(nodes, listener.getsockname()[1])
        yield


def register(nodes: Nodes, port: int) -> None:
    """Register the broker, and have it unfenced."""
    request = registering.BrokerRegistrationRequest(
        broker_id=BROKER,
        cluster_id=CLUSTER_ID,
        incarnation_id=INCARNATION,
        listeners=[registering.Listener(name="PLAINTEXT", host=HOST, port=port, security_protocol=0)],
        features=[
            registering.Feature(
                name=name,
                min_supported_version=levels.min_level,
                max_supported_version=max(levels.max_level, KEPT_FEATURES.get(name, 0)),
            )
            for name, levels in NODE_FEATURES.items()
        ],
        rack=None,
        log_dirs=[bytes(range(100, 116))],
    )
    epoch = ask(nodes, request, lambda answer: answer.error_code == 0).broker_epoch
    beat = beating.BrokerHeartbeatRequest(
        broker_id=BROKER,
        broker_epoch=epoch,
        current_metadata_offset=epoch,
        want_fence=False,
        want_shut_down=False,
    )
    ask(nodes, beat, lambda answer: answer.error_code == 0 and not answer.is_fenced)


def create_topic(nodes: Nodes, name: str) -> ErrorCode:
    """Create a topic on the broker; what the controller says to that."""
    assignment = creating.CreatableReplicaAssignment(partition_index=0, broker_ids=[BROKER])
    topic = creating.CreatableTopic(
        name=name, num_partitions=-1, replication_factor=-1, assignments=[assignment], configs=[]
    )
    request = creating.CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=False)
    later = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)
    answer = ask(nodes, request, lambda answer: answer.topics[0].error_code not in later)
    return ErrorCode(answer.topics[0].error_code)

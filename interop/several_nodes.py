"""A cluster in the place of the one broker of a world: what a scenario kills or restarts is one of its nodes.

The nodes are combined voters and brokers, and everything is replicated to all of them; there may be just one.
A kill takes another node each time, the others go on; a restart is a rolling one. Before a node ends, all
replicas are in sync, as an operator would wait for it.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from pykafka_broker.client.blocking import BlockingConnection
from pykafka_broker.client.core.connection import CLIENT, Identity
from pykafka_broker.protocol.errors import KafkaError, ProtocolError
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pykafka_broker.testing.apache.nodes import Node, Nodes, Software

#: Beside the properties of a world of one broker. Sessions end at Kafka's default again, so that no node of a
#: loaded machine is fenced while a scenario runs.
REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}


class SeveralNodes:
    """Nodes of one kind, as a scenario sees a broker."""

    def __init__(
        self,
        software: Software,
        count: int,
        properties: Mapping[str, str],
        folder: Path | None = None,
        *,
        identity: Identity = CLIENT,
    ) -> None:
        """`identity` may describe all topics."""
        self.count = count
        self._temporary = None if folder else TemporaryDirectory(prefix="several-nodes-")
        self.folder = Path(folder or self._temporary.name)  # type: ignore[union-attr]
        self.nodes = Nodes(
            self.folder,
            dict.fromkeys(range(1, count + 1), software),
            dynamic=True,
            roles="broker,controller",
            properties={**properties, **(REPLICATED if count > 1 else {})},
        )
        for node in self.nodes:
            node.identity = identity
        self._turns = itertools.cycle(range(1, count + 1))
        self._ended: Node | None = None
        #: Of all nodes: how many processes there were.
        self.pid = 0

    def __enter__(self) -> Self:
        self.nodes.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.nodes.__exit__(*exc_info)
        if self._temporary is not None:
            self._temporary.cleanup()

    @property
    def address(self) -> str:
        """Of all nodes, separated by commas."""
        return ",".join(node.address for node in self.nodes)

    @property
    def is_running(self) -> bool:
        """Whether all of them run."""
        return all(node.is_running for node in self.nodes)

    def kill(self) -> None:
        """Kill -9 the node whose turn it is."""
        self.await_in_sync()
        self._ended = self._next()
        self._ended.kill()

    def start(self) -> float:
        """Start the killed node again; return the seconds that this took."""
        assert self._ended is not None, "no node was killed"
        took = self._ended.start()
        self._ended = None
        self.pid += 1
        return took

    def _next(self) -> Node:
        return self.nodes[next(self._turns)]

    def restart(self) -> None:
        """Stop and start each node, one after the other."""
        for node in self.nodes:
            self.await_in_sync()
            node.restart()
            self.pid += 1

    def await_all(self, is_so: Callable[[BlockingConnection], object], what: str) -> None:
        """Wait until `is_so` of a connection to each node. Raises BrokerError, which says `what`."""
        self.nodes.comes(lambda: all(finds(node, is_so) for node in self.nodes), what)

    def await_in_sync(self) -> None:
        """Wait until each running node knows each partition with a leader and all of its replicas in sync."""
        self.await_all(_replicas_are_in_sync, "the replicas do not come in sync")

    def keep_logs(self, folder: Path) -> Path:
        """Copy the log of each node there; the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for node in self.nodes:
            shutil.copy(node.log_file, folder / f"node-{node.node_id}.log")
        return folder

    def log_tail(self, lines: int = 30) -> str:
        return "\n".join(f"--- node {node.node_id}\n{node.log_tail(lines)}" for node in self.nodes)


class ChangingNodes(SeveralNodes):
    """Nodes of Apache Kafka that become ours one at a time, and Apache Kafka's again, each on its folder.

    In the place of a kill, the node whose turn it is stops in good order, and starts as the other kind: a
    rolling change, as an operator makes it.
    """

    def __init__(self, count: int, properties: Mapping[str, str], folder: Path | None = None) -> None:
        super().__init__("apache", count, properties, folder)
        self.changes = 0

    def kill(self) -> None:
        """Stop the node whose turn it is."""
        self.await_in_sync()
        self._ended = self._next()
        self._ended.stop()

    def start(self) -> float:
        """Start it as the other kind."""
        assert self._ended is not None, "no node was stopped"
        self._ended.software = "ours" if self._ended.software == "apache" else "apache"
        self.changes += 1
        return super().start()


def in_sync(node: Node) -> bool:
    """Whether this node answers, and knows of no partition that lacks a replica."""
    return finds(node, _replicas_are_in_sync)


def finds(node: Node, is_so: Callable[[BlockingConnection], object]) -> bool:
    """Whether this node answers, and `is_so` of a connection to it."""
    try:
        with closing(node.connection()) as connection:
            return bool(is_so(connection))
    except (OSError, ProtocolError, KafkaError):
        return False


def _replicas_are_in_sync(connection: BlockingConnection) -> bool:
    answer: MetadataResponse = connection.send(MetadataRequest(topics=None))
    return all(
        not partition.error_code and len(partition.isr_nodes) == len(partition.replica_nodes)
        for topic in answer.topics
        for partition in topic.partitions
    )

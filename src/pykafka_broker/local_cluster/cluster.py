"""A cluster in this process, as a program or a test sees it: started, asked who leads, its nodes stopped and
started again.

    async with Cluster(nodes=3) as cluster:
        ...  # cluster.bootstrap_servers
        await cluster.stop(await cluster.leader("orders"))

    with Cluster(nodes=3) as cluster:  # in a thread of its own: each call waits
        ...  # cluster.bootstrap_servers
        cluster.stop(cluster.leader("orders"))

The nodes are whole: each has sockets, a log directory and threads of its own, and reaches the others over the
network. They share one event loop, and so one processor.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from pykafka_broker.broker.broker_thread import BrokerThread
from pykafka_broker.broker.security.client_settings import ClientSettings
from pykafka_broker.broker.security.declared import Security
from pykafka_broker.config.keys import ConfigError
from pykafka_broker.config.sources import Overrides, parse_overrides
from pykafka_broker.local_cluster.folder import ClusterFolder
from pykafka_broker.local_cluster.held_ports import HeldPorts
from pykafka_broker.local_cluster.layout import (
    DEFAULT_NODES,
    HOST,
    LISTENERS,
    SET_FOR_EACH_NODE,
    Layout,
    layout_of,
)
from pykafka_broker.local_cluster.nodes import Nodes
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

NOT_STARTED = (
    "this cluster has not been started: `async with cluster`, `with cluster` and `await cluster.start()` "
    "start it"
)
#: The default time-out of a call.
TIMEOUT_S = 60.0
#: Nodes of one process need shorter time-outs than those of several machines.
QUICK = {
    "controller.quorum.election.timeout.ms": "100",
    "controller.quorum.election.backoff.max.ms": "100",
    # A broker may stop once the heartbeats of the others show that they know the new leaders.
    "broker.heartbeat.interval.ms": "250",
    # Brokers that were all killed come back when their sessions are over.
    "broker.session.timeout.ms": "3000",
    # A returning follower is in sync only one fetch after that with which it is unfenced.
    "replica.fetch.wait.max.ms": "100",
    "replica.fetch.backoff.ms": "100",
}


class Cluster:
    """The nodes of a Kafka cluster. It starts once and stops once; its nodes stop and start in between.

    Each of the `nodes`, three by default, is both a broker and a controller; `brokers` and `controllers`,
    given together, keep them apart. Nodes are numbered from 1, controllers first. The folder `data_dir` keeps
    the data, for the next `Cluster` of as many nodes or for `pykafka-broker cluster`; without it the data is
    gone at the end. Nodes of a new folder listen on `port` and up, and their controllers 100 higher; 0 picks
    free ports. `overrides` are keys of all nodes, for this run. `security` is for this run, too; what nodes
    say to each other is secured alike.

    Raises:
        ValueError: there is no such cluster.
        ConfigError: `overrides` cannot be read, or have a key that each node has its own value of.
    """

    def __init__(
        self,
        nodes: int | None = None,
        *,
        brokers: int | None = None,
        controllers: int | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        port: int = 0,
        overrides: Overrides = (),
        security: Security | None = None,
    ) -> None:
        self._asked = layout_of(nodes, brokers, controllers)
        self._data_dir = data_dir
        self._port = port
        self._security = security
        secured = {} if security is None else security.keys(LISTENERS, (HOST,))
        self._overrides = {**QUICK, **_shared(parse_overrides(overrides)), **secured}
        self._nodes: Nodes | None = None
        self._thread: BrokerThread | None = None
        #: The steps that undo what the start has done so far.
        self._undo = AsyncExitStack()
        self._stopped: asyncio.Task[None] | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, `host:port,host:port`. They stay the same when nodes stop.

        Raises:
            RuntimeError: the cluster has not been started.
        """
        nodes = self._made()
        return ",".join(nodes.addresses[node_id] for node_id in nodes.brokers)

    @property
    def node_ids(self) -> tuple[int, ...]:
        """All nodes, whether they run or not.

        Raises:
            RuntimeError: the cluster has not been started.
        """
        return self._made().node_ids

    def address(self, node_id: int) -> str:
        """Where clients reach a node, `host:port`; of a controller alone, where administration does.

        Raises:
            NoSuchNodeError: there is no such node.
            RuntimeError: the cluster has not been started.
        """
        [node_id] = self._checked([node_id])
        return self._made().addresses[node_id]

    def client_settings(self, user: str | None = None) -> ClientSettings:
        """How a client of one of the users of `security` connects; see `Broker.client_settings`.

        Raises:
            ValueError: there is no such user.
            RuntimeError: the cluster has not been started.
        """
        return (self._security or Security()).client_settings(self.bootstrap_servers, user)

    # -- life
    # -------

    async def start(self, *node_ids: int, timeout_s: float = TIMEOUT_S) -> None:
        """Start the cluster, or those of the named nodes that are down. When this returns, the nodes serve,
        and all running nodes know it. A cluster starts once. A failed start leaves nothing behind but
        `data_dir`.

        Raises:
            NoSuchNodeError: there is no such node.
            LogDirError, StorageFormatError: the folder cannot be used; the text says what to do.
            ConfigError: the configuration of a node cannot be accepted.
            OSError: an address cannot be listened on.
            TimeoutError: it has taken too long, as it does while most controllers are down.
            RuntimeError: the cluster has been stopped, or is to start for the second time.
        """
        if node_ids:
            await self._start_nodes(self._checked(node_ids), timeout_s)
            return
        if self._nodes is not None or self._stopped is not None:
            raise RuntimeError("a cluster starts once: make another one")
        try:
            nodes = self._nodes = Nodes(self._make(), self._overrides)
            self._undo.push_async_callback(nodes.stop_all)
            await self._start_nodes(nodes.node_ids, timeout_s)
            if self._security is not None:
                await self._enter(self._security, nodes, timeout_s)
        except BaseException:
            await self.stop()
            raise

    def _make(self) -> ClusterFolder:
        """The folder, with nodes that are ready to be started. Blocking."""
        if self._data_dir is None:
            temporary = TemporaryDirectory(prefix="pykafka-cluster-", ignore_cleanup_errors=True)
            self._undo.callback(temporary.cleanup)
            path = Path(temporary.name)
        else:
            path = Path(self._data_dir).absolute()
        folder = ClusterFolder(path)
        if folder.exists():
            folder.check_layout(self._asked or folder.layout())
        else:
            folder.create(self._asked or Layout(combined=DEFAULT_NODES), self._port, {})
        ports = HeldPorts()
        self._undo.callback(ports.release)
        ports.hold(port for node_id in folder.node_ids() for port in folder.ports(node_id))
        folder.format()
        return folder

    async def stop(self, *node_ids: int) -> None:
        """Stop the named nodes in good order, after other nodes have taken over their partitions. Without
        names, stop all nodes, and remove the data unless there is a `data_dir`.

        Stopping again is harmless.

        Raises:
            NoSuchNodeError: there is no such node.
        """
        if node_ids:
            asked = self._checked(node_ids)
            await self._made().stop(asked)
            return
        if self._stopped is None:
            self._stopped = asyncio.get_running_loop().create_task(self._undo.aclose())
        await asyncio.shield(self._stopped)

    async def kill(self, *node_ids: int) -> None:
        """End nodes as if their processes were killed: their connections break, they hand nothing over, and
        others lead once the controller has found them gone. See `Broker.kill`.

        Raises:
            NoSuchNodeError: there is no such node.
        """
        await self._made().kill(self._checked(node_ids))

    async def restart(self, *node_ids: int, timeout_s: float = TIMEOUT_S) -> None:
        """Stop and start nodes, one after the other; all of them if none is named. The next one stops once
        the replicas that were in sync before are so again. `timeout_s` is for each start and each such wait.

        Raises:
            NoSuchNodeError: there is no such node.
            TimeoutError: a node has not started in time, or its replicas are not in sync in time.
        """
        nodes = self._made()
        before = nodes.lagging()
        for node_id in self._checked(node_ids) or self.node_ids:
            await self.stop(node_id)
            await self.start(node_id, timeout_s=timeout_s)
            late = (
                f"Not all replicas were in sync again within {timeout_s:g} s after node {node_id} had started"
            )
            await nodes.waiting.until(
                lambda: nodes.lagging() <= before or None, timeout_s, partial(str, late)
            )

    async def _start_nodes(self, node_ids: Iterable[int], timeout_s: float) -> None:
        asked = list(node_ids)
        try:
            async with asyncio.timeout(timeout_s):
                await self._made().start(asked)
        except TimeoutError:
            named = ", ".join(map(str, asked))
            raise TimeoutError(f"Not up within {timeout_s:g} s: {named}") from None

    async def _enter(self, security: Security, nodes: Nodes, timeout_s: float) -> None:
        """Write the users and ACLs, and return when all nodes know them."""
        async with asyncio.timeout(timeout_s):
            while True:
                controller = nodes.administration(await self.controller(timeout_s=timeout_s))
                try:
                    await security.write(controller)
                except KafkaError as error:
                    if error.code != ErrorCode.NOT_CONTROLLER:
                        raise
                    await asyncio.sleep(0)  # another one is elected meanwhile
                else:
                    break
            await nodes.all_know()

    async def __aenter__(self) -> Cluster:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def __enter__(self) -> BlockingCluster:
        thread = BrokerThread(self, "cluster-loop")
        thread.start()
        # Only now: if this was a second start, it was refused, and the first thread is still the one to stop.
        self._thread = thread
        return BlockingCluster(self, thread)

    def __exit__(self, *_: object) -> None:
        if self._thread is None:
            raise RuntimeError(NOT_STARTED)
        self._thread.stop()

    # -- questions
    # ------------

    async def leader(self, topic: str, partition: int = 0, *, timeout_s: float = TIMEOUT_S) -> int:
        """The node that leads a partition, once there is one and all running nodes know it.

        Raises:
            TimeoutError: there was none in time; or there is no such partition.
        """
        nodes = self._made()
        return await nodes.waiting.until(
            lambda: nodes.leader(topic, partition),
            timeout_s,
            lambda: f"Partition {topic}-{partition} has had no leader for {timeout_s:g} s",
        )

    async def controller(self, *, timeout_s: float = TIMEOUT_S) -> int:
        """The node whose controller is the active one, once there is one.

        Raises:
            TimeoutError: there was none in time.
        """
        nodes = self._made()
        return await nodes.waiting.until(
            nodes.controller, timeout_s, lambda: f"No controller has been active for {timeout_s:g} s"
        )

    async def wait_until_in_sync(self, topic: str | None = None, *, timeout_s: float = TIMEOUT_S) -> None:
        """Return when all replicas of a topic, or of all topics there are, run and are in sync.

        Raises:
            TimeoutError: they are not in time, for example because a node is down.
        """
        nodes = self._made()
        await nodes.waiting.until(
            lambda: nodes.are_in_sync(topic),
            timeout_s,
            lambda: f"Not all replicas of {topic or 'all topics'} were in sync within {timeout_s:g} s",
        )

    def _made(self) -> Nodes:
        if self._nodes is None:
            raise RuntimeError(NOT_STARTED)
        return self._nodes

    def _checked(self, node_ids: Iterable[int]) -> list[int]:
        return self._made().checked(node_ids)


class BlockingCluster:
    """A `Cluster` that runs in a thread of its own: the same calls, which block. Any thread."""

    def __init__(self, cluster: Cluster, thread: BrokerThread) -> None:
        self._cluster = cluster
        self._thread = thread

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, `host:port,host:port`. They stay the same when nodes stop."""
        return self._cluster.bootstrap_servers

    @property
    def node_ids(self) -> tuple[int, ...]:
        """All nodes, whether they run or not."""
        return self._cluster.node_ids

    def address(self, node_id: int) -> str:
        """Where clients reach a node; see `Cluster.address`."""
        return self._cluster.address(node_id)

    def client_settings(self, user: str | None = None) -> ClientSettings:
        """How a client of one of the users connects; see `Broker.client_settings`."""
        return self._cluster.client_settings(user)

    def start(self, *node_ids: int, timeout_s: float = TIMEOUT_S) -> None:
        """Start those of the named nodes that are down; see `Cluster.start`."""
        self._thread.call(self._cluster.start(*node_ids, timeout_s=timeout_s))

    def stop(self, *node_ids: int) -> None:
        """Stop the named nodes in good order, or the cluster; see `Cluster.stop`."""
        if node_ids:
            self._thread.call(self._cluster.stop(*node_ids))
        else:
            self._thread.stop()

    def kill(self, *node_ids: int) -> None:
        """End nodes as if their processes were killed; see `Cluster.kill`."""
        self._thread.call(self._cluster.kill(*node_ids))

    def restart(self, *node_ids: int, timeout_s: float = TIMEOUT_S) -> None:
        """Stop and start nodes, one after the other; see `Cluster.restart`."""
        self._thread.call(self._cluster.restart(*node_ids, timeout_s=timeout_s))

    def leader(self, topic: str, partition: int = 0, *, timeout_s: float = TIMEOUT_S) -> int:
        """The node that leads a partition; see `Cluster.leader`."""
        return self._thread.call(self._cluster.leader(topic, partition, timeout_s=timeout_s))

    def controller(self, *, timeout_s: float = TIMEOUT_S) -> int:
        """The node whose controller is the active one; see `Cluster.controller`."""
        return self._thread.call(self._cluster.controller(timeout_s=timeout_s))

    def wait_until_in_sync(self, topic: str | None = None, *, timeout_s: float = TIMEOUT_S) -> None:
        """Return when all replicas run and are in sync; see `Cluster.wait_until_in_sync`."""
        self._thread.call(self._cluster.wait_until_in_sync(topic, timeout_s=timeout_s))


def _shared(overrides: dict[str, str]) -> dict[str, str]:
    for key in overrides:
        if key in SET_FOR_EACH_NODE:
            raise ConfigError(f"{key} cannot be overridden here: each node of a cluster has its own")
    return overrides

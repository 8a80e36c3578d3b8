"""Clusters in this process: nodes that are controller and broker, and nodes that are brokers alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ssl import SSLContext

from pykafka_broker.machine.clock import SystemClock
from pykafka_broker.testing.home import DATA, Home
from pykafka_broker.testing.user import User
from tests.support.quorums import CLUSTER_ID, Quorum

#: A broker that falls silent need not be waited for so long.
QUICK_SESSIONS = {"broker.heartbeat.interval.ms": "250", "broker.session.timeout.ms": "1000"}
#: Kafka's own: all nodes share one event loop, and a busy one is not to be taken for a dead leader.
PATIENCE = {"controller.quorum.fetch.timeout.ms": "2000"}


class Cluster(Quorum):
    """Nodes 1, 2, ... of both roles, and after them nodes that are brokers alone; each has these folders."""

    def __init__(
        self,
        combined: int = 3,
        brokers: int = 0,
        overrides: Mapping[str, str] | None = None,
        *,
        data_dir: str = DATA,
    ) -> None:
        self.data_dir = data_dir
        super().__init__(combined, {**QUICK_SESSIONS, **PATIENCE, **(overrides or {})})
        for node_id in range(combined + 1, combined + 1 + brokers):
            self.homes[node_id] = self.home(node_id)

    def home(self, node_id: int) -> Home:
        """An empty home for a node."""
        listeners, roles = ["PLAINTEXT://127.0.0.1:0"], ["broker"]
        if node_id in self.ports:
            listeners.append(f"CONTROLLER://127.0.0.1:{self.ports[node_id]}")
            roles.append("controller")
        keys = {
            "process.roles": ",".join(roles),
            "node.id": str(node_id),
            **self.keys,
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(listeners),
            **self.overrides,
        }
        return Home(keys, listen=None, clock=SystemClock(), cluster_id=CLUSTER_ID, data_dir=self.data_dir)

    @property
    def controllers(self) -> list[int]:
        """The ids of the nodes that may be the active controller."""
        return list(self.ports)

    @asynccontextmanager
    async def user_of(self, node_id: int, tls: SSLContext | None = None) -> AsyncIterator[User]:
        """A client of the broker of one node."""
        async with await User.connect(self.broker(node_id).bootstrap_servers, tls=tls) as user:
            yield user

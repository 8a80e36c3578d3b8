"""Several nodes of one quorum in this process, over real sockets and files in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

from pykafka_broker.broker.broker import Broker
from pykafka_broker.broker.formatting import NewCluster, format_directories
from pykafka_broker.local_cluster.held_ports import HeldPorts
from pykafka_broker.machine.clock import SystemClock
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter, VoterSet
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.processes import free_port

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
#: Elections of a quorum on one machine need not take seconds.
QUICK = {
    "controller.quorum.election.timeout.ms": "100",
    "controller.quorum.election.backoff.max.ms": "50",
    "controller.quorum.fetch.timeout.ms": "400",
}


class Quorum:
    """Controllers 1, 2, ...; `homes` outlive their processes.

    The voters are fixed (`controller.quorum.voters`), or stand in the log if the quorum `is_dynamic`.
    """

    def __init__(
        self, size: int = 3, overrides: Mapping[str, str] | None = None, *, is_dynamic: bool = False
    ) -> None:
        self.ports = {node_id: free_port() for node_id in range(1, size + 1)}
        self.overrides = {**QUICK, **(overrides or {})}
        addresses = {node_id: f"127.0.0.1:{port}" for node_id, port in self.ports.items()}
        if is_dynamic:
            self.keys = {"controller.quorum.bootstrap.servers": ",".join(addresses.values())}
        else:
            voters = ",".join(f"{node_id}@{address}" for node_id, address in addresses.items())
            self.keys = {"controller.quorum.voters": voters}
        self.homes = {node_id: self.home(node_id) for node_id in self.ports}
        if is_dynamic:
            first = ",".join(
                f"{node_id}@{address}:{uuid_text(directory_of(node_id))}"
                for node_id, address in addresses.items()
            )
            for home in self.homes.values():
                format_home(home, NewCluster(initial_controllers=first))

    def home(self, node_id: int) -> Home:
        """An empty home for a controller."""
        keys = {
            "process.roles": "controller",
            "node.id": str(node_id),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://127.0.0.1:{self.ports[node_id]}",
            **self.keys,
            **self.overrides,
        }
        return Home(keys, listen=None, clock=SystemClock(), cluster_id=CLUSTER_ID)

    def new_home(self, node_id: int) -> None:
        """An empty home for a controller of a dynamic quorum that does not vote yet, or has lost its disk."""
        self.ports.setdefault(node_id, free_port())
        self.homes[node_id] = self.home(node_id)
        format_home(self.homes[node_id], NewCluster(no_initial_controllers=True))

    def voter(self, node_id: int) -> Voter:
        """The entry among the voters that a node that runs should have."""
        key = ReplicaKey(node_id, self.broker(node_id).node.logs.dirs.metadata.directory_id)
        return Voter(key, {"CONTROLLER": ("127.0.0.1", self.ports[node_id])})

    def voters_of(self, node_id: int) -> VoterSet:
        """The newest voters in the log of a node."""
        return self.broker(node_id).node.raft.membership_below(1 << 62).voters

    async def vote(self, *node_ids: int) -> None:
        """Return when these nodes are the voters, by the logs of them all."""
        expected = VoterSet({node_id: self.voter(node_id) for node_id in node_ids})
        await until(lambda: all(self.voters_of(node_id) == expected for node_id in node_ids))

    async def start(self, *node_ids: int) -> None:
        """Start these nodes together."""
        await asyncio.gather(*(self.homes[node_id].new_broker().start() for node_id in node_ids))

    @asynccontextmanager
    async def running(self, *node_ids: int) -> AsyncIterator[None]:
        """Nodes, all if none is named, that have elected a leader; those that still run are stopped after.

        The ports of nodes that start later are held: other tests look for free ports at the same time.
        """
        held = HeldPorts()
        held.hold(self.ports.values())
        try:
            await self.start(*(node_ids or self.homes))
            yield
        finally:
            await asyncio.gather(
                *(home.broker.stop() for home in self.homes.values() if hasattr(home, "broker"))
            )
            held.release()

    def broker(self, node_id: int) -> Broker:
        """The node that was started last with this id."""
        return self.homes[node_id].broker

    async def leader(self, *among: int) -> int:
        """The id of the active controller, once there is one among these nodes."""
        active: list[int] = []

        def found() -> bool:
            roles = {n: self.broker(n).node.role for n in among or self.homes}
            active[:] = [n for n, role in roles.items() if role is not None and role.is_active]
            return bool(active)

        await until(found)
        return active[0]

    async def agree(self, node_ids: Iterable[int]) -> None:
        """Return when all these nodes have published the same metadata."""
        await until(lambda: len({self.broker(n).node.image.offset for n in node_ids}) == 1)


def directory_of(node_id: int) -> bytes:
    """The id of the first directory of a controller of a dynamic quorum."""
    return bytes([node_id]) * 16


def format_home(home: Home, new: NewCluster) -> None:
    """Format a home as `pykafka-broker format` does."""
    config = home.config()
    format_directories(home.files, config, now_ms=home.clock.now_ms(), ignore_formatted=False, new=new)

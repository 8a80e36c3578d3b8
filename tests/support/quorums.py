"""Several nodes of one quorum in this process, over real sockets and files in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

from pykafka_broker.broker.broker import Broker
from pykafka_broker.machine.clock import SystemClock
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
    """Controllers 1, 2, ... with fixed voters; `homes` outlive their processes."""

    def __init__(self, size: int = 3, overrides: Mapping[str, str] | None = None) -> None:
        self.ports = {node_id: free_port() for node_id in range(1, size + 1)}
        self.voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in self.ports.items())
        self.overrides = {**QUICK, **(overrides or {})}
        self.homes = {node_id: self.home(node_id) for node_id in self.ports}

    def home(self, node_id: int) -> Home:
        """An empty home for a voter."""
        keys = {
            "process.roles": "controller",
            "node.id": str(node_id),
            "controller.quorum.voters": self.voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://127.0.0.1:{self.ports[node_id]}",
            **self.overrides,
        }
        return Home(keys, listen=None, clock=SystemClock(), cluster_id=CLUSTER_ID)

    async def start(self, *node_ids: int) -> None:
        """Start these nodes together."""
        await asyncio.gather(*(self.homes[node_id].new_broker().start() for node_id in node_ids))

    @asynccontextmanager
    async def running(self, *node_ids: int) -> AsyncIterator[None]:
        """Nodes, all if none is named, that have elected a leader; those that still run are stopped after."""
        try:
            await self.start(*(node_ids or self.homes))
            yield
        finally:
            await asyncio.gather(
                *(home.broker.stop() for home in self.homes.values() if hasattr(home, "broker"))
            )

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

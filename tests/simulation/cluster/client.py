"""A client of a simulated cluster: it writes, reads or commits, and goes on over every fault.

Clients are the project's own: its conversations, and its asyncio shell on the simulated network.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, TypeVar

from pykafka_broker.client.aio import AsyncConnection, connect
from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.core.conversation import CANNOT, Ask, Conversation, Reply, Step
from pykafka_broker.client.core.metadata import Brokers, find_broker
from pykafka_broker.client.core.retries import Attempt, first_attempt
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.simulation.cluster.ledger import Ledger
from tests.simulation.cluster.node_process import NodeProcess
from tests.simulation.cluster.wires import Wires
from tests.simulation.process import ProcessClock
from tests.simulation.world import World

Result = TypeVar("Result")

TOPIC = "t"
#: One request of a client.
REQUEST_MS = 3_000
#: A producer goes on with one batch for as long as the simulation lasts.
PATIENCE_MS = 600_000
RETRY_MS = 200


class ClientHost:
    """A machine of clients, which never fails."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.host = f"10.0.0.{number}"
        self.has_power = True


class Clients:
    """What all clients of a cluster share."""

    def __init__(
        self,
        world: World,
        wires: Wires,
        bootstrap: list[Address],
        ledger: Ledger,
        values: Iterator[int],
        is_coordinator: Callable[[int, str], bool],
        leader_epoch: Callable[[int, int], int | None],
    ) -> None:
        self.world = world
        #: Whether a node coordinates a group by the newest metadata, which it may not have yet.
        self.is_coordinator = is_coordinator
        #: The leader epoch of a partition that a node knows; None if it does not serve.
        self.leader_epoch = leader_epoch
        self.ledger = ledger
        self.values = values
        self.is_over = False
        self._starting: set[Coroutine[Any, Any, None]] = set()
        self.bootstrap = bootstrap
        self.host = ClientHost(200)
        self.process = NodeProcess(  # type: ignore[abstract]  # what asyncio needs of it is there
            world, wires, self.host, lambda: 0, 0
        )
        self.clock = ProcessClock(self.process, 1.0)
        self.running = 0

    def start(self, client: Coroutine[Any, Any, None]) -> None:
        """Let a client run; it ends when `is_over`."""
        self.running += 1
        self._starting.add(client)
        self.process.call_after(self.world.random.randint(0, 100), self._start, client)

    def end(self) -> None:
        """End at once, whatever the clients are at."""
        self.process.end()
        for client in self._starting:
            client.close()

    def _start(self, client: Coroutine[Any, Any, None]) -> None:
        self._starting.remove(client)
        task = self.process.create_task(client)
        task.add_done_callback(self._done)

    def _done(self, task: Any) -> None:
        self.running -= 1
        task.result()


class Client:
    """One client: its connections, and what it knows of the cluster."""

    def __init__(self, clients: Clients, name: str) -> None:
        self.clients = clients
        self.name = name
        self.world = clients.world
        self.ledger = clients.ledger
        self.clock = clients.clock
        self.brokers = Brokers()
        #: Of each request.
        self.timeout_ms = REQUEST_MS
        self._connections: dict[Address, AsyncConnection] = {}

    async def run(self, conversation: Conversation[Result]) -> Result:
        """Run a conversation over as many brokers as it takes."""
        try:
            step = next(conversation)
            while True:
                try:
                    response = await self._carry_out(step)
                except CANNOT as error:
                    step = conversation.throw(error)
                else:
                    step = conversation.send(Reply(response, self.clock.monotonic_ms()))
        except StopIteration as end:
            result: Result = end.value
            return result

    async def _carry_out(self, step: Step) -> Any:
        if not isinstance(step, Ask):
            await self.clock.sleep(max(1, step.until_ms - self.clock.monotonic_ms()))
            return None
        address = self.clients.bootstrap[self.world.random.randrange(len(self.clients.bootstrap))]
        if step.node_id is not None:
            address = await self.run(find_broker(self.brokers, step.node_id))
        connection = await self.connection(address)
        version = step.version
        if version is None and step.at_most is not None:
            version = connection.newest_version(step.request, step.at_most)
        try:
            return await connection.send(step.request, version, timeout_ms=self.timeout_ms)
        except OSError:
            await self.close(address)
            raise

    async def connection(self, address: Address) -> AsyncConnection:
        """The connection to a broker."""
        found = self._connections.get(address)
        if found is None or found.is_closed:
            found = self._connections[address] = await connect(
                address, clock=self.clock, timeout_ms=REQUEST_MS
            )
        return found

    async def close(self, address: Address) -> None:
        """Close the connection to a broker, if there is one."""
        connection = self._connections.pop(address, None)
        if connection is not None:
            await connection.close()

    def attempt(self, timeout_ms: int = PATIENCE_MS) -> Attempt:
        """The first attempt from now on."""
        return first_attempt(self.clock.monotonic_ms(), timeout_ms)

    async def pause(self, mean_ms: int) -> None:
        """Do something else for a while."""
        await self.clock.sleep(self.world.random.randint(1, 2 * mean_ms))

    @property
    def is_over(self) -> bool:
        """Whether the simulation wants no more."""
        return self.clients.is_over


async def create_topic(
    client: Client,
    partitions: int,
    replication_factor: int,
    created: Callable[[], None],
    configs: Mapping[str, str],
) -> None:
    """Have the topic, once there are enough brokers."""
    topic = CreatableTopic(
        name=TOPIC,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=REQUEST_MS)
    while True:
        try:
            answer = (await client.run(ask(request))).topics[0]
            if ErrorCode(answer.error_code) in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                created()
                return
        except CANNOT:
            pass
        await client.pause(RETRY_MS)


def ask(request: object, node_id: int | None = None, at_most: int | None = None) -> Conversation[Any]:
    """Ask one broker, or any; the response."""
    return (yield Ask(request, node_id, at_most=at_most)).response

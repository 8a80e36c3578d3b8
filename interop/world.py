"""The world of a scenario: the broker, the clients, fresh names, and patience."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self

from interop.clients import connect
from interop.clients.client import Client, Refused
from interop.clients.login import Login
from pykafka_broker.testing.apache.jars import VERSION
from pykafka_broker.testing.processes import BrokerProcess

TOPIC_EXISTS = 36
MAKER = "kafka-python"

_numbers = itertools.count(1)


class Broker(Protocol):
    """One process, or several nodes of which one ends. Started by `with`."""

    #: Also for the files of programs that use it.
    folder: Path

    @property
    def address(self) -> str:
        """Of all nodes, separated by commas."""

    @property
    def pid(self) -> int:
        """Another number after each start."""

    @property
    def is_running(self) -> bool: ...

    def kill(self) -> None: ...

    def start(self) -> float: ...

    def restart(self) -> None: ...

    def log_tail(self) -> str:
        """The end of its log."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc_info: object) -> None: ...


@dataclass(frozen=True)
class Entrance:
    """The addresses of all nodes, separated by commas, and who comes in there."""

    address: str
    login: Login | None = None

    def connect(self, client: str) -> Client:
        """A new client of this name. Raises as `interop.clients.connect`."""
        return connect(client, self.address, self.login)


@dataclass(frozen=True)
class Access:
    """How a world is entered whose broker does not let everybody do everything."""

    clients: Entrance
    #: Of the world itself, which makes what a client cannot, and what no client may.
    maker: Entrance
    #: The clients may use what has a name that begins with this.
    prefix: str


@dataclass
class World:
    broker: Broker
    clients: dict[str, Client]
    #: By default everybody comes in at the address of the broker, and may do everything.
    access: Access | None = None
    #: Distinguishes the names of this run from those of another one on the same broker.
    run: int = field(default_factory=lambda: int(time.time()))
    #: Of Kafka's command-line tools.
    tools_version: str = VERSION
    #: Called once, as soon as the next topic can be used: a scenario has begun and is not over then.
    in_the_middle: Callable[[], None] | None = None
    _maker: tuple[int, Client] | None = None

    @property
    def process(self) -> BrokerProcess:
        """The broker of a world that has just one."""
        assert isinstance(self.broker, BrokerProcess), "this needs one broker"
        return self.broker

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.broker.address.split(","))

    @property
    def maker(self) -> Client:
        """Makes what a client cannot make itself, such as a topic for a client without an admin."""
        # One for each life of the broker: an idle admin of 3.0.12 does not find back to a new one.
        if self._maker is None or self._maker[0] != self.broker.pid:
            self._maker = (self.broker.pid, self.makers_entrance.connect(MAKER))
        return self._maker[1]

    @property
    def entrance(self) -> Entrance:
        """That of the clients."""
        return self.access.clients if self.access else Entrance(self.broker.address)

    @property
    def makers_entrance(self) -> Entrance:
        return self.access.maker if self.access else Entrance(self.broker.address)

    def close(self) -> None:
        """Close all clients."""
        for client in (*self.clients.values(), *([self._maker[1]] if self._maker else [])):
            client.close()

    def able(self, *abilities: str) -> list[Client]:
        """The clients that have all of these methods or features."""
        return [client for client in self.clients.values() if all(map(client.can, abilities))]

    def for_client(self, client: Client, ability: str) -> Client:
        """The client that does this: the given one if it can, otherwise the maker."""
        return client if client.can(ability) else self.maker

    def name(self, prefix: str) -> str:
        """A new one, of something that the clients may use."""
        return f"{self.access.prefix if self.access else ''}{prefix}-{self.run}-{next(_numbers)}"

    def topic(self, client: Client, partitions: int = 1, **configs: str) -> str:
        """A new topic with a replica on each node, created by the client if it can.

        Configs have underscores for dots.
        """
        name = self.name("interop")
        settings = {key.replace("_", "."): value for key, value in configs.items()}

        def created() -> bool:
            try:
                self.for_client(client, "create_topic").create_topic(
                    name, partitions, configs=settings, replication_factor=self.nodes
                )
            except Refused as error:
                # A client that has lost its broker (-1) may not know whether it had been heard.
                if error.code != TOPIC_EXISTS:
                    raise
            return True

        eventually(created, "the topic is created")
        self.await_topic(client, name, partitions)
        if self.in_the_middle is not None:
            now, self.in_the_middle = self.in_the_middle, None
            now()
        return name

    def await_topic(self, client: Client, name: str, partitions: int = 1) -> None:
        """A broker may know a topic a moment before its partitions have leaders."""

        def usable() -> bool:
            return client.partitions(name) == partitions and client.end(name, partitions - 1) >= 0

        eventually(usable, "the topic can be used")


def eventually(condition: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    refused: Refused | None = None
    while time.monotonic() < deadline:
        try:
            if condition():
                return
        except Refused as error:
            refused = error
        time.sleep(0.05)
    raise AssertionError(f"within {timeout_s:g} s not so: {what}" + (f" ({refused})" if refused else ""))


@contextmanager
def refused_with(code: int) -> Iterator[None]:
    """The block is refused by the broker with exactly this error code."""
    try:
        yield
    except Refused as error:
        assert error.code == code, f"refused with {error.code} instead of {code}: {error}"
        return
    raise AssertionError(f"was not refused (expected error {code})")

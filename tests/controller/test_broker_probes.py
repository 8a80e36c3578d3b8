"""The active controller probes brokers whose connections have ended, and those only."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pykafka_broker.client.core.addresses import Address
from pykafka_broker.controller.broker_probes import is_refused
from pykafka_broker.controller.core.early_fencing import PATIENCE_MS
from pykafka_broker.testing.processes import free_port
from tests.controller.test_sessions import SESSION_MS, beat, fenced, join
from tests.support.metadata import Node


class Connection:
    closed: Callable[[], None]

    def on_close(self, callback: Callable[[], None]) -> None:
        self.closed = callback


class Machines:
    """What the system of each broker answers; `tried` are the connections."""

    def __init__(self) -> None:
        self.refuses = False
        self.error: Exception | None = None
        self.tried: list[Address] = []

    async def __call__(self, address: Address) -> bool:
        self.tried.append(address)
        if self.error is not None:
            raise self.error
        return self.refuses


@pytest.fixture
def machines() -> Machines:
    return Machines()


async def connected(node: Node, broker_id: int) -> Connection:
    """A broker that has joined, over a connection."""
    await join(node, broker_id)
    connection = Connection()
    node.role.note(broker_id, connection)
    return connection


async def test_a_broker_whose_process_has_ended_is_fenced_long_before_its_session_is_over(
    machines: Machines,
) -> None:
    node = Node(probe=machines)
    await node.start()
    connection = await connected(node, 2)
    await node.clock.pass_time(1_000)
    assert machines.tried == []

    machines.refuses = True
    connection.closed()
    await node.clock.pass_time(PATIENCE_MS - 100)
    assert fenced(node) == []
    await node.clock.pass_time(200)

    assert fenced(node) == [2]
    tried = len(machines.tried)
    await node.clock.pass_time(2_000)
    assert len(machines.tried) == tried


async def test_a_broker_that_dropped_a_connection_and_is_back_is_left_alone(machines: Machines) -> None:
    node = Node(probe=machines)
    await node.start()
    connection = await connected(node, 2)
    machines.refuses = True  # a firewall that lets the broker reach the controller only
    connection.closed()
    await node.clock.pass_time(PATIENCE_MS - 100)

    node.role.note(2, Connection())
    for _ in range(5):
        await beat(node, 2)
        await node.clock.pass_time(2_000)

    assert fenced(node) == []


async def test_a_probe_that_fails_is_not_the_last_one(
    machines: Machines, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node(probe=machines)
    await node.start()
    connection = await connected(node, 2)
    machines.error = RuntimeError("no descriptor")
    connection.closed()
    await node.clock.pass_time(1_000)
    assert fenced(node) == []
    assert [r.getMessage() for r in caplog.records if r.exc_info] == ["Failed to probe broker 2"]

    machines.error, machines.refuses = None, True
    await node.clock.pass_time(1_000)
    assert fenced(node) == [2]


async def test_a_paused_broker_is_fenced_by_its_session(machines: Machines) -> None:
    node = Node(probe=machines)
    await node.start()
    connection = await connected(node, 2)
    connection.closed()

    await node.clock.pass_time(SESSION_MS - 1)
    assert fenced(node) == []
    await node.clock.pass_time(1)
    assert fenced(node) == [2]


async def test_a_new_controller_probes_the_brokers_that_have_not_found_it(machines: Machines) -> None:
    node = Node()
    await node.start()
    await join(node, 2)
    await node.close()

    machines.refuses = True
    after = Node(node.files.killed(), probe=machines)
    await after.start()
    await after.clock.pass_time(1_000)
    assert fenced(after) == [2]


async def test_a_controller_that_leads_no_more_probes_nothing(machines: Machines) -> None:
    node = Node(probe=machines)
    await node.start()
    connection = await connected(node, 2)
    connection.closed()
    await node.clock.pass_time(100)
    await node.close()
    tried = len(machines.tried)
    assert tried > 0

    await node.clock.pass_time(5_000)
    assert len(machines.tried) == tried


async def test_only_a_system_that_says_so_refuses() -> None:
    assert await is_refused(Address("127.0.0.1", free_port()))
    assert not await is_refused(Address("no-such-host.invalid", 9092))
    assert not await is_refused(Address("x" * 64, 9092))

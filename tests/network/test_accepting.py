"""Who may connect: limits, rates and descriptors, on real sockets."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Any

import pytest

from pykafka_broker.machine.clock import SystemClock
from pykafka_broker.network.endpoint import ListenerEndpoint, ListenerLimits
from pykafka_broker.network.listeners import Listeners
from pykafka_broker.network.shared import Shared
from pykafka_broker.system.descriptors import DescriptorReserve
from pykafka_broker.testing.clock import VirtualClock
from pykafka_broker.testing.home import until
from tests.network.clients import LOCAL, Client, connected, listening, served
from tests.support.descriptors import descriptors_left
from tests.support.serving import API_VERSIONS


async def test_above_max_connections_new_ones_wait_until_another_is_closed() -> None:
    async with (
        listening(limits=ListenerLimits(max_connections=2)) as listeners,
        connected(listeners, 3) as [first, second, third],
    ):
        assert await served(first) and await served(second)
        await third.send(third.peer.request(API_VERSIONS))
        await until(lambda: listeners.acceptor.waiting_for_room)
        assert len(listeners.shared.connections) == 2

        first.close()
        assert third.peer.answers(await third.receive())


async def test_the_inter_broker_listener_makes_room_for_itself() -> None:
    endpoints = [LOCAL, ListenerEndpoint("INTERNAL", "127.0.0.1", 0, is_privileged=True)]
    async with (
        listening(*endpoints, limits=ListenerLimits(max_connections=1)) as listeners,
        connected(listeners) as [client],
    ):
        assert await served(client)
        async with connected(listeners, name="INTERNAL") as [broker]:
            assert await served(broker)
        assert await client.receive() == b""


async def test_raising_the_limit_lets_those_in_who_wait() -> None:
    async with (
        listening(limits=ListenerLimits(max_connections=1)) as listeners,
        connected(listeners, 2) as [first, second],
    ):
        assert await served(first)
        await until(lambda: listeners.acceptor.waiting_for_room)
        listeners.reconfigure(ListenerLimits(max_connections=10), {LOCAL.name: LOCAL})
        assert await served(second)


async def test_raising_the_limit_of_one_listener_lets_those_in_who_wait_there() -> None:
    narrow = LOCAL._replace(max_connections=1)
    async with listening(narrow) as listeners, connected(listeners, 2) as [first, second]:
        assert await served(first)
        await until(lambda: listeners.acceptor.waiting_for_room)
        listeners.reconfigure(ListenerLimits(), {LOCAL.name: narrow._replace(max_connections=2)})
        assert await served(second)


async def test_above_the_limit_per_address_connections_are_closed_at_once() -> None:
    limits = ListenerLimits(max_connections_per_ip=2)
    async with listening(limits=limits) as listeners:
        async with connected(listeners, 2) as clients:
            for client in clients:
                assert await served(client)
            async with connected(listeners) as [one_too_many]:
                assert await one_too_many.receive() == b""
            clients[0].close()
            await until(lambda: len(listeners.shared.connections) == 1)
            async with connected(listeners) as [next_one]:
                assert await served(next_one)
        assert listeners.shared.counters.connections_rejected == 1


async def test_an_override_replaces_the_limit_of_its_address() -> None:
    limits = ListenerLimits(max_connections_per_ip=0, max_connections_per_ip_overrides={"127.0.0.1": 1})
    async with listening(limits=limits) as listeners, connected(listeners, 2) as [first, second]:
        assert await served(first)
        assert await second.receive() == b""


async def test_a_listener_may_have_a_limit_of_its_own() -> None:
    endpoints = [LOCAL._replace(max_connections=1), ListenerEndpoint("INTERNAL", "127.0.0.1", 0)]
    async with (
        listening(*endpoints) as listeners,
        connected(listeners, 2) as [first, second],
        connected(listeners, name="INTERNAL") as [other],
    ):
        assert await served(first) and await served(other)
        await second.send(second.peer.request(API_VERSIONS))
        await until(lambda: listeners.acceptor.waiting_for_room)
        first.close()
        assert second.peer.answers(await second.receive())


async def test_a_connection_that_is_broken_off_before_its_task_has_begun_is_closed() -> None:
    async with listening() as listeners:
        listener, acceptor = listeners.listeners[LOCAL.name], listeners.acceptor
        listener.pause()
        with socket.create_connection(listener.address, timeout=60) as client:
            [listening_socket] = listener.sockets
            acceptor.accept(listener, listening_socket)
            assert acceptor.opening == 1
            await asyncio.gather(*acceptor.break_off_handshakes(), return_exceptions=True)
            assert client.recv(1) == b""
            assert (acceptor.opening, listener.connections) == (0, 0)


async def test_a_connection_that_cannot_be_served_for_any_reason_counts_no_more() -> None:
    class Broken:
        async def open(self, protocol: asyncio.BaseProtocol, client: socket.socket) -> None:
            raise ValueError("broken")

    limits = ListenerLimits(max_connections_per_ip=1)
    async with listening(limits=limits) as listeners:
        listener = listeners.listeners[LOCAL.name]
        sound = listener.service
        listener.service = sound._replace(transport=Broken())
        async with connected(listeners) as [client]:
            assert await client.receive() == b""
        assert listener.connections == 0

        listener.service = sound
        async with connected(listeners) as [client]:
            assert await served(client)


async def test_above_the_creation_rate_connections_come_one_by_one_after_those_of_a_window() -> None:
    clock = VirtualClock()
    limits = ListenerLimits(max_connection_creation_rate=4)
    async with listening(limits=limits, clock=clock) as listeners:
        for _ in range(40):
            async with connected(listeners) as [client]:
                assert await served(client)
        async with connected(listeners, 3) as clients:
            asked = [asyncio.create_task(served(client)) for client in clients]
            for number, client_is_served in enumerate(asked):
                await until(lambda: not listeners.listeners[LOCAL.name].is_accepting)
                await clock.pass_time(249)
                assert not any(task.done() for task in asked[number:])
                await clock.pass_time(1)
                assert await client_is_served


async def test_a_listener_may_have_a_creation_rate_of_its_own() -> None:
    clock = VirtualClock()
    slow = LOCAL._replace(max_connection_creation_rate=0)
    fast = ListenerEndpoint("INTERNAL", "127.0.0.1", 0)
    async with (
        listening(slow, fast, clock=clock) as listeners,
        connected(listeners) as [waiting],
        connected(listeners, name="INTERNAL") as [other],
    ):
        await waiting.send(waiting.peer.request(API_VERSIONS))
        assert await served(other)
        listeners.reconfigure(ListenerLimits(), {slow.name: LOCAL, fast.name: fast})
        # The one that waits already waits on.
        assert [connection.listener_name for connection in listeners.shared.connections] == ["INTERNAL"]
        await clock.pass_time(1_000)
        assert waiting.peer.answers(await waiting.receive())


async def test_the_creation_rate_of_the_inter_broker_listener_counts_where_the_brokers_does_not() -> None:
    clock = VirtualClock()
    endpoints = [LOCAL, ListenerEndpoint("INTERNAL", "127.0.0.1", 0, is_privileged=True)]
    limits = ListenerLimits(max_connection_creation_rate=0)
    async with listening(*endpoints, limits=limits, clock=clock) as listeners:
        async with connected(listeners, name="INTERNAL") as [broker]:
            assert await served(broker)
        async with connected(listeners) as [client]:
            await client.send(client.peer.request(API_VERSIONS))
            await clock.pass_time(999)
            assert not listeners.listeners[LOCAL.name].is_accepting
            await clock.pass_time(1)
            assert client.peer.answers(await client.receive())
        own = endpoints[1]._replace(max_connection_creation_rate=0)
        listeners.reconfigure(limits, {LOCAL.name: LOCAL, "INTERNAL": own})
        async with connected(listeners, name="INTERNAL") as [broker]:
            await broker.send(broker.peer.request(API_VERSIONS))
            await until(lambda: not listeners.listeners["INTERNAL"].is_accepting)


def test_descriptors_are_kept_free_for_the_log() -> None:
    shared = Shared(SystemClock())
    assert Listeners(shared, open_file_limit=10_000).acceptor.max_connections == 9_744
    assert Listeners(shared, open_file_limit=64).acceptor.max_connections == 32
    assert (
        Listeners(shared, ListenerLimits(max_connections=5), open_file_limit=64).acceptor.max_connections == 5
    )


async def test_without_descriptors_accepting_pauses_and_goes_on_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [OSError(errno.EMFILE, "Too many open files")] * 2
    accept = socket.socket.accept

    def exhausted(sock: socket.socket) -> Any:
        if failures:
            raise failures.pop()
        return accept(sock)

    monkeypatch.setattr(socket.socket, "accept", exhausted)
    async with listening() as listeners, connected(listeners) as [client]:
        assert await served(client)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        "Listener PLAINTEXT cannot accept connections (Too many open files); trying again"
    ]


async def test_without_descriptors_new_clients_are_closed_at_once_and_later_ones_are_served(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reserve = DescriptorReserve()
    reserve.hold(1)
    accept = socket.socket.accept

    def exhausted(sock: socket.socket) -> Any:
        """Only what the reserve has lent is free."""
        if reserve.held:
            raise OSError(errno.EMFILE, "Too many open files")
        return accept(sock)

    async with listening(reserve=reserve) as listeners:
        monkeypatch.setattr(socket.socket, "accept", exhausted)
        async with connected(listeners, 2) as clients:
            assert [await client.receive() for client in clients] == [b"", b""]
        monkeypatch.setattr(socket.socket, "accept", accept)
        async with connected(listeners) as [client]:
            assert await served(client)
        assert listeners.shared.counters.connections_rejected == 2
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        "This process has no file descriptor left: new connections are closed at once; raise the limit of "
        "open files (ulimit -n)"
    ]
    reserve.hold(0)


async def test_new_clients_do_not_take_what_is_freed_while_the_reserve_is_lent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reserve = DescriptorReserve()
    reserve.hold(3)
    async with listening(reserve=reserve) as listeners:
        async with connected(listeners) as [client]:
            assert await served(client)
        with socket.create_connection(listeners.listeners["PLAINTEXT"].address) as sock:
            sock.setblocking(False)
            assert [reserve.lend() for _ in range(3)] == [True] * 3
            with descriptors_left(1):
                assert await Client(sock).receive() == b""
            assert reserve.held == 1
        async with connected(listeners) as [client]:
            assert await served(client)
        assert (reserve.held, listeners.shared.counters.connections_rejected) == (3, 1)
    reserve.hold(0)

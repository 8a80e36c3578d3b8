"""Listeners on real sockets: addresses, limits on who may connect, slow and silent peers, and stopping."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pykafka_broker.apis.api import Later
from pykafka_broker.machine.clock import Clock, SystemClock
from pykafka_broker.network.creation_rate import CreationRate
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.network.endpoint import ListenerEndpoint, ListenerLimits
from pykafka_broker.network.limits import ConnectionLimits
from pykafka_broker.network.listeners import Listeners
from pykafka_broker.network.shared import Shared
from pykafka_broker.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from pykafka_broker.protocol.messages.produce import ProduceResponse
from pykafka_broker.system.descriptors import DescriptorReserve
from pykafka_broker.testing.clock import VirtualClock
from pykafka_broker.testing.home import PATIENCE_SECONDS, until
from tests.support.descriptors import descriptors_left
from tests.support.serving import API_VERSIONS, LIST_GROUPS, Doors, Peer, apis, produce_of

LOCAL = ListenerEndpoint("PLAINTEXT", "127.0.0.1", 0)


@asynccontextmanager
async def listening(
    *endpoints: ListenerEndpoint,
    limits: ListenerLimits | None = None,
    connection_limits: ConnectionLimits | None = None,
    node: Any = None,
    open_file_limit: int | None = None,
    clock: Clock | None = None,
    reserve: DescriptorReserve | None = None,
    **handlers: Callable[[Any, Any], Any],
) -> AsyncIterator[Listeners]:
    shared = Shared(clock or SystemClock(), connection_limits)
    listeners = Listeners(shared, limits, open_file_limit, reserve)
    for endpoint in endpoints or (LOCAL,):
        listeners.add(endpoint, Dispatch(apis(**handlers)))
    listeners.start(node)
    try:
        yield listeners
    finally:
        await listeners.stop(grace_ms=1_000)


class Client:
    """A socket, and what is asked over it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.peer = Peer()

    @classmethod
    async def connect(cls, address: tuple[str, int]) -> Client:
        sock = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        sock.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(sock, address)
        except OSError:
            sock.close()
            raise
        return cls(sock)

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.sock, data)

    async def receive(self, size: int = 65536) -> bytes:
        """The next bytes; b"" if the broker closed or reset the connection."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await asyncio.get_running_loop().sock_recv(self.sock, size)
        except ConnectionResetError:
            return b""

    async def ask(self, message: Any) -> list[tuple[int, Any]]:
        await self.send(self.peer.request(message))
        return self.peer.answers(await self.receive())

    def close(self) -> None:
        self.sock.close()


@asynccontextmanager
async def connected(
    listeners: Listeners, count: int = 1, name: str = "PLAINTEXT"
) -> AsyncIterator[list[Client]]:
    host, port = listeners.listeners[name].address
    clients = [await Client.connect((host or "127.0.0.1", port)) for _ in range(count)]
    try:
        yield clients
    finally:
        for client in clients:
            client.close()


async def served(client: Client) -> bool:
    return [correlation_id for correlation_id, _ in await client.ask(API_VERSIONS)] != []


# Addresses.


async def test_port_0_lets_the_system_choose_and_several_listeners_live_side_by_side() -> None:
    endpoints = [LOCAL, ListenerEndpoint("INTERNAL", "127.0.0.1", 0)]
    async with listening(*endpoints) as listeners:
        ports = {listener.port for listener in listeners.listeners.values()}
        assert len(ports) == 2 and 0 not in ports
        for name in ("PLAINTEXT", "INTERNAL"):
            async with connected(listeners, name=name) as [client]:
                assert await served(client)


@pytest.mark.parametrize("host", ["::1", ""])
async def test_ipv6_clients_are_served(host: str) -> None:
    async with listening(ListenerEndpoint("PLAINTEXT", host, 0)) as listeners:
        client = await Client.connect(("::1", listeners.listeners["PLAINTEXT"].port))
        with client.sock:
            assert await served(client)


async def test_no_host_means_ipv4_as_well_and_addresses_are_shown_as_ipv4() -> None:
    async with listening(ListenerEndpoint("PLAINTEXT", "", 0)) as listeners, connected(listeners) as [client]:
        assert await served(client)
        [connection] = listeners.shared.connections
        assert connection.client_host == "/127.0.0.1"


async def test_a_name_is_listened_on_with_all_its_addresses() -> None:
    async with (
        listening(ListenerEndpoint("PLAINTEXT", "localhost", 0)) as listeners,
        connected(listeners) as [client],
    ):
        assert await served(client)


async def test_an_address_in_use_is_refused_with_the_reason() -> None:
    async with listening() as listeners:
        taken = listeners.listeners["PLAINTEXT"].port
        with pytest.raises(OSError, match=f"failed to bind to 127.0.0.1:{taken}"):
            Listeners(listeners.shared).add(ListenerEndpoint("PLAINTEXT", "127.0.0.1", taken), Dispatch([]))


async def test_a_security_protocol_that_is_not_offered_is_refused() -> None:
    listeners = Listeners(Shared(SystemClock()))
    with pytest.raises(ValueError, match="SSL is not offered"):
        listeners.add(ListenerEndpoint("SSL", "127.0.0.1", 0, security_protocol="SSL"), Dispatch([]))


@pytest.mark.parametrize(
    ("endpoint", "expected_host", "expected_port"),
    [
        (
            ListenerEndpoint(
                "PLAINTEXT", "127.0.0.1", 0, advertised_host="broker.example", advertised_port=19092
            ),
            "broker.example",
            19092,
        ),
        (
            ListenerEndpoint("PLAINTEXT", "127.0.0.1", 0, advertised_host="broker.example"),
            "broker.example",
            None,
        ),
        (ListenerEndpoint("PLAINTEXT", "127.0.0.1", 0), "127.0.0.1", None),
        (ListenerEndpoint("PLAINTEXT", "0.0.0.0", 0), "127.0.0.2", None),
        (ListenerEndpoint("PLAINTEXT", "", 0), "127.0.0.2", None),
    ],
    ids=["advertised", "advertised with the bound port", "bound", "wildcard", "no host"],
)
async def test_a_client_is_told_an_address_that_it_can_reach(
    endpoint: ListenerEndpoint, expected_host: str, expected_port: int | None
) -> None:
    async with listening(endpoint) as listeners:
        port = listeners.listeners["PLAINTEXT"].port
        client = await Client.connect(("127.0.0.2" if endpoint.is_wildcard else "127.0.0.1", port))
        with client.sock:
            assert await served(client)
            [connection] = listeners.shared.connections
            assert listeners.advertised_for(connection) == (expected_host, expected_port or port)


# Who may connect.


async def test_above_max_connections_new_ones_wait_until_somebody_leaves() -> None:
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
    endpoints = [LOCAL, ListenerEndpoint("INTERNAL", "127.0.0.1", 0, inter_broker=True)]
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


def test_a_creation_rate_allows_a_seconds_worth_at_once_and_then_one_by_one() -> None:
    rate = CreationRate(per_second=4, now_ms=0)
    assert waits(rate, 0, 6) == [0, 0, 0, 0, 250, 250]
    assert waits(rate, 250, 2) == [0, 250]
    assert waits(rate, 10_000, 5) == [0, 0, 0, 0, 250]
    assert waits(CreationRate(per_second=0, now_ms=0), 0, 1) == [1_000]


def waits(rate: CreationRate, now_ms: int, connections: int) -> list[int]:
    """What each of some connections has to wait that ask at the same time."""
    answers = []
    for _ in range(connections):
        answers.append(rate.wait_ms(now_ms))
        if not answers[-1]:
            rate.count()
    return answers


async def test_above_the_creation_rate_connections_wait_their_turn() -> None:
    async with (
        listening(limits=ListenerLimits(max_connection_creation_rate=50)) as listeners,
        connected(listeners, 55) as clients,
    ):
        assert await asyncio.gather(*map(served, clients)) == [True] * 55


async def test_a_listener_may_have_a_creation_rate_of_its_own() -> None:
    slow = LOCAL._replace(max_connection_creation_rate=0)
    fast = ListenerEndpoint("INTERNAL", "127.0.0.1", 0)
    async with (
        listening(slow, fast) as listeners,
        connected(listeners) as [waiting],
        connected(listeners, name="INTERNAL") as [other],
    ):
        await waiting.send(waiting.peer.request(API_VERSIONS))
        assert await served(other)
        assert [connection.listener_name for connection in listeners.shared.connections] == ["INTERNAL"]
        listeners.reconfigure(ListenerLimits(), {slow.name: LOCAL, fast.name: fast})
        assert waiting.peer.answers(await waiting.receive())


async def test_the_creation_rate_of_the_inter_broker_listener_counts_where_the_brokers_does_not() -> None:
    endpoints = [LOCAL, ListenerEndpoint("INTERNAL", "127.0.0.1", 0, inter_broker=True)]
    limits = ListenerLimits(max_connection_creation_rate=0)
    async with listening(*endpoints, limits=limits) as listeners:
        inside = listeners.listeners["INTERNAL"]
        assert not listeners.acceptor.is_too_fast(inside)
        assert listeners.acceptor.is_too_fast(listeners.listeners[LOCAL.name])
        own = endpoints[1]._replace(max_connection_creation_rate=0)
        listeners.reconfigure(limits, {LOCAL.name: LOCAL, "INTERNAL": own})
        assert listeners.acceptor.is_too_fast(inside)


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


# Peers of all kinds.


async def test_two_hundred_clients_connect_at_once() -> None:
    async with listening() as listeners, connected(listeners, 200) as clients:
        assert await asyncio.gather(*map(served, clients)) == [True] * 200


async def test_large_requests_and_answers_go_through_whole() -> None:
    received: list[int] = []
    groups = [
        ListedGroup(group_id=f"{'g' * 200}{n}", protocol_type="", group_state="") for n in range(20_000)
    ]

    def append(request: Any, ctx: Any) -> ProduceResponse:
        received.append(sum(request.topic_data[0].partition_data[0].records[::4096]))
        return ProduceResponse(responses=[])

    async with (
        listening(
            produce=append, list_groups=lambda request, ctx: ListGroupsResponse(error_code=0, groups=groups)
        ) as listeners,
        connected(listeners) as [client],
    ):
        records = bytes(range(1, 256)) * 20_000
        await client.send(client.peer.requests(*[produce_of(records)] * 3, LIST_GROUPS))
        data = b""
        while len(data) < 4_000_000:
            data += await client.receive()
        answers = []
        while not answers:
            try:
                answers = client.peer.answers(data)
            except AssertionError:
                data += await client.receive()
        assert [correlation_id for correlation_id, _ in answers] == [1, 2, 3, 4]
        assert received == [sum(records[::4096])] * 3
        assert answers[3][1].groups == groups


async def test_a_peer_that_stops_reading_costs_a_bounded_amount_and_the_others_nothing() -> None:
    groups = [ListedGroup(group_id="g" * 1000, protocol_type="", group_state="") for _ in range(1_000)]
    answer = ListGroupsResponse(error_code=0, groups=groups)
    served_to: list[str] = []

    def list_groups(request: Any, ctx: Any) -> ListGroupsResponse:
        served_to.append(ctx.client_id)
        return answer

    async with listening(list_groups=list_groups) as listeners, connected(listeners, 2) as [deaf, other]:
        await deaf.send(deaf.peer.requests(*[LIST_GROUPS] * 60))
        await until(lambda: listeners.shared.unsent.used_bytes)
        started = len(served_to)
        for _ in range(20):
            assert await served(other)
        assert len(served_to) == started < 60

        while len(served_to) < 60:
            assert await deaf.receive(1_000_000)
        deaf.close()
        await until(lambda: not listeners.shared.unsent.used_bytes)


async def test_the_sweep_closes_idle_and_dribbling_connections() -> None:
    clock, limits = VirtualClock(), ConnectionLimits(idle_ms=100, request_arrival_ms=100)
    async with listening(connection_limits=limits, clock=clock) as listeners:
        async with connected(listeners, 2) as [idle, dribbling]:
            await dribbling.send(b"\0\0\0\x20\0")
            connections = listeners.shared.connections
            await until(lambda: len(connections) == 2 and any(c._reader.pending_bytes for c in connections))
            await clock.pass_time(1_000)
            assert await asyncio.gather(idle.receive(), dribbling.receive()) == [b"", b""]
        assert listeners.shared.counters.connections_closed_idle == 1
        assert listeners.shared.counters.connections_closed_for_errors == 1


async def test_when_unread_answers_take_too_much_those_who_do_not_read_are_dropped() -> None:
    groups = [ListedGroup(group_id="g" * 1000, protocol_type="", group_state="") for _ in range(30_000)]
    answer = ListGroupsResponse(error_code=0, groups=groups)
    limits = ConnectionLimits(idle_ms=100)
    async with listening(list_groups=lambda request, ctx: answer, connection_limits=limits) as listeners:
        listeners.shared.unsent.limit_bytes = 1_000_000
        async with connected(listeners) as [deaf]:
            await deaf.send(deaf.peer.request(LIST_GROUPS))
            await until(lambda: listeners.shared.unsent.used_bytes)
            await until(lambda: not listeners.shared.connections)
        assert listeners.shared.unsent.used_bytes == 0


async def test_a_peer_that_resets_while_it_is_answered_disturbs_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    doors = Doors()
    async with (
        listening(produce=lambda request, ctx: Later(doors.wait())) as listeners,
        connected(listeners, 2) as [rude, other],
    ):
        await rude.send(rude.peer.requests(produce_of(b"x"), API_VERSIONS))
        await until(lambda: doors.waiting)
        rude.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        rude.close()
        await until(lambda: len(listeners.shared.connections) == 1)
        doors.open(ProduceResponse(responses=[]))
        assert await served(other)
    assert [record for record in caplog.records if record.levelname != "INFO"] == []


# Stopping.


async def test_a_stop_answers_what_has_started_and_closes_everything() -> None:
    doors = Doors()
    async with (
        listening(produce=lambda request, ctx: Later(doors.wait())) as listeners,
        connected(listeners, 2) as [busy, idle],
    ):
        assert await served(idle)
        await busy.send(busy.peer.request(produce_of(b"x")))
        await until(lambda: doors.waiting)
        stopping = asyncio.create_task(listeners.stop(grace_ms=5_000))
        assert await idle.receive() == b""
        assert not stopping.done()

        doors.open(ProduceResponse(responses=[]))
        assert busy.peer.answers(await busy.receive()) == [(1, ProduceResponse(responses=[]))]
        await stopping
        with pytest.raises(ConnectionRefusedError):
            await Client.connect(("127.0.0.1", listeners.listeners["PLAINTEXT"].port))


async def test_a_stop_does_not_wait_forever_for_a_handler() -> None:
    doors = Doors()
    async with (
        listening(produce=lambda request, ctx: Later(doors.wait())) as listeners,
        connected(listeners) as [client],
    ):
        await client.send(client.peer.request(produce_of(b"x")))
        await until(lambda: doors.waiting)
        await listeners.stop(grace_ms=20)
        assert listeners.shared.connections == set()


@pytest.mark.parametrize("loop_name", ["asyncio", "uvloop"])
def test_both_event_loops_serve(loop_name: str) -> None:
    if loop_name == "uvloop":
        factory: Any = pytest.importorskip("uvloop").new_event_loop
    else:
        factory = asyncio.SelectorEventLoop

    async def story() -> bool:
        async with listening() as listeners, connected(listeners) as [client]:
            return await served(client)

    with asyncio.Runner(loop_factory=factory) as runner:
        assert runner.run(story())

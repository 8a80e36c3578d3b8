"""Listeners on real sockets: addresses, slow and silent peers, and stopping."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from pykafka_broker.apis.api import BROKER_LISTENER, CONTROLLER_LISTENER, Later
from pykafka_broker.apis.context import RequestContext
from pykafka_broker.machine.clock import SystemClock
from pykafka_broker.network.connection import Connection
from pykafka_broker.network.connection_factory import OpenConnection
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.network.endpoint import ListenerEndpoint
from pykafka_broker.network.limits import ConnectionLimits
from pykafka_broker.network.listeners import Listeners
from pykafka_broker.network.shared import Shared
from pykafka_broker.network.sweeping import SWEEP_MS, Sweep
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykafka_broker.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from pykafka_broker.protocol.messages.produce import ProduceResponse
from pykafka_broker.system.descriptors import DescriptorReserve
from pykafka_broker.testing.clock import VirtualClock
from pykafka_broker.testing.home import until
from tests.network.clients import LOCAL, Client, connected, kafka, listening, served
from tests.support.serving import API_VERSIONS, LIST_GROUPS, Doors, apis, produce_of, serve_api_versions

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
        assert isinstance(connection, Connection)
        assert connection.client_host == "/127.0.0.1"


async def test_each_kind_of_listener_is_started_by_itself_and_serves_what_is_its_own() -> None:
    asked: list[object] = []

    def note_node(request: ApiVersionsRequest, ctx: RequestContext) -> ApiVersionsResponse:
        asked.append(ctx.node)
        return serve_api_versions(request, ctx)

    shared = Shared(SystemClock())
    listeners = Listeners(shared)
    dispatch = Dispatch(apis(api_versions=note_node))
    listeners.add(LOCAL, kafka(shared, dispatch, "the broker"))
    of_controllers = ListenerEndpoint("CONTROLLER", "127.0.0.1", 0, serves=CONTROLLER_LISTENER)
    listeners.add(of_controllers, kafka(shared, dispatch, "the controller"))

    listeners.start(CONTROLLER_LISTENER)
    async with connected(listeners) as [waits], connected(listeners, name="CONTROLLER") as [voter]:
        await waits.send(waits.peer.request(API_VERSIONS))
        assert await served(voter)
        assert asked == ["the controller"]
        listeners.start(BROKER_LISTENER)
        assert len(waits.peer.answers(await waits.receive())) == 1

    assert asked == ["the controller", "the broker"]
    await listeners.stop(grace_ms=1_000)


async def test_a_name_is_listened_on_with_all_its_addresses() -> None:
    async with (
        listening(ListenerEndpoint("PLAINTEXT", "localhost", 0)) as listeners,
        connected(listeners) as [client],
    ):
        assert await served(client)


async def test_an_address_in_use_is_refused_with_the_reason() -> None:
    async with listening() as listeners:
        taken = listeners.listeners["PLAINTEXT"].port
        endpoint = ListenerEndpoint("PLAINTEXT", "127.0.0.1", taken)
        shared = listeners.shared
        with pytest.raises(OSError, match=f"failed to bind to 127.0.0.1:{taken}"):
            Listeners(shared).add(endpoint, kafka(shared, Dispatch([])))


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
            assert isinstance(connection, Connection)
            assert listeners.advertised_for(connection) == (expected_host, expected_port or port)


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
        answers: list[tuple[int, Any]] = []
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


def has_begun(connection: OpenConnection) -> bool:
    """Whether a part of a request has come."""
    assert isinstance(connection, Connection)
    return connection._reader.pending_bytes > 0


async def test_the_sweep_closes_idle_and_dribbling_connections() -> None:
    clock, limits = VirtualClock(), ConnectionLimits(idle_ms=100, request_arrival_ms=100)
    async with listening(connection_limits=limits, clock=clock) as listeners:
        async with connected(listeners, 2) as [idle, dribbling]:
            await dribbling.send(b"\0\0\0\x20\0")
            connections = listeners.shared.connections
            await until(lambda: len(connections) == 2 and any(map(has_begun, connections)))
            await clock.pass_time(1_000)
            assert list(await asyncio.gather(idle.receive(), dribbling.receive())) == [b"", b""]
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


async def test_a_peer_that_resets_while_it_is_answered_does_not_disturb_others(
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
        assert not listeners.shared.connections


def test_the_sweep_goes_on_after_one_that_failed_with_the_other_connections(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken:
        def check(self, now_ms: int) -> None:
            raise ZeroDivisionError

    class Sound:
        checks = 0

        def check(self, now_ms: int) -> None:
            self.checks += 1

    clock = VirtualClock()
    shared, sound = Shared(clock), Sound()
    for each in (Broken(), sound):
        shared.connections.add(each)  # type: ignore[arg-type]  # nobody asks it for more
    Sweep(shared, DescriptorReserve()).start()
    clock.advance(2 * SWEEP_MS)
    assert sound.checks == 2
    [line] = caplog.records
    assert line.exc_info is not None
    assert line.getMessage().startswith("Failed to look at the deadlines of ")


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

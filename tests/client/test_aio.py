"""The client of programs with an event loop: requests in flight, time-outs, and the end of a connection."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import trustme

from pykafka_broker.client.aio import AsyncConnection, FrameStream, _refreshed, connect
from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.core.coordinators import find_coordinator
from pykafka_broker.client.core.frames import framed
from pykafka_broker.client.core.metadata import Brokers
from pykafka_broker.client.core.retries import first_attempt
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.errors import ErrorCode, ProtocolError
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorResponse
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pykafka_broker.protocol.messages.produce import ProduceRequest
from pykafka_broker.system.event_loop import run
from pykafka_broker.testing.clock import VirtualClock
from pykafka_broker.testing.home import Home, until
from tests.support.scripted_broker import response_frame, versions

BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
SERVED = versions((0, 3, 8), (10, 0, 3), (12, 0, 3), (18, 0, 4))


class Wire:
    """The broker's end of the connection: the test reads requests and answers when it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def request(self) -> tuple[int, int, int]:
        """API key, version and correlation id of the next request."""
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        api_key, version, correlation_id = struct.unpack_from(">hhi", await self.reader.readexactly(size))
        return api_key, version, correlation_id

    def answer(self, correlation_id: int, body: bytes) -> None:
        self.writer.write(response_frame(correlation_id, body))


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[Address, Callable[[], Awaitable[Wire]]]]:
    """An address, and what returns the broker's end of the next connection to it."""
    accepted: asyncio.Queue[Wire] = asyncio.Queue()
    wires: list[Wire] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wires.append(Wire(reader, writer))
        accepted.put_nowait(wires[-1])

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield Address(*server.sockets[0].getsockname()), accepted.get
    finally:
        for wire in wires:
            wire.writer.close()
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def connected(clock: VirtualClock) -> AsyncIterator[tuple[AsyncConnection, Wire]]:
    """An open connection, and the broker's end of it."""
    async with listening() as (address, accepted):
        opening = asyncio.create_task(connect(address, clock=clock))
        wire = await accepted()
        assert await wire.request() == (18, 3, 1)
        wire.answer(1, encode(SERVED, 3))
        async with await opening as connection:
            yield connection, wire


@pytest.fixture
async def clock() -> VirtualClock:
    return VirtualClock()


async def test_requests_are_on_their_way_together_and_each_gets_its_own_response(clock: VirtualClock) -> None:
    async with connected(clock) as (connection, wire):
        responses = [connection.start(BEAT, 0) for _ in range(3)]
        assert [await wire.request() for _ in range(3)] == [(12, 0, number) for number in (2, 3, 4)]
        wire.writer.write(b"".join(response_frame(n, struct.pack(">h", n)) for n in (2, 3, 4)))
        assert await asyncio.gather(*responses) == [HeartbeatResponse(error_code=n) for n in (2, 3, 4)]


async def test_the_newest_version_that_both_sides_know_is_sent(clock: VirtualClock) -> None:
    async with connected(clock) as (connection, wire):
        response = connection.start(BEAT)
        assert await wire.request() == (12, 3, 2)
        wire.answer(2, bytes(4) + b"\0\x1b")
        assert (await response).error_code == ErrorCode.REBALANCE_IN_PROGRESS


async def test_a_request_that_wants_no_response_has_none(clock: VirtualClock) -> None:
    async with connected(clock) as (connection, wire):
        assert await connection.send(ProduceRequest(acks=0, timeout_ms=1, topic_data=[])) is None
        assert await wire.request() == (0, 8, 2)


async def test_a_response_that_comes_too_late_is_dropped_and_the_connection_goes_on(
    clock: VirtualClock,
) -> None:
    async with connected(clock) as (connection, wire):
        late = asyncio.create_task(connection.send(BEAT, 0, timeout_ms=500))
        await wire.request()
        other = connection.start(BEAT, 0)
        await wire.request()
        await clock.pass_time(500)
        with pytest.raises(TimeoutError, match="did not answer Heartbeat in time"):
            await late
        wire.answer(2, b"\0\1")
        wire.answer(3, b"\0\2")
        assert (await other).error_code == 2
    assert clock.pending_timers == 0


async def test_a_cancelled_request_does_not_disturb_the_others(clock: VirtualClock) -> None:
    async with connected(clock) as (connection, wire):
        cancelled = asyncio.create_task(connection.send(BEAT, 0))
        await wire.request()
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        other = connection.start(BEAT, 0)
        wire.answer(2, b"\0\1")
        wire.answer(3, b"\0\2")
        assert (await other).error_code == 2
    assert clock.pending_timers == 0


async def test_every_caller_is_told_when_the_broker_closes_the_connection(clock: VirtualClock) -> None:
    async with connected(clock) as (connection, wire):
        responses = [connection.start(BEAT, 0) for _ in range(2)]
        wire.writer.close()
        for response in responses:
            with pytest.raises(ConnectionError, match="closed the connection"):
                await response
        with pytest.raises(ConnectionError, match=r"The connection to 127\.0\.0\.1:\d+ is closed"):
            connection.start(BEAT, 0)


async def test_closing_ends_what_waits_and_sends_what_was_written(clock: VirtualClock) -> None:
    async with connected(clock) as (connection, wire):
        waiting = connection.start(BEAT, 0)
        await connection.close()
        with pytest.raises(ConnectionError, match=r"The connection to 127\.0\.0\.1:\d+ is closed"):
            await waiting
        assert await wire.request() == (12, 0, 2)
        assert await wire.reader.read() == b""


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (response_frame(99, b""), "answered another request than the one asked"),
        (struct.pack(">i", -1), "announces a response of -1 bytes"),
        (response_frame(2, b"\0"), "cut short"),
    ],
    ids=["another request", "no size", "a cut response"],
)
async def test_what_no_broker_sends_ends_the_connection(
    clock: VirtualClock, said: bytes, reason: str
) -> None:
    async with connected(clock) as (connection, wire):
        waiting = connection.start(BEAT, 0)
        wire.writer.write(said)
        with pytest.raises(ProtocolError, match=reason):
            await waiting


async def test_a_listener_that_is_no_broker_is_refused() -> None:
    async with listening() as (address, accepted):
        opening = asyncio.create_task(connect(address))
        (await accepted()).writer.write(b"HTTP/1.1 400 Bad Request")
        with pytest.raises(ProtocolError, match="seems to speak HTTP"):
            await opening


async def test_a_broker_that_does_not_answer_is_given_up(clock: VirtualClock) -> None:
    async with listening() as (address, accepted):
        opening = asyncio.create_task(connect(address, clock=clock, timeout_ms=700))
        await (await accepted()).request()
        await clock.pass_time(700)
        with pytest.raises(TimeoutError, match="did not answer ApiVersions in time"):
            await opening


async def test_a_certificate_that_is_not_trusted_is_said_to_be_so() -> None:
    of_broker = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(of_broker)
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=of_broker)
    async with server:
        address = Address(*server.sockets[0].getsockname())
        with pytest.raises(OSError, match=r"^\[SSL: CERTIFICATE_VERIFY_FAILED\]"):
            await FrameStream.open(address, tls=ssl.create_default_context)


async def test_a_token_that_cannot_be_had_for_any_reason_ends_the_wait() -> None:
    class Tokens:
        token, is_stale = "", True
        extensions: dict[str, str] = {}

        def refresh(self) -> None:
            raise ValueError("odd")

    with pytest.raises(ConnectionError, match="There is no bearer token: ValueError"):
        await _refreshed(Tokens())


async def test_a_conversation_waits_by_the_clock(clock: VirtualClock) -> None:
    async with connected(clock) as (connection, wire):
        looking = find_coordinator(Brokers(), "g", first_attempt(clock.monotonic_ms(), 1_000))
        found = asyncio.create_task(connection.run(looking))
        loading = FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert await wire.request() == (10, 3, 2)
        wire.answer(2, b"\0" + encode(loading, 3))
        again = asyncio.create_task(wire.request())
        await until(lambda: clock.pending_timers)
        await clock.pass_time(100)
        assert await again == (10, 3, 3)
        wire.answer(3, b"\0" + encode(FindCoordinatorResponse(node_id=7, host="b", port=9093), 3))
        assert await found == 7


# -- the bytes below
# ------------------


async def test_a_stream_sends_any_bytes_and_returns_frames_as_they_came() -> None:
    async with listening() as (address, accepted):
        stream = await FrameStream.open(address)
        wire = await accepted()
        stream.write(b"GET / HTTP/1.1")
        assert await wire.reader.readexactly(14) == b"GET / HTTP/1.1"
        large = b"l" * 300_000
        wire.writer.write(framed(b"one") + framed(large) + framed(b"two"))
        assert [await stream.receive() for _ in range(3)] == [b"one", large, b"two"]
        await stream.close()
        with pytest.raises(ConnectionError):
            await stream.receive()


async def test_the_end_of_a_stream_comes_behind_its_frames() -> None:
    async with listening() as (address, accepted):
        stream = await FrameStream.open(address)
        wire = await accepted()
        waiting = asyncio.create_task(stream.receive())
        wire.writer.write(framed(b"one") + framed(b"two"))
        wire.writer.close()
        assert [await waiting, await stream.receive()] == [b"one", b"two"]
        with pytest.raises(ConnectionError, match="closed the connection"):
            await stream.receive()
        await stream.close()


def test_connections_work_on_the_event_loop_of_brokers() -> None:
    async def versions_served() -> bool:
        home = Home()
        async with home.running():
            host, _, port = home.broker.bootstrap_servers.rpartition(":")
            async with await connect(Address(host, int(port))) as connection:
                return connection.newest_version(BEAT) > 0

    assert run(versions_served())

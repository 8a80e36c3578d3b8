"""Requests to the active controller on another node: one that serves, moves, hangs, lies, is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pykafka_broker.controller.channel import LedHere
from pykafka_broker.controller.leader_connection import (
    RETRY_PAUSE_MS,
    LeaderConnection,
    LeaderConnectionSettings,
)
from pykafka_broker.machine.clock import Clock, SystemClock
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.frames import LENGTH
from pykafka_broker.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from pykafka_broker.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from pykafka_broker.protocol.messages.elect_leaders import ElectLeadersRequest
from pykafka_broker.system.repeated_lines import INTERVAL_MS
from pykafka_broker.testing.clock import VirtualClock

REQUEST = AllocateProducerIdsRequest(broker_id=2, broker_epoch=7)
ALLOCATE_KEY, API_VERSIONS_KEY = 67, 18


def block(start: int = 0, error: ErrorCode = ErrorCode.NONE) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=int(error), producer_id_start=start, producer_id_len=1_000)


class Controller:
    """A controller that plays along: `answer()` gives its answers, None is silence, bytes go as they are."""

    def __init__(self, answer: Callable[[], AllocateProducerIdsResponse | bytes | None]) -> None:
        self.answer = answer
        self.connections = 0
        self.requests = 0
        #: A test waits here for the next request.
        self.arrived: asyncio.Queue[None] = asyncio.Queue()
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    @property
    def address(self) -> tuple[str, int]:
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()
        return host, port

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.hang_up()

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        try:
            while True:
                (length,) = LENGTH.unpack(await reader.readexactly(4))
                frame = await reader.readexactly(length)
                key = int.from_bytes(frame[:2], "big")
                response = self._response(key)
                if response is None:
                    continue
                if isinstance(response, bytes):
                    writer.write(response)
                    continue
                # Response header v0 of ApiVersions, v1 of all others here.
                header = frame[4:8] + (b"" if key == API_VERSIONS_KEY else b"\0")
                version = 3 if key == API_VERSIONS_KEY else 0
                body = header + encode(response, version)
                writer.write(LENGTH.pack(len(body)) + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _response(self, key: int) -> object:
        if key == API_VERSIONS_KEY:
            served = [ApiVersion(api_key=ALLOCATE_KEY, min_version=0, max_version=0)]
            return ApiVersionsResponse(error_code=0, api_keys=served)
        self.requests += 1
        self.arrived.put_nowait(None)
        return self.answer()


@asynccontextmanager
async def controller(
    answer: Callable[[], AllocateProducerIdsResponse | bytes | None],
) -> AsyncIterator[Controller]:
    playing = Controller(answer)
    await playing.start()
    try:
        yield playing
    finally:
        await playing.stop()


class Leader:
    """The leader that the replica of a test knows."""

    def __init__(self, address: tuple[str, int] | None) -> None:
        self.leader_address = address
        self._watchers: list[Callable[[], None]] = []

    def watch_leader(self, watcher: Callable[[], None]) -> None:
        self._watchers.append(watcher)

    def move(self, address: tuple[str, int] | None) -> None:
        self.leader_address = address
        for watcher in self._watchers:
            watcher()


@asynccontextmanager
async def connection_to(
    leader: Leader, clock: Clock | None = None, **settings: Any
) -> AsyncIterator[LeaderConnection]:
    connection = LeaderConnection(
        leader, clock or SystemClock(), LeaderConnectionSettings(2, "test", **settings)
    )
    try:
        yield connection
    finally:
        await connection.close()


async def test_callers_share_a_connection_that_is_made_when_there_is_something_to_ask() -> None:
    async with controller(lambda: block(5)) as active, connection_to(Leader(active.address)) as connection:
        assert active.connections == 0
        answers = await asyncio.gather(*(connection.ask(REQUEST) for _ in range(3)))
        assert answers == [block(5)] * 3
        assert active.connections == 1
        assert connection.served_versions == {ALLOCATE_KEY: (0, 0)}


async def test_an_error_of_the_request_is_an_answer() -> None:
    stale = block(error=ErrorCode.STALE_BROKER_EPOCH)
    async with controller(lambda: stale) as active, connection_to(Leader(active.address)) as connection:
        assert await connection.ask(REQUEST) == stale
        assert active.requests == 1


async def test_a_request_waits_for_a_leader() -> None:
    leader = Leader(None)
    async with controller(block) as active, connection_to(leader) as connection:
        asking = asyncio.ensure_future(connection.ask(REQUEST))
        await asyncio.sleep(0)
        leader.move(active.address)
        assert await asking == block()


async def test_a_node_that_does_not_lead_any_more_is_not_believed() -> None:
    refusal = block(error=ErrorCode.NOT_CONTROLLER)
    async with controller(lambda: refusal) as former, controller(lambda: block(1)) as active:
        leader = Leader(former.address)

        def move() -> AllocateProducerIdsResponse:
            leader.move(active.address)
            return refusal

        former.answer = move
        async with connection_to(leader) as connection:
            assert await connection.ask(REQUEST) == block(1)
            assert (former.requests, active.requests) == (1, 1)


async def test_a_request_goes_on_with_the_next_leader_when_the_one_before_hangs_or_hangs_up() -> None:
    async with controller(lambda: None) as silent, controller(lambda: block(1)) as active:
        leader = Leader(silent.address)
        async with connection_to(leader) as connection:
            asking = asyncio.ensure_future(connection.ask(REQUEST))
            await silent.arrived.get()
            silent.hang_up()
            await silent.arrived.get()
            leader.move(None)
            await asyncio.sleep(0)
            assert not asking.done()
            leader.move(active.address)
            assert await asking == block(1)


async def test_a_leader_that_nobody_reaches_is_asked_until_there_is_another() -> None:
    async with controller(block) as gone, controller(lambda: block(1)) as active:
        leader = Leader(gone.address)
        await gone.stop()
        async with connection_to(leader) as connection:
            asking = asyncio.ensure_future(connection.ask(REQUEST))
            with pytest.raises(KafkaError):
                await connection.ask(REQUEST, timeout_ms=120)
            leader.move(active.address)
            assert await asking == block(1)


LIES = [b"\x00\x00\x00\x05HTTP!", b"\x7f\xff\xff\xff", b"\x00\x00\x00\x04\x00\x00\x00\x63"]


@pytest.mark.parametrize("lie", LIES)
async def test_a_liar_is_asked_again_until_there_is_another(lie: bytes) -> None:
    async with controller(lambda: lie) as liar, controller(lambda: block(1)) as active:
        leader = Leader(liar.address)
        async with connection_to(leader) as connection:
            asking = asyncio.ensure_future(connection.ask(REQUEST))
            for connections in (1, 2):
                await liar.arrived.get()
                assert liar.connections == connections
            leader.move(active.address)
            assert await asking == block(1)


async def test_a_silent_controller_is_connected_to_anew_after_each_attempt() -> None:
    clock = VirtualClock()
    async with controller(lambda: None) as silent:
        leader = Leader(silent.address)
        async with connection_to(leader, clock, attempt_timeout_ms=30) as connection:
            asking = asyncio.ensure_future(connection.ask(REQUEST, timeout_ms=200))
            for connections in (1, 2, 3):
                await silent.arrived.get()
                assert silent.connections == connections
                await clock.pass_time(30 + RETRY_PAUSE_MS)
            with pytest.raises(KafkaError) as refused:
                await asking
            assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT


async def test_one_caller_without_patience_does_not_end_the_wait_of_others() -> None:
    async with controller(lambda: None) as slow, connection_to(Leader(slow.address)) as connection:
        patient = asyncio.ensure_future(connection.ask(REQUEST))
        await slow.arrived.get()
        with pytest.raises(KafkaError):
            await connection.ask(REQUEST, timeout_ms=30)
        assert (slow.connections, patient.done()) == (1, False)
        patient.cancel()


async def test_a_request_that_the_controller_does_not_serve_is_not_sent() -> None:
    async with controller(block) as active, connection_to(Leader(active.address)) as connection:
        with pytest.raises(KafkaError) as refused:
            await connection.ask(ElectLeadersRequest(election_type=0, topic_partitions=None))
        assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION


async def test_a_connection_that_breaks_is_one_line_however_many_wait_for_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It counted each caller, 130 a second, as if there had been so many attempts."""
    caplog.set_level("INFO")
    clock = VirtualClock()
    async with (
        controller(lambda: None) as active,
        connection_to(Leader(active.address), clock) as connection,
    ):
        for callers in (7, 1):
            active.answer = lambda: None
            asking = [asyncio.ensure_future(connection.ask(REQUEST)) for _ in range(callers)]
            for _ in asking:
                await active.arrived.get()
            active.answer = block
            active.hang_up()
            while not all(each.done() for each in asking):
                await clock.pass_time(1)
            await clock.pass_time(INTERVAL_MS)
    told = "[NodeToControllerChannelManager id=2 name=test] No answer of the controller at 127.0.0.1:"
    assert [record.getMessage().startswith(told) for record in caplog.records] == [True, True]
    assert "more of these" not in caplog.text
    assert caplog.records[0].name == "org.apache.kafka.server.NodeToControllerRequestThread"


async def test_without_a_leader_the_time_runs_out() -> None:
    async with connection_to(Leader(None)) as connection:
        with pytest.raises(KafkaError) as refused:
            await connection.ask(REQUEST, timeout_ms=20)
        assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT


async def test_a_controller_that_begins_in_this_process_takes_the_request_back() -> None:
    async with controller(lambda: None) as former:
        leader, led_here = Leader(former.address), [False]
        connection = LeaderConnection(
            leader, SystemClock(), LeaderConnectionSettings(2, "test"), is_led_here=lambda: led_here[0]
        )
        asking = asyncio.ensure_future(connection.ask(REQUEST))
        await former.arrived.get()
        led_here[0] = True
        leader.move(None)
        with pytest.raises(LedHere):
            await asking
        await connection.close()


async def test_a_stop_answers_those_who_wait() -> None:
    async with controller(lambda: None) as silent:
        connection = LeaderConnection(
            Leader(silent.address), SystemClock(), LeaderConnectionSettings(2, "test")
        )
        asking = asyncio.ensure_future(connection.ask(REQUEST))
        await silent.arrived.get()
        await connection.close()
        with pytest.raises(KafkaError) as refused:
            await asking
        assert refused.value.code is ErrorCode.NOT_CONTROLLER


async def test_there_is_a_limit_to_those_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pykafka_broker.controller.leader_connection.MAX_CALLERS", 1)
    async with connection_to(Leader(None)) as connection:
        waiting = asyncio.ensure_future(connection.ask(REQUEST))
        await asyncio.sleep(0)
        with pytest.raises(KafkaError, match="Too many requests"):
            await connection.ask(REQUEST)
        waiting.cancel()

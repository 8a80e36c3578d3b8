"""Parked long polls: who wakes them, how soon, and that nothing is left of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pykafka_broker.network.purgatory import Disconnected, Purgatory
from pykafka_broker.protocol.messages.heartbeat import HeartbeatResponse
from pykafka_broker.testing.clock import VirtualClock, settle
from tests.support.serving import HEARTBEAT, Served


class Log:
    """What the purgatory has to know of a partition's log."""

    def __init__(self) -> None:
        self.on_advance: list[Callable[..., Any]] = []

    def move(self) -> None:
        for callback in list(self.on_advance):
            callback(self)


class Client:
    """What the purgatory has to know of a connection."""

    def __init__(self) -> None:
        self.closed = False
        self.callbacks: list[Callable[[], None]] = []

    def on_close(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def disconnect(self) -> None:
        self.closed = True
        for callback in self.callbacks:
            callback()


def in_ms(clock: VirtualClock, duration_ms: int) -> int:
    return clock.monotonic_ms() + duration_ms


async def test_a_move_of_any_watched_log_wakes_in_the_same_turn() -> None:
    clock, logs = VirtualClock(), [Log(), Log(), Log()]
    purgatory = Purgatory(clock)
    parked = asyncio.create_task(purgatory.wait(logs, in_ms(clock, 500), Client()))
    await settle()
    assert (purgatory.parked, purgatory.watched_logs, parked.done()) == (1, 3, False)

    logs[1].move()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert parked.done() and parked.result() is True


async def test_the_deadline_ends_the_wait() -> None:
    clock, log = VirtualClock(), Log()
    purgatory = Purgatory(clock)
    parked = asyncio.create_task(purgatory.wait([log], in_ms(clock, 500), Client()))
    await clock.pass_time(499)
    assert not parked.done()
    await clock.pass_time(1)
    assert parked.result() is False


@pytest.mark.parametrize("moves", [True, False])
async def test_nothing_is_left_of_a_wait_however_it_ended(moves: bool) -> None:
    clock, log, client = VirtualClock(), Log(), Client()
    purgatory = Purgatory(clock)
    parked = asyncio.create_task(purgatory.wait([log], in_ms(clock, 500), client))
    await settle()
    if moves:
        log.move()
    await clock.pass_time(500)
    assert parked.result() is moves
    assert (purgatory.parked, purgatory.watched_logs, log.on_advance, clock.pending_timers) == (0, 0, [], 0)


async def test_a_deadline_in_the_past_does_not_park() -> None:
    clock = VirtualClock()
    purgatory = Purgatory(clock)
    assert await purgatory.wait([Log()], clock.monotonic_ms(), Client()) is False


async def test_a_cheap_question_keeps_those_asleep_who_want_more() -> None:
    clock, log = VirtualClock(), Log()
    purgatory = Purgatory(clock)
    batches: list[bytes] = []
    parked = asyncio.create_task(
        purgatory.wait([log], in_ms(clock, 500), Client(), ready=lambda log: len(batches) == 2)
    )
    await settle()
    for batch in (b"first", b"second"):
        assert not parked.done()
        batches.append(batch)
        log.move()
        await settle()
    assert parked.result() is True


async def test_a_disconnected_client_ends_all_its_waits_and_no_others() -> None:
    clock, log = VirtualClock(), Log()
    purgatory = Purgatory(clock)
    gone, stays = Client(), Client()
    waits = [
        asyncio.create_task(purgatory.wait([log], in_ms(clock, 500), client))
        for client in (gone, gone, stays)
    ]
    await settle()
    gone.disconnect()
    await settle()
    assert [wait.done() and wait.exception() is not None for wait in waits] == [True, True, False]
    assert purgatory.parked == 1

    with pytest.raises(Disconnected):
        await purgatory.wait([log], in_ms(clock, 500), gone)
    log.move()
    assert await waits[2] is True


async def test_a_connection_that_waits_often_is_asked_once_to_tell_of_its_end() -> None:
    clock, log, client = VirtualClock(), Log(), Client()
    purgatory = Purgatory(clock)
    for _ in range(10):
        parked = asyncio.create_task(purgatory.wait([log], in_ms(clock, 500), client))
        await settle()
        log.move()
        assert await parked is True
    assert len(client.callbacks) == 1


async def test_a_stopping_broker_releases_every_wait_and_parks_no_more() -> None:
    clock, log = VirtualClock(), Log()
    purgatory = Purgatory(clock)
    waits = [asyncio.create_task(purgatory.wait([log], in_ms(clock, 500), Client())) for _ in range(3)]
    await settle()
    purgatory.close()
    assert await asyncio.gather(*waits) == [False] * 3
    assert await purgatory.wait([log], in_ms(clock, 500), Client()) is False
    assert purgatory.parked == 0


async def test_a_cancelled_wait_leaves_nothing() -> None:
    clock, log = VirtualClock(), Log()
    purgatory = Purgatory(clock)
    parked = asyncio.create_task(purgatory.wait([log], in_ms(clock, 500), Client()))
    await settle()
    parked.cancel()
    await settle()
    assert (purgatory.parked, log.on_advance, clock.pending_timers) == (0, [], 0)


async def test_above_the_limit_the_oldest_is_answered_early() -> None:
    clock, log = VirtualClock(), Log()
    purgatory = Purgatory(clock, max_parked=2)
    waits = []
    for _ in range(3):
        waits.append(asyncio.create_task(purgatory.wait([log], in_ms(clock, 500), Client())))
        await settle()
    assert [wait.done() for wait in waits] == [True, False, False]
    assert waits[0].result() is False
    purgatory.close()
    assert await asyncio.gather(*waits) == [False] * 3


async def test_two_thousand_parked_clients_disconnect_and_everything_is_freed() -> None:
    clock, log = VirtualClock(), Log()
    purgatory = Purgatory(clock)
    clients = [Client() for _ in range(2_000)]
    waits = [asyncio.create_task(purgatory.wait([log], in_ms(clock, 500_000), client)) for client in clients]
    await settle()
    assert (purgatory.parked, len(log.on_advance)) == (2_000, 1)

    for client in clients:
        client.disconnect()
    await settle()
    assert all(isinstance(wait.exception(), Disconnected) for wait in waits)
    assert (purgatory.parked, purgatory.watched_logs, log.on_advance, clock.pending_timers) == (0, 0, [], 0)


async def test_a_log_may_move_while_its_waiters_leave_and_come_back() -> None:
    clock, log = VirtualClock(), Log()
    purgatory = Purgatory(clock)
    woken = []

    async def poll(name: str) -> None:
        for _ in range(3):
            assert await purgatory.wait([log], in_ms(clock, 500), Client())
            woken.append(name)

    polls = [asyncio.create_task(poll(name)) for name in "ab"]
    for _ in range(3):
        await settle()
        log.move()
    await asyncio.gather(*polls)
    assert woken == ["a", "b"] * 3


async def test_two_thousand_connections_parked_in_a_handler_disconnect_and_nothing_is_left() -> None:
    log = Log()
    first = Served()
    purgatory = Purgatory(first.clock)

    async def parked(request: Any, ctx: Any) -> HeartbeatResponse:
        await purgatory.wait([log], in_ms(first.clock, 500_000), ctx.connection)
        return HeartbeatResponse(error_code=0)

    peers = [Served(clock=first.clock, shared=first.shared, heartbeat=parked) for _ in range(2_000)]
    for peer in peers:
        peer.send(HEARTBEAT)
    await settle()
    assert (purgatory.parked, len(first.shared.handlers)) == (2_000, 2_000)

    stays, *leave = peers
    for peer in leave:
        peer.transport.disconnect()
    await settle()
    assert (purgatory.parked, len(first.shared.handlers), first.clock.pending_timers) == (1, 1, 1)

    log.move()
    await settle()
    assert stays.answered() == [1]
    assert (purgatory.parked, purgatory.watched_logs, log.on_advance) == (0, 0, [])
    assert (len(first.shared.handlers), first.clock.pending_timers) == (0, 0)

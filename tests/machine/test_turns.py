"""Timers of many shards that are due at once fire one by one, each in a turn of the event loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise

from pykafka_broker.machine.step import AT_ONCE_MS
from pykafka_broker.machine.turns import Turns
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.testing.clock import VirtualClock, settle


class World:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.turns = Turns(WallTimers(self.clock))
        self.done: list[str] = []

    def note(self, name: str) -> Callable[[], None]:
        return lambda: self.done.append(name)


async def test_what_is_due_at_once_lets_others_have_their_turn_in_between() -> None:
    world = World()
    for name in ("a", "b", "c"):
        world.turns.call_at(AT_ONCE_MS, world.note(name))
    for turn in range(8):
        await asyncio.sleep(0)
        world.done.append(str(turn))

    names = [index for index, done in enumerate(world.done) if done in "abc"]
    assert [done for done in world.done if done in ("a", "b", "c")] == ["a", "b", "c"]
    assert all(later - earlier > 1 for earlier, later in pairwise(names))


async def test_each_fires_at_its_own_moment() -> None:
    world = World()
    world.turns.call_at(world.clock.now_ms() + 20, world.note("later"))
    world.turns.call_at(world.clock.now_ms() + 10, world.note("sooner"))

    await world.clock.pass_time(9)
    assert world.done == []
    await world.clock.pass_time(1)
    assert world.done == ["sooner"]
    await world.clock.pass_time(10)
    assert world.done == ["sooner", "later"]


async def test_a_cancelled_call_is_not_made_be_it_due_already() -> None:
    world = World()
    at_ms = world.clock.now_ms() + 10
    early = world.turns.call_at(at_ms, world.note("cancelled before"))
    early.cancel()
    second = None

    def first() -> None:
        world.done.append("first")
        world.turns.call_at(AT_ONCE_MS, world.note("last"))

    world.turns.call_at(at_ms, first)
    second = world.turns.call_at(at_ms, world.note("cancelled while it waits"))
    world.clock._run_next(world.clock.monotonic_ms() + 10)  # the first fires,
    world.clock._run_next(world.clock.monotonic_ms() + 10)  # the second falls due and has to wait
    second.cancel()
    await settle()

    assert world.done == ["first", "last"]


async def test_a_callback_that_fails_does_not_keep_the_next_from_its_turn() -> None:
    world = World()

    def fail() -> None:
        raise ValueError("a bug")

    errors: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: errors.append(str(context["exception"]))
    )
    world.turns.call_at(AT_ONCE_MS, fail)
    world.turns.call_at(AT_ONCE_MS, world.note("next"))
    await settle()

    assert (errors, world.done) == (["a bug"], ["next"])

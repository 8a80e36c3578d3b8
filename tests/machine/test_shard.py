"""The shell: what it does with a step, and in which order. Its core here adds numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Union

import pytest

from pykafka_broker.machine.shard import TIMER_RETRY_MS, Prompt, Shard, ShardCore, ShardPorts
from pykafka_broker.machine.step import CancelTimer, Effect, Reply, SetTimer, Start, Step
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.testing.clock import VirtualClock


@dataclass(frozen=True)
class Add:
    """Add to the sum; answered with the new sum."""

    token: int
    number: int


@dataclass(frozen=True)
class Read:
    """Answered with the sum."""

    token: int


@dataclass(frozen=True)
class Do:
    """Have these effects."""

    effects: tuple[Effect, ...]


@dataclass(frozen=True)
class Fired:
    """A timer has fired: 100 is added."""

    key: Hashable
    now_ms: int


Event = Union[Add, Read, Do, Fired]


def transition(total: int, event: Event) -> Step[int]:
    match event:
        case Add(token, number):
            return Step(total + number, (f"+{number}",), (Reply(token, total + number),))
        case Read(token):
            return Step(total, effects=(Reply(token, total),))
        case Do(effects):
            return Step(total, effects=effects)
        case Fired():
            return Step(total + 100, (f"fired {event.key}",))


class World:
    """A shard over a log in memory that commits when it is told to, and fails when it is told to."""

    def __init__(self, *, commits_at_once: bool = False, early_ms: int = 0) -> None:
        self.clock = VirtualClock(early_ms=early_ms)
        self.log: list[object] = []
        self.commits_at_once = commits_at_once
        self.disk_error: KafkaError | None = None
        self.started: list[object] = []
        #: The moments at which timers have fired, as their events say it.
        self.fired_ms: list[int] = []
        self.shard: Shard[int, Event] = Shard(
            0,
            ShardCore(transition, self.fired),
            ShardPorts(self.append, WallTimers(self.clock), self.started.append),
        )

    def future(self, event: Callable[[int], Event]) -> asyncio.Future[Any]:
        """The answer to a request that is not answered at once."""
        answer = self.shard.ask(event)
        assert isinstance(answer, asyncio.Future)
        return answer

    def fired(self, key: Hashable, now_ms: int) -> Event:
        self.fired_ms.append(now_ms)
        return Fired(key, now_ms)

    def append(self, records: tuple[object, ...]) -> int:
        if self.disk_error is not None:
            raise self.disk_error
        self.log.extend(records)
        if self.commits_at_once:
            self.shard.on_commit(len(self.log))
        return len(self.log)


async def test_an_answer_waits_for_the_commit_of_its_records() -> None:
    world = World()

    answer = world.shard.ask(lambda token: Add(token, 5))
    assert (world.shard.state, world.log, answer.done()) == (5, ["+5"], False)
    world.shard.on_commit(1)

    assert answer.result() == 5


async def test_a_log_that_commits_while_it_appends_is_answered_at_once() -> None:
    world = World(commits_at_once=True)

    answer = world.shard.ask(lambda token: Add(token, 5))

    assert isinstance(answer, Prompt)
    assert (answer.result(), await answer, world.shard.waiting_count) == (5, 5, 0)


async def test_who_asks_while_the_shard_is_closed_under_it_is_told_so() -> None:
    world = World()
    closed = KafkaError(ErrorCode.NOT_COORDINATOR)

    def append(records: tuple[object, ...]) -> int:
        world.shard.close(closed)
        return 1

    world.shard._append = append
    with pytest.raises(KafkaError) as told:
        await world.shard.ask(lambda token: Add(token, 5))

    assert told.value is closed


async def test_an_answer_never_overtakes_an_earlier_write() -> None:
    world = World()
    write = world.shard.ask(lambda token: Add(token, 5))
    read = world.shard.ask(Read)
    assert not read.done()

    world.shard.on_commit(1)

    assert (write.result(), read.result()) == (5, 5)


async def test_a_commit_releases_only_what_it_covers() -> None:
    world = World()
    first = world.shard.ask(lambda token: Add(token, 1))
    second = world.shard.ask(lambda token: Add(token, 1))
    read = world.shard.ask(Read)

    world.shard.on_commit(1)
    assert (first.done(), second.done(), read.done()) == (True, False, False)
    world.shard.on_commit(1)
    world.shard.on_commit(2)

    assert read.result() == 2


async def test_a_core_may_answer_itself_when_its_records_are_refused() -> None:
    world = World()
    world.shard._refused_event = lambda event, error: (
        Read(event.token) if isinstance(event, Add) and event.number == 2 else None
    )
    world.disk_error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    refused = world.shard.ask(lambda token: Add(token, 2))
    failed = world.future(lambda token: Add(token, 3))

    assert (refused.result(), failed.exception(), world.shard.state) == (0, world.disk_error, 0)


async def test_a_failed_append_installs_nothing_and_is_the_callers_error() -> None:
    world = World()
    waiting = world.shard.ask(lambda token: Add(token, 1))
    world.disk_error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    failed = world.future(lambda token: Add(token, 2))

    assert failed.exception() is world.disk_error
    assert (world.shard.state, world.log, waiting.done(), world.shard.waiting_count) == (1, ["+1"], False, 1)
    world.disk_error = None
    world.shard.ask(lambda token: Add(token, 3))
    world.shard.on_commit(2)
    assert (world.shard.state, waiting.result()) == (4, 1)


async def test_a_caller_that_went_away_is_no_trouble() -> None:
    world = World()
    answer = world.future(lambda token: Add(token, 1))

    answer.cancel()
    world.shard.on_commit(1)

    assert world.shard.waiting_count == 0


async def test_a_timer_fires_once_at_its_moment() -> None:
    world = World()
    world.shard.tell(Do((SetTimer("t", world.clock.now_ms() + 10),)))

    world.clock.advance(9)
    assert world.log == []
    world.clock.advance(100)

    assert world.log == ["fired t"]


async def test_a_timer_that_comes_early_fires_as_at_its_moment() -> None:
    world = World(early_ms=1)
    due_ms = world.clock.now_ms() + 10
    world.shard.tell(Do((SetTimer("t", due_ms),)))

    world.clock.advance(9)

    assert (world.log, world.fired_ms) == (["fired t"], [due_ms])


async def test_timers_are_set_without_waiting_for_a_commit() -> None:
    world = World()
    world.shard.ask(lambda token: Add(token, 1))
    world.shard.tell(Do((SetTimer("t", world.clock.now_ms() + 10),)))

    world.clock.advance(10)

    assert world.log == ["+1", "fired t"]


async def test_a_timer_set_again_fires_only_at_the_new_moment_and_costs_no_new_handle() -> None:
    world = World()
    world.shard.tell(Do((SetTimer("t", world.clock.now_ms() + 10),)))
    for _ in range(100):
        world.shard.tell(Do((SetTimer("t", world.clock.now_ms() + 20),)))
    assert world.clock.pending_timers == 1

    world.clock.advance(19)
    assert world.log == []
    world.clock.advance(1)

    assert world.log == ["fired t"]


async def test_a_timer_can_be_set_earlier() -> None:
    world = World()
    world.shard.tell(Do((SetTimer("t", world.clock.now_ms() + 100),)))
    world.shard.tell(Do((SetTimer("t", world.clock.now_ms() + 10),)))

    world.clock.advance(10)
    assert world.log == ["fired t"]
    world.clock.advance(100)

    assert world.log == ["fired t"]


async def test_a_cancelled_timer_does_not_fire() -> None:
    world = World()
    world.shard.tell(Do((SetTimer("t", world.clock.now_ms() + 10), CancelTimer("t"), CancelTimer("none"))))

    world.clock.advance(10)

    assert (world.log, world.clock.pending_timers) == ([], 0)


async def test_a_timer_whose_records_could_not_be_appended_fires_again() -> None:
    world = World()
    world.shard.tell(Do((SetTimer("t", world.clock.now_ms() + 10),)))
    world.disk_error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    world.clock.advance(10)
    assert world.shard.state == 0

    world.disk_error = None
    world.clock.advance(TIMER_RETRY_MS)

    assert (world.shard.state, world.log) == (100, ["fired t"])


@pytest.mark.parametrize("by_ms", [-3_600_000, 3_600_000])
async def test_setting_the_wall_clock_moves_no_timer(by_ms: int) -> None:
    world = World()
    for key, duration_ms in ("t", 10), ("u", 10), ("u", 20):
        world.shard.tell(Do((SetTimer(key, world.clock.now_ms() + duration_ms),)))
    fired_ms = [max(world.clock.now_ms() + ms, world.clock.now_ms() + by_ms + ms) for ms in (10, 20)]
    world.clock.set_wall_clock(by_ms)

    world.clock.advance(19)
    assert world.log == ["fired t"]
    world.clock.advance(1)

    assert (world.log, world.fired_ms) == (["fired t", "fired u"], fired_ms)


async def test_a_timer_that_fires_again_does_so_by_a_clock_that_was_set_back_meanwhile() -> None:
    world = World()
    world.shard.tell(Do((SetTimer("t", world.clock.now_ms() + 10),)))
    world.disk_error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    world.clock.set_wall_clock(-3_600_000)
    world.clock.advance(10)

    world.disk_error = None
    world.clock.advance(TIMER_RETRY_MS)

    assert world.log == ["fired t"]


@pytest.mark.parametrize("by_ms", [-3_600_000, 3_600_000])
async def test_setting_the_wall_clock_moves_no_time_out(by_ms: int) -> None:
    world = World()
    first = world.future(lambda token: Add(token, 1))
    world.clock.advance(3_000)
    second = world.future(lambda token: Add(token, 1))
    world.clock.set_wall_clock(by_ms)

    world.clock.advance(2_000)
    assert (first.done(), second.done()) == (True, False)
    world.clock.advance(3_000)

    for answer in first, second:
        with pytest.raises(KafkaError, match="timed out"):
            answer.result()


async def test_work_waits_for_the_commit_like_answers_and_keeps_its_place() -> None:
    world = World()
    world.shard.ask(lambda token: Add(token, 1))
    world.shard.tell(Do((Start("hello"),)))
    assert world.started == []

    world.shard.on_commit(1)

    assert world.started == ["hello"]


async def test_work_waits_however_long_the_commit_takes_and_answers_behind_it_do_not() -> None:
    world = World()
    world.future(lambda token: Add(token, 1)).cancel()
    world.shard.tell(Do((Start("hello"),)))
    answer = world.shard.ask(Read)
    world.clock.advance(60_000)
    assert (world.started, answer.done()) == ([], True)
    with pytest.raises(KafkaError, match="timed out"):
        answer.result()

    world.shard.on_commit(1)
    assert world.started == ["hello"]


@pytest.mark.parametrize("early_ms", [0, 1])
async def test_a_commit_that_does_not_come_fails_the_answers_but_not_the_state(early_ms: int) -> None:
    world = World(early_ms=early_ms)
    late = world.future(lambda token: Add(token, 1))
    world.clock.advance(3_000)
    later = world.shard.ask(lambda token: Add(token, 1))

    world.clock.advance(2_000)
    error = late.exception()
    assert isinstance(error, KafkaError)
    assert (error.code, later.done()) == (ErrorCode.REQUEST_TIMED_OUT, False)
    world.shard.on_commit(2)

    assert later.result() == 2
    world.clock.advance(10_000)
    assert world.clock.pending_timers == 0


async def test_closing_fails_parked_requests_and_refuses_later_ones() -> None:
    world = World()
    parked = world.future(lambda token: Add(token, 1))
    world.shard.tell(Do((SetTimer("t", world.clock.now_ms() + 10),)))
    moved = KafkaError(ErrorCode.NOT_COORDINATOR)

    world.shard.close(moved)
    world.shard.close(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
    world.shard.on_commit(1)

    assert parked.exception() is moved
    assert world.future(Read).exception() is moved
    assert world.clock.pending_timers == 0
    with pytest.raises(KafkaError):
        world.shard.tell(Do(()))


async def test_a_bug_in_the_core_reaches_the_caller_and_leaves_the_shard_as_it_was() -> None:
    world = World()

    failed = world.future(lambda token: Do((1 / 0,)))  # type: ignore[arg-type]

    assert isinstance(failed.exception(), ZeroDivisionError)
    assert world.shard.waiting_count == 0

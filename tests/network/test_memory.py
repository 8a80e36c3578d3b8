"""The bound on requests of all connections: which wait, which go on, and that none waits forever."""

from __future__ import annotations

import random

from pykafka_broker.network.memory import DEFAULT_REQUEST_BYTES, RequestMemory, UnsentAnswers


class Holder:
    """A connection that grows and finishes on command."""

    def __init__(self, memory: RequestMemory) -> None:
        self.memory = memory
        self.held = 0
        self.is_empty = False
        self.waits = False

    def hold(self, held_bytes: int) -> None:
        self.held = held_bytes
        self.memory.holds(self, held_bytes)

    def give_back(self) -> int:
        if self.is_empty:
            self.held = 0
        return self.held

    def wait_for_memory(self) -> None:
        assert not self.waits
        self.waits = True

    def memory_available(self) -> None:
        assert self.waits
        self.waits = False


def holders(limit_bytes: int, count: int) -> tuple[RequestMemory, list[Holder]]:
    memory = RequestMemory(limit_bytes)
    return memory, [Holder(memory) for _ in range(count)]


def test_minus_one_means_our_own_bound() -> None:
    assert RequestMemory(-1).limit_bytes == DEFAULT_REQUEST_BYTES
    assert RequestMemory(123).limit_bytes == 123


def test_below_the_bound_no_connection_waits() -> None:
    memory, (a, b) = holders(100, 2)
    a.hold(60)
    b.hold(39)
    assert (memory.full, a.waits, b.waits) == (False, False, False)


def test_at_the_bound_the_first_goes_on_and_the_others_wait_their_turn() -> None:
    memory, (a, b, c) = holders(100, 3)
    a.hold(40)
    b.hold(60)
    c.hold(4)
    assert (memory.full, a.waits, b.waits, c.waits) == (True, False, True, True)

    a.hold(500)
    assert (b.waits, c.waits) == (True, True)

    a.hold(0)
    assert (b.waits, c.waits) == (False, False)


def test_when_the_first_has_finished_and_memory_is_still_short_only_the_next_goes_on() -> None:
    memory, (a, b, c) = holders(100, 3)
    a.hold(10)
    b.hold(200)
    c.hold(300)
    a.hold(0)
    assert (memory.full, b.waits, c.waits) == (True, False, True)
    b.hold(0)
    assert c.waits is False


def test_empty_buffers_are_taken_back_before_a_connection_has_to_wait() -> None:
    memory, (idle, busy) = holders(100, 2)
    idle.hold(60)
    idle.is_empty = True
    busy.hold(50)
    assert (memory.used_bytes, idle.waits, busy.waits) == (50, False, False)


def test_a_waiting_connection_whose_request_is_served_reads_again() -> None:
    memory, (a, b) = holders(100, 2)
    a.hold(50)
    b.hold(60)
    assert b.waits
    b.hold(0)
    assert (memory.used_bytes, b.waits) == (50, False)
    a.hold(0)
    assert memory.used_bytes == 0


def test_who_stands_still_anyway_does_not_keep_the_others_waiting() -> None:
    memory, (held_back, other) = holders(100, 2)
    held_back.hold(90)
    other.hold(90)
    assert (held_back.waits, other.waits) == (False, True)

    memory.stands_still(held_back)
    assert other.waits is False

    memory.moves_again(held_back)
    assert (held_back.waits, other.waits) == (True, False)
    other.hold(0)
    assert held_back.waits is False


def test_one_connection_can_always_go_on_and_the_sum_is_right() -> None:
    dice = random.Random(11)
    memory, some = holders(1_000, 12)
    still: set[Holder] = set()
    for _ in range(20_000):
        holder = dice.choice(some)
        if holder in still:
            still.discard(holder)
            memory.moves_again(holder)
        elif holder.held and dice.random() < 0.2:
            still.add(holder)
            memory.stands_still(holder)
        elif not holder.waits or dice.random() < 0.1:
            holder.hold(0 if holder.waits or dice.random() < 0.3 else holder.held + dice.randrange(400))
        assert memory.used_bytes == sum(one.held for one in some)
        willing = [one for one in some if one.held and one not in still]
        assert not willing or not all(one.waits for one in willing)
        assert memory.full or not any(one.waits for one in some)


def test_answers_get_a_share_of_what_is_left() -> None:
    unsent = UnsentAnswers(160_000_000)
    assert unsent.budget_bytes == 10_000_000
    unsent.count(144_000_000)
    assert unsent.budget_bytes == 1_000_000
    unsent.count(100_000_000)
    assert unsent.budget_bytes == 64 * 1024


def test_who_waits_to_answer_is_called_once_when_there_is_room() -> None:
    class Connection:
        called = 0

        def may_answer(self) -> None:
            self.called += 1

    unsent = UnsentAnswers(100)
    stays, leaves = Connection(), Connection()
    unsent.count(150)
    unsent.wait(stays)
    unsent.wait(leaves)
    unsent.forget(leaves)
    unsent.count(-40)
    assert stays.called == 0
    unsent.count(-40)
    unsent.count(-40)
    assert (stays.called, leaves.called) == (1, 0)

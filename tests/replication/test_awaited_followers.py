"""A follower finds a new leader soon, whatever it was waiting for there."""

from __future__ import annotations

from pykafka_broker.replication.awaited_followers import BRIEF_WAIT_MS, PATIENCE_MS, AwaitedFollowers
from pykafka_broker.testing.clock import VirtualClock

WAIT_MS = 500


class Led:
    """A partition led here, in which these followers have not fetched."""

    def __init__(self, awaited: set[int]) -> None:
        self.leader_epoch = 5
        self.awaited = awaited


def test_a_follower_is_awaited_until_it_has_fetched_from_the_new_leader() -> None:
    followers = AwaitedFollowers(VirtualClock())
    led = Led({2, 3})
    followers.lead(led)
    assert [followers.wait_ms(n, WAIT_MS) for n in (2, 3, 4)] == [BRIEF_WAIT_MS, BRIEF_WAIT_MS, WAIT_MS]
    led.awaited.remove(2)
    assert [followers.wait_ms(n, WAIT_MS) for n in (2, 3)] == [WAIT_MS, BRIEF_WAIT_MS]


def test_one_that_allows_a_shorter_wait_gets_it() -> None:
    followers = AwaitedFollowers(VirtualClock())
    followers.lead(Led({2}))
    assert followers.wait_ms(2, 1) == 1


def test_a_follower_that_does_not_come_is_not_awaited_for_long() -> None:
    clock = VirtualClock()
    followers = AwaitedFollowers(clock)
    followers.lead(Led({2}))
    clock.advance(PATIENCE_MS - 1)
    assert followers.wait_ms(2, WAIT_MS) == BRIEF_WAIT_MS
    clock.advance(1)
    assert followers.wait_ms(2, WAIT_MS) == WAIT_MS


def test_no_follower_is_awaited_in_an_epoch_that_is_over() -> None:
    followers = AwaitedFollowers(VirtualClock())
    led = Led({2})
    followers.lead(led)
    led.leader_epoch = 6
    assert followers.wait_ms(2, WAIT_MS) == WAIT_MS


def test_one_that_waits_already_is_told_once_for_all_leaderships_that_begin() -> None:
    followers = AwaitedFollowers(VirtualClock())
    told: list[str] = []
    followers.moves(2).on_advance.append(lambda: told.append("moved"))
    first, second = Led({2}), Led({2, 3})
    followers.lead(first)
    followers.lead(second)
    followers.lead(Led({3}))
    assert told == ["moved"]
    first.awaited.clear()
    assert followers.wait_ms(2, WAIT_MS) == BRIEF_WAIT_MS
    second.awaited.clear()
    assert followers.wait_ms(2, WAIT_MS) == WAIT_MS
    followers.lead(Led({2}))
    assert told == ["moved", "moved"]

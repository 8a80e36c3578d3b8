"""Why no further request of a connection may start, and how throttles end."""

from __future__ import annotations

from pykafka_broker.network.holds import HANDLING, SENDING, THROTTLED, Holds
from pykafka_broker.testing.clock import VirtualClock


class Freed:
    """Holds on a clock, and when the last one ended."""

    def __init__(self, early_ms: int = 0) -> None:
        self.clock = VirtualClock(early_ms=early_ms)
        self.at_ms: list[int] = []
        self.began_ms = self.clock.monotonic_ms()
        self.holds = Holds(self.clock, self._free)

    def _free(self) -> None:
        self.at_ms.append(self.clock.monotonic_ms() - self.began_ms)


async def test_requests_may_start_when_the_last_of_several_holds_has_ended() -> None:
    freed = Freed()
    freed.holds.reasons |= HANDLING | SENDING
    freed.holds.let_go(SENDING | THROTTLED)
    assert (freed.holds.reasons, freed.at_ms) == (HANDLING, [])
    freed.holds.let_go(HANDLING)
    freed.holds.let_go(HANDLING)
    assert freed.at_ms == [0]


async def test_the_longest_of_several_throttles_holds_and_has_the_only_timer() -> None:
    freed = Freed()
    for duration_ms in (500, 2_000, 1_000):
        freed.holds.throttle(duration_ms)
    assert freed.clock.pending_timers == 1
    assert freed.holds.why() == "the throttle of its client, which ends in 2000 ms"
    await freed.clock.pass_time(3_000)
    assert (freed.holds.reasons, freed.at_ms) == (0, [2_000])


async def test_a_throttle_ends_though_its_timer_comes_early() -> None:
    freed = Freed(early_ms=1)
    freed.holds.throttle(500)
    await freed.clock.pass_time(499)
    assert freed.at_ms == []
    await freed.clock.pass_time(1)
    assert freed.at_ms == [500]


async def test_a_lost_connection_leaves_no_timer() -> None:
    freed = Freed()
    freed.holds.throttle(1_000)
    freed.holds.close()
    freed.holds.throttle(1_000)
    assert freed.clock.pending_timers == 0

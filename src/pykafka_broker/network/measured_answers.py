"""The answers of a connection on a node with metrics, or one whose requests are watched: they are counted,
and some or all of them timed (`request_times.py`).

The clock is read when a round begins, and for a request that is timed when its answer is ready, and when it
is written or begins to wait. A request can be timed if it is the first of its round, or the one before it was
timed: it begins where that one ended, and its decoding counts to its handler.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import CLOSE, NO_RESPONSE
from pykafka_broker.apis.fetching.replica import replica_id_of
from pykafka_broker.network.answers import Answers, Slot
from pykafka_broker.network.request_times import Answered
from pykafka_broker.network.unanswered import asked_wait_ms
from pykafka_broker.system.histogram import record

if TYPE_CHECKING:
    from pykafka_broker.apis.context import Context
    from pykafka_broker.network.dispatch import Route
    from pykafka_broker.network.request_times import Times


class MeasuredAnswers(Answers):
    """Writes the answers of a connection, and records their times."""

    __slots__ = ("_last_ns", "_round_ns")

    measures = True

    @property
    def _watch(self) -> Callable[[Answered], None] | None:
        times = self._shared.times
        return None if times is None else times.watch

    def begin_round(self) -> None:
        self._round_ns = self._last_ns = perf_counter_ns()

    def add(self, route: Route, context: Context[Any], answer: Any, request: Any) -> int:
        times = route.times if route.follower_times is None else _times_of_fetch(route, request)
        if times is None:
            return Answers.add(self, route, context, answer, request)
        if answer is not CLOSE:
            route.count_errors(answer, times.errors)
        if not times.is_timed() or not self._last_ns:
            self._last_ns = 0
            return Answers.add(self, route, context, answer, request)
        ready_ns = perf_counter_ns()
        size = Answers.add(self, route, context, answer, request)
        self._answered_at_once(times, route, context, answer, ready_ns, perf_counter_ns())
        return size

    def add_none(self, route: Route, context: Context[Any]) -> None:
        times = route.times
        if times is None:
            return
        if times.is_timed() and self._last_ns:
            now_ns = perf_counter_ns()
            self._answered_at_once(times, route, context, NO_RESPONSE, now_ns, now_ns)
        else:
            self._last_ns = 0

    def _answered_at_once(
        self, times: Times, route: Route, context: Context[Any], answer: Any, ready_ns: int, sent_ns: int
    ) -> None:
        began_ns, handled_ns, self._last_ns = self._round_ns, self._last_ns, sent_ns
        times.answered(self.request_bytes, began_ns, handled_ns, ready_ns, sent_ns)
        throttle_ms = _record_throttle(times, answer)
        if (watch := self._watch) is not None:
            stages = (began_ns, handled_ns, ready_ns, ready_ns, sent_ns, sent_ns)
            watch(Answered(context, *stages, throttle_ms, 0, _first_error(route, answer)))

    def wait_for(
        self, later: Awaitable[Any], number: int, route: Route, context: Context[Any], request: Any, hold: int
    ) -> None:
        Answers.wait_for(self, later, number, route, context, request, hold)
        times = route.times if route.follower_times is None else _times_of_fetch(route, request)
        if times is None:
            return
        slot = self.slots[-1]
        slot.times = times
        if times.is_timed() and self._last_ns:
            slot.began_ns, slot.handled_ns, slot.waits_ns = self._round_ns, self._last_ns, perf_counter_ns()
            times.began(self.request_bytes, slot.began_ns, slot.handled_ns, slot.waits_ns)
            if self._watch is not None:
                slot.asked_wait_ms = asked_wait_ms(request, self._shared.knowledge)
            self._last_ns = slot.waits_ns
        else:
            self._last_ns = 0

    def _fill(self, slot: Slot, route: Route, context: Context[Any], answer: Any) -> int:
        if slot.times is None:
            return Answers._fill(self, slot, route, context, answer)
        if answer is not CLOSE and answer is not NO_RESPONSE:
            route.count_errors(answer, slot.times.errors)
        if not slot.began_ns:
            return Answers._fill(self, slot, route, context, answer)
        slot.ready_ns = perf_counter_ns()
        size = Answers._fill(self, slot, route, context, answer)
        slot.encoded_ns = perf_counter_ns()
        slot.throttle_ms = _record_throttle(slot.times, answer)
        if self._watch is not None:
            slot.error_code = _first_error(route, answer)
        return size

    def _slot_sent(self, slot: Slot) -> None:
        if slot.times is None or not slot.began_ns:
            return
        sent_ns = perf_counter_ns()
        slot.times.ended(slot.began_ns, slot.waits_ns, slot.ready_ns, slot.encoded_ns, sent_ns)
        if (watch := self._watch) is not None:
            stages = (slot.began_ns, slot.handled_ns, slot.waits_ns, slot.ready_ns, slot.encoded_ns, sent_ns)
            watch(Answered(slot.context, *stages, slot.throttle_ms, slot.asked_wait_ms, slot.error_code))


def _times_of_fetch(route: Route, request: Any) -> Times | None:
    if replica_id_of(request) < 0:
        return route.times
    route.follower_requests += 1
    return route.follower_times


def _first_error(route: Route, answer: Any) -> int:
    """The first error code in an answer, or in its parts; 0 without one."""
    errors: dict[int, int] = {}
    if answer is not CLOSE and answer is not NO_RESPONSE:
        route.count_errors(answer, errors)
    return next((code for code in errors if code), 0)


def _record_throttle(times: Times, answer: Any) -> int:
    throttle_ms: int = getattr(answer, "throttle_time_ms", 0)
    if throttle_ms:
        record(times.throttle, throttle_ms)
    return throttle_ms

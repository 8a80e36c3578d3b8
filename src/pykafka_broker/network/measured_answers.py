"""The answers of a connection on a node with metrics: how long each stage of a request took is recorded.

The clock is read when a round begins, when an answer is ready, and when it is written or has begun to wait.
So the next request of a round begins where the one before it ended, and its decoding counts to its handler.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.fetching.replica import replica_id_of
from pykafka_broker.machine.clock import processing_ns
from pykafka_broker.network.answers import Answers, Slot

if TYPE_CHECKING:
    from pykafka_broker.apis.context import Context
    from pykafka_broker.network.dispatch import Route
    from pykafka_broker.network.request_times import Times


class MeasuredAnswers(Answers):
    """Writes the answers of a connection, and records their times."""

    __slots__ = ("_last_ns", "_round_ns")

    measures = True

    def begin_round(self) -> None:
        self._round_ns = self._last_ns = processing_ns()
        super().begin_round()

    def add(self, route: Route, correlation_id: int, answer: Any, request: Any) -> int:
        times = _times_of(route, request)
        if times is None:
            return super().add(route, correlation_id, answer, request)
        ready_ns = processing_ns()
        size = super().add(route, correlation_id, answer, request)
        sent_ns = processing_ns()
        times.answered(self.request_bytes, self._round_ns, self._last_ns, ready_ns, sent_ns)
        self._last_ns = sent_ns
        route.count_errors(answer, times)
        return size

    def add_none(self, route: Route, request: Any) -> None:
        times = _times_of(route, request)
        if times is not None:
            now_ns = processing_ns()
            times.answered(self.request_bytes, self._round_ns, self._last_ns, now_ns, now_ns)
            self._last_ns = now_ns

    def wait_for(
        self, later: Awaitable[Any], number: int, route: Route, context: Context[Any], request: Any, hold: int
    ) -> None:
        super().wait_for(later, number, route, context, request, hold)
        times = _times_of(route, request)
        if times is not None:
            slot, now_ns = self.slots[-1], processing_ns()
            slot.times, slot.began_ns, slot.waits_ns = times, self._round_ns, now_ns
            times.began(self.request_bytes, self._round_ns, self._last_ns, now_ns)
            self._last_ns = now_ns

    def _fill(self, slot: Slot, route: Route, correlation_id: int, answer: Any) -> int:
        if slot.times is None:
            return super()._fill(slot, route, correlation_id, answer)
        slot.ready_ns = processing_ns()
        size = super()._fill(slot, route, correlation_id, answer)
        slot.encoded_ns = processing_ns()
        route.count_errors(answer, slot.times)
        return size


def _times_of(route: Route, request: Any) -> Times | None:
    if route.follower_times is not None and replica_id_of(request) >= 0:
        return route.follower_times
    return route.times

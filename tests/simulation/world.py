"""A clock that jumps from event to event, and the one source of chance of a seed."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush


class World:
    """Runs events in the order of their time; those of one moment in the order in which they were made.

    `transcript` collects a line for each thing that happens; None: nobody reads them.
    """

    def __init__(self, seed: int, *, transcript: list[str] | None = None) -> None:
        self.random = random.Random(seed)
        self.now_ms = 0
        self.transcript = transcript
        self.events = 0
        #: Called when all is done that was due at a moment, before time goes on.
        self.after_moment: Callable[[], None] = _nothing
        self._queue: list[tuple[int, int, Callable[[], object]]] = []
        self._made = 0
        #: What is due at this moment, behind all of `_queue` that is.
        self._soon: deque[Callable[[], object]] = deque()

    def at(self, delay_ms: int, action: Callable[[], object]) -> None:
        """Do something in `delay_ms`."""
        if delay_ms <= 0:
            self._soon.append(action)
        else:
            self._made += 1
            heappush(self._queue, (self.now_ms + delay_ms, self._made, action))

    def end(self) -> None:
        """Forget all events to come."""
        self._queue.clear()
        self._soon.clear()

    def note(self, line: Callable[[], str]) -> None:
        """Write a line of the transcript, if it is wanted."""
        if self.transcript is not None:
            self.transcript.append(f"{self.now_ms:>7} {line()}")

    def happens(self, probability: float) -> bool:
        """Throw the dice."""
        return probability > 0 and self.random.random() < probability

    def run_until(self, end_ms: int, is_done: Callable[[], bool] = lambda: False) -> bool:
        """Run events up to a time; return whether it was done before."""
        queue, soon = self._queue, self._soon
        while soon or (queue and queue[0][0] <= end_ms):
            if soon and not (queue and queue[0][0] <= self.now_ms):
                action = soon.popleft()
            else:
                if queue[0][0] > self.now_ms:
                    self.after_moment()
                self.now_ms, _, action = heappop(queue)
            self.events += 1
            action()
            if is_done():
                return True
        self.now_ms = max(self.now_ms, end_ms)
        return is_done()


def _nothing() -> None:
    """Nothing looks at the world."""

"""A clock that jumps from event to event, and the one source of chance of a seed."""

from __future__ import annotations

import random
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
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._made = 0

    def at(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do something in `delay_ms`."""
        self._made += 1
        heappush(self._queue, (self.now_ms + max(delay_ms, 0), self._made, action))

    def note(self, line: Callable[[], str]) -> None:
        """Write a line of the transcript, if it is wanted."""
        if self.transcript is not None:
            self.transcript.append(f"{self.now_ms:>7} {line()}")

    def happens(self, probability: float) -> bool:
        """Throw the dice."""
        return probability > 0 and self.random.random() < probability

    def run_until(self, end_ms: int, is_done: Callable[[], bool] = lambda: False) -> bool:
        """Run events up to a time; return whether it was done before."""
        while self._queue and self._queue[0][0] <= end_ms:
            self.now_ms, _, action = heappop(self._queue)
            self.events += 1
            action()
            if is_done():
                return True
        self.now_ms = max(self.now_ms, end_ms)
        return is_done()

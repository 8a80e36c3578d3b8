"""Copies of histograms that earlier scrapes have kept, so that quantiles are over the last minutes.

Each scrape compares a histogram with the newest copy that is at least `WINDOW_MS` old, or with the oldest
one.
"""

from __future__ import annotations

from collections import deque

WINDOW_MS = 300_000
#: A copy is kept once in this time.
COPY_MS = 60_000
_MOST_COPIES = WINDOW_MS // COPY_MS + 1


class Copies:
    """Copies of one histogram, oldest first: when it was made, the number of requests, and the buckets."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, int, list[int]]] = deque(maxlen=_MOST_COPIES)

    def since(self, now_ms: int, requests: int, histogram: list[int]) -> tuple[int, list[int]]:
        """The requests of the window that ends now, and their buckets."""
        kept = self._kept
        while len(kept) > 1 and kept[1][0] <= now_ms - WINDOW_MS:
            kept.popleft()
        _, requests_before, before = kept[0] if kept else (0, 0, None)
        now = list(histogram)
        if not kept or kept[-1][0] <= now_ms - COPY_MS:
            kept.append((now_ms, requests, now))
        if before is None:
            return requests, now
        return requests - requests_before, [new - old for new, old in zip(now, before, strict=True)]

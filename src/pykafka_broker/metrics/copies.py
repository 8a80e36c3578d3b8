"""Quantiles of histograms over the last minutes, from copies that earlier scrapes have kept.

Each scrape compares a histogram with the newest copy that is at least `WINDOW_MS` old, or with the oldest
one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from pykafka_broker.system.histogram import BUCKET_COUNT, middle_of

WINDOW_MS = 300_000
#: A copy is kept once in this time.
COPY_MS = 60_000
_MOST_COPIES = WINDOW_MS // COPY_MS + 1

#: Kafka's percentiles, as labels.
QUANTILES = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
_MIDDLES = [middle_of(bucket) for bucket in range(BUCKET_COUNT)]


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


def quantiles(count: int, buckets: list[int]) -> Iterator[tuple[str, float]]:
    """The quantiles of a histogram; values that no bucket has count as zero."""
    counted = [(0.0, max(0, count - sum(buckets)))]
    counted += [(_MIDDLES[bucket], count) for bucket, count in enumerate(buckets) if count]
    total = sum(count for _, count in counted)
    places = iter(counted)
    value, passed = next(places)
    for quantile in QUANTILES:
        wanted = float(quantile) * total
        while passed < wanted and (following := next(places, None)) is not None:
            value, passed = following[0], passed + following[1]
        yield quantile, value

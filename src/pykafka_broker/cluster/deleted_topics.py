"""The topics that were just deleted, so that the first requests for each can be answered "unknown".

A client that waits until a deleted topic is gone asks for its metadata repeatedly. With the defaults of most
clients each of these requests also creates a missing topic, so the first of them must be answered "unknown"
before the topic is created again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

#: How long a deleted topic is remembered; clients that wait for a deletion ask more often.
REMEMBERED_MS = 60_000
#: How long requests are answered "unknown" after the first one for a deleted topic. A client may ask twice at
#: once, for its user and for itself (librdkafka does), and its user must learn of the deletion. Apache Kafka
#: also answers "unknown" for a while, because it creates topics in the background.
UNKNOWN_MS = 100
#: The most deleted topics to remember, the newest ones: 3 MB of the longest names.
REMEMBERED_TOPICS = 10_000


class DeletedTopics:
    """The topics deleted in the last `REMEMBERED_MS`, each until `UNKNOWN_MS` after its first request."""

    def __init__(self) -> None:
        #: When each topic is forgotten, soonest first.
        self._until_ms: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._until_ms)

    def add(self, names: Iterable[str], now_ms: int) -> None:
        """Remember topics deleted at `now_ms` of a monotonic clock."""
        self._forget_old(now_ms)
        for name in names:
            self._until_ms.pop(name, None)
            self._until_ms[name] = now_ms + REMEMBERED_MS
        while len(self._until_ms) > REMEMBERED_TOPICS:
            self._until_ms.popitem(last=False)

    def is_unknown(self, name: str, now_ms: int) -> bool:
        """Whether to answer a request for this topic "unknown"; the first request starts `UNKNOWN_MS`."""
        until_ms = self._until_ms.get(name, now_ms)
        if until_ms > now_ms + UNKNOWN_MS:
            self._until_ms[name] = now_ms + UNKNOWN_MS
            self._until_ms.move_to_end(name, last=False)
        return until_ms > now_ms

    def _forget_old(self, now_ms: int) -> None:
        while self._until_ms:
            oldest = next(iter(self._until_ms))
            if self._until_ms[oldest] > now_ms:
                return
            del self._until_ms[oldest]

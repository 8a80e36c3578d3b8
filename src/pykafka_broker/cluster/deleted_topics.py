"""The topics that were just deleted, so that the first requests for each can be answered "unknown".

A client that waits until a deleted topic is gone asks for its metadata again and again. With the defaults of
most clients each of these requests also creates the topic if it is missing, so the first of them have to be
answered before the topic is created anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

#: The time for which a deleted topic is remembered: clients that wait for a deletion ask more often than
#: that.
REMEMBERED_MS = 60_000
#: From the first request for a deleted topic on, all are answered "unknown" for so long: a client may ask
#: twice at once, for its user and for itself (librdkafka does), and its user has to be told. Apache Kafka,
#: which creates topics in the background, answers the same for a while.
UNKNOWN_MS = 100
#: The number of deleted topics to remember, the newest ones: 3 MB of the longest names.
REMEMBERED_TOPICS = 10_000


class DeletedTopics:
    """The topics deleted last, for `REMEMBERED_MS`, and for `UNKNOWN_MS` after the first request for one."""

    def __init__(self) -> None:
        #: When each is to be forgotten, soonest first.
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
        """Whether a request for this topic, which may be the first one, is to be answered "unknown"."""
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

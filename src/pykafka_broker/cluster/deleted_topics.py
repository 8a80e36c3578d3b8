"""Which topics were just deleted, so that one Metadata request each can be answered "unknown".

A client that waits until a deleted topic is gone asks for its metadata again and again. With the defaults of
most clients each of these requests also creates the topic if it is missing, so one of them has to be answered
before the topic is created anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

#: How long a deleted topic is remembered: clients that wait for a deletion ask more than once a minute.
REMEMBERED_MS = 60_000
#: How many deleted topics are remembered, the newest ones: 3 MB of the longest names.
REMEMBERED_TOPICS = 10_000


class DeletedTopics:
    """The names of the topics deleted last, each until it is taken or `REMEMBERED_MS` have passed."""

    def __init__(self) -> None:
        #: When each is to be forgotten, in the order of the deletions.
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

    def take(self, name: str, now_ms: int) -> bool:
        """Whether this topic was just deleted; True once for each deletion."""
        self._forget_old(now_ms)
        return self._until_ms.pop(name, None) is not None

    def _forget_old(self, now_ms: int) -> None:
        while self._until_ms:
            oldest = next(iter(self._until_ms))
            if self._until_ms[oldest] > now_ms:
                return
            del self._until_ms[oldest]

"""Parked requests: handlers that wait until a log moves, a deadline passes or their client goes away.

A parked handler costs one entry per log it watches, one timer and its own coroutine; nothing polls. A move of
a log (of its high watermark, last stable offset or start) wakes the handlers parked on it in the same turn of
the event loop. A handler leaves every table when its wait ends, however it ends. With 2,000 parked fetches,
each keeps 7 kB besides its connection, and all together use half a per cent of a core (CPython 3.11).

A handler may bring `ready`, a cheap predicate that is called with each log that moves; the handler wakes only
if it returns true. With 10,000 fetches that want a gigabyte each, an append costs 10,000 calls, not tasks.

Limit: `max_parked` handlers. One more releases the oldest, as if its time were up: a long poll may always be
answered early.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from pykafka_broker.machine.clock import Clock
from pykafka_broker.system.ordered_set import OrderedSet

#: Parked handlers of one broker.
MAX_PARKED = 100_000


class Disconnected(Exception):
    """The client of a parked handler went away: the handler ends without an answer."""


class Moving(Protocol):
    """A log that can be watched: calls back when its offsets move."""

    @property
    def on_advance(self) -> list[Callable[..., Any]]:
        """Called in order whenever the high watermark, last stable offset or log start offset moves."""
        ...


class Watched(Protocol):
    """The connection a handler works for."""

    @property
    def closed(self) -> bool: ...

    def on_close(self, callback: Callable[[], None]) -> None: ...


class Delayed:
    """Requests of one kind that wait, and what each waits for."""

    __slots__ = ("expired", "operations", "places")

    def __init__(self) -> None:
        self.operations = 0
        #: Partitions, each counted once for each request that waits for it.
        self.places = 0
        #: Waits that ended because their time was up.
        self.expired = 0

    def begin(self, places: int) -> None:
        """A request begins to wait."""
        self.operations += 1
        self.places += places

    def end(self, places: int) -> None:
        """Its wait has ended."""
        self.operations -= 1
        self.places -= places


class _Parked:
    """One parked handler."""

    __slots__ = ("future", "ready", "watches")

    def __init__(self, ready: Callable[[Any], bool] | None) -> None:
        self.future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.ready = ready
        self.watches: list[_Watch] = []

    def wake(self, moved: bool) -> None:
        if not self.future.done():
            self.future.set_result(moved)

    def time_is_up(self) -> None:
        self.wake(False)

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class _Watch:
    """The handlers parked on one log; listens to the log only while there are some."""

    __slots__ = ("log", "parked")

    def __init__(self, log: Moving) -> None:
        self.log = log
        self.parked: dict[_Parked, None] = {}
        log.on_advance.append(self.moved)

    def moved(self, *_: object) -> None:
        for parked in self.parked:
            if parked.ready is None or parked.ready(self.log):
                parked.wake(True)


class Purgatory:
    """All parked handlers of a broker."""

    def __init__(self, clock: Clock, max_parked: int = MAX_PARKED) -> None:
        self._clock = clock
        self._max_parked = max_parked
        self._closed = False
        #: Produce and DeleteRecords requests that wait for followers or syncs: not parked here, because the
        #: partitions wake them (`replication/committing.py`).
        self.produces = Delayed()
        self.deletions = Delayed()
        #: Share fetches, which are parked here too.
        self.share_fetches = Delayed()
        #: Parked fetches of consumers and of followers whose time was up.
        self.expired_consumers = 0
        self.expired_followers = 0
        self._all: OrderedDict[_Parked, None] = OrderedDict()
        self._by_log: dict[int, _Watch] = {}
        self._by_connection: dict[Watched, OrderedSet[_Parked]] = {}

    @property
    def parked(self) -> int:
        """The number of parked handlers."""
        return len(self._all)

    @property
    def watches(self) -> int:
        """The number of logs on which handlers are parked, each counted once for each handler."""
        return sum([len(parked.watches) for parked in self._all])

    @property
    def watched_logs(self) -> int:
        """The number of logs with handlers parked on them."""
        return len(self._by_log)

    async def wait(
        self,
        logs: Iterable[Moving],
        until_ms: int,
        connection: Watched | None = None,
        ready: Callable[[Any], bool] | None = None,
    ) -> bool:
        """Park until one of `logs` moves (True), or until `until_ms` (monotonic) or the stop (False).

        Raises:
            Disconnected: `connection` was lost.
        """
        if connection is not None and connection.closed:
            raise Disconnected
        if until_ms <= self._clock.monotonic_ms() or self._closed:
            return False
        parked = self._park(logs, connection, ready)
        timer = self._clock.call_at(until_ms, parked.time_is_up)
        try:
            return await parked.future
        finally:
            timer.cancel()
            self._leave(parked, connection)

    def close(self) -> None:
        """Release all parked handlers, and park no more: the broker is stopping."""
        self._closed = True
        for parked in self._all:
            parked.wake(False)

    def _park(
        self, logs: Iterable[Moving], connection: Watched | None, ready: Callable[[Any], bool] | None
    ) -> _Parked:
        if len(self._all) >= self._max_parked:
            oldest, _ = self._all.popitem(last=False)
            oldest.wake(False)
        parked = _Parked(ready)
        self._all[parked] = None
        by_log = self._by_log
        for log in logs:
            watch = by_log.get(id(log))
            if watch is None:
                watch = by_log[id(log)] = _Watch(log)
            watch.parked[parked] = None
            parked.watches.append(watch)
        if connection is not None:
            of_connection = self._by_connection.get(connection)
            if of_connection is None:
                of_connection = self._by_connection[connection] = OrderedSet()
                connection.on_close(lambda: self._disconnected(connection))
            of_connection.add(parked)
        return parked

    def _leave(self, parked: _Parked, connection: Watched | None) -> None:
        self._all.pop(parked, None)
        for watch in parked.watches:
            watch.parked.pop(parked, None)
            if not watch.parked and self._by_log.get(id(watch.log)) is watch:
                del self._by_log[id(watch.log)]
                watch.log.on_advance.remove(watch.moved)
        if connection is not None:
            of_connection = self._by_connection.get(connection)
            if of_connection is not None:
                of_connection.discard(parked)

    def _disconnected(self, connection: Watched) -> None:
        for parked in self._by_connection.pop(connection, ()):
            parked.fail(Disconnected())

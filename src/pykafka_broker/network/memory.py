"""The memory of unfinished requests and unsent answers, bounded over all connections.

Apache Kafka reserves a request's announced size before it reads the request, and by default without a bound.
Here memory is charged as bytes arrive, and there is always a bound: `queued.max.request.bytes`, or
`DEFAULT_REQUEST_BYTES` when that is -1.

Charging by arrival can end with many half-read requests and no room to finish any. So when the bound is
reached, every connection that holds part of a request stops reading except one, the owner, which may exceed
the bound by the one request it is reading. When the owner has finished, the next connection in line goes on.
So the bound is exceeded by at most one request, plus a few kilobytes per connection before it stops reading.
"""

from __future__ import annotations

from typing import Protocol

#: The bound when queued.max.request.bytes is -1.
DEFAULT_REQUEST_BYTES = 256 * 1024 * 1024
#: The bound on answers that peers have not read yet, over all connections.
DEFAULT_UNSENT_BYTES = 256 * 1024 * 1024


class Holder(Protocol):
    """A connection that holds part of a request."""

    def give_back(self) -> int:
        """Free the buffer if it is empty; return the number of bytes still held."""
        ...

    def wait_for_memory(self) -> None:
        """Stop reading."""
        ...

    def memory_available(self) -> None:
        """Go on reading."""
        ...


class Answering(Protocol):
    """A connection that has a request whose answer may be large."""

    def may_answer(self) -> None:
        """Start that request in a later turn of the event loop."""
        ...


class RequestMemory:
    """The bytes of requests, unfinished or not started yet, that connections hold."""

    __slots__ = ("_held", "_owner", "_still", "_waiting", "limit_bytes", "used_bytes")

    def __init__(self, limit_bytes: int = -1) -> None:
        self.limit_bytes = limit_bytes if limit_bytes > 0 else DEFAULT_REQUEST_BYTES
        self.used_bytes = 0
        self._held: dict[Holder, int] = {}
        #: The one connection that may go on while the bound is reached.
        self._owner: Holder | None = None
        self._waiting: dict[Holder, None] = {}
        #: Connections that stopped reading for a reason of their own.
        self._still: set[Holder] = set()

    @property
    def full(self) -> bool:
        """True while the bound is reached: only one connection goes on with a large request."""
        return self.used_bytes >= self.limit_bytes

    def holds(self, holder: Holder, held_bytes: int) -> None:
        """Count that `holder` now holds `held_bytes`; connections may be told to wait or to go on."""
        was_full = self.full
        self._count(holder, held_bytes)
        if self.full and not was_full:
            for other in list(self._held):
                self._count(other, other.give_back())
        if self.full:
            for other in (holder,) if was_full else list(self._held):
                self._stop_unless_owner(other)
        self._let_go_on()

    def stands_still(self, holder: Holder) -> None:
        """`holder` stopped reading for a reason of its own: another connection may be the owner."""
        self._still.add(holder)
        if holder is self._owner:
            self._owner = None
        self._forget_waiting(holder)
        self._let_go_on()

    def moves_again(self, holder: Holder) -> None:
        """`holder` reads again, in its turn."""
        self._still.discard(holder)
        if self.full:
            self._stop_unless_owner(holder)

    def _count(self, holder: Holder, held_bytes: int) -> None:
        self.used_bytes += held_bytes - self._held.get(holder, 0)
        if held_bytes:
            self._held[holder] = held_bytes
            return
        self._held.pop(holder, None)
        if holder is self._owner:
            self._owner = None
        self._still.discard(holder)
        # A waiting connection may have held a whole request that has now started.
        self._forget_waiting(holder)

    def _forget_waiting(self, holder: Holder) -> None:
        if holder in self._waiting:
            del self._waiting[holder]
            holder.memory_available()

    def _stop_unless_owner(self, holder: Holder) -> None:
        if holder not in self._held or holder in self._waiting or holder in self._still:
            return
        if self._owner is None:
            self._owner = holder
        elif holder is not self._owner:
            self._waiting[holder] = None
            holder.wait_for_memory()

    def _let_go_on(self) -> None:
        waiting = self._waiting
        while waiting and (self._owner is None or not self.full):
            holder = next(iter(waiting))
            del waiting[holder]
            if self.full:
                self._owner = holder
            holder.memory_available()


class UnsentAnswers:
    """The bytes of answers that peers have not read.

    While the bound is reached, requests whose answers carry records do not start; all others do. The sweep
    disconnects peers that do not read, which ends this state.
    """

    __slots__ = ("_waiting", "limit_bytes", "used_bytes")

    def __init__(self, limit_bytes: int = DEFAULT_UNSENT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._waiting: dict[Answering, None] = {}

    @property
    def full(self) -> bool:
        """True while the bound is reached."""
        return self.used_bytes >= self.limit_bytes

    @property
    def budget_bytes(self) -> int:
        """The most bytes that one more answer should have: a sixteenth of the rest, at least 64 KiB."""
        return max(64 * 1024, (self.limit_bytes - self.used_bytes) // 16)

    def count(self, change_bytes: int) -> None:
        """Count bytes as unsent, or as sent if negative."""
        self.used_bytes += change_bytes
        if self._waiting and self.used_bytes < self.limit_bytes:
            waiting, self._waiting = self._waiting, {}
            for connection in waiting:
                connection.may_answer()

    def wait(self, connection: Answering) -> None:
        """Call `connection.may_answer` once unsent answers are below the bound."""
        self._waiting[connection] = None

    def forget(self, connection: Answering) -> None:
        """`connection` is gone."""
        self._waiting.pop(connection, None)

"""The bytes of requests that one connection holds, and whether it reads more.

Counted are requests that are unfinished or have not started. A connection stops reading if more than
`read_ahead_bytes` wait for requests to start, or if the requests of all connections reach the memory bound
(`memory.py`). At the bound it does not stay the one that goes on if its next request may not start.
"""

from __future__ import annotations

import asyncio

from pykafka_broker.network.patience import Patience
from pykafka_broker.network.shared import Shared
from pykafka_broker.protocol.frames import FrameReader


class MemoryAccount:
    """The account of one open connection; the request memory knows it as a `Holder`."""

    __slots__ = (
        "_memory",
        "_patience",
        "_read_ahead_bytes",
        "_reader",
        "_transport",
        "is_ahead",
        "is_reading",
        "lacks_memory",
        "request_bytes",
    )

    def __init__(
        self, transport: asyncio.Transport, reader: FrameReader, patience: Patience, shared: Shared
    ) -> None:
        self._transport = transport
        self._reader = reader
        self._patience = patience
        self._memory = shared.request_memory
        self._read_ahead_bytes = shared.limits.read_ahead_bytes
        #: Bytes of requests, as last reported to the request memory.
        self.request_bytes = 0
        self.is_reading = True
        # The two reasons not to read.
        self.is_ahead = False
        self.lacks_memory = False

    def count_requests(self) -> None:
        """Count the bytes held of requests; an empty buffer is freed while the memory bound is reached."""
        memory, reader = self._memory, self._reader
        if memory.full:
            reader.release()
        held_bytes = reader.held_bytes
        if held_bytes != self.request_bytes:
            self.request_bytes = held_bytes
            memory.holds(self, held_bytes)

    def stand_still(self) -> None:
        """No request may start: stop reading if more than `read_ahead_bytes` are pending, or any bytes while
        memory is short.
        """
        most_bytes = 0 if self._memory.full else self._read_ahead_bytes
        if not self.is_ahead and self._reader.pending_bytes > most_bytes:
            self.is_ahead = True
            self._read_or_not()
            self._memory.stands_still(self)

    def has_caught_up(self) -> None:
        """Requests start again: go on reading."""
        self.is_ahead = False
        self._memory.moves_again(self)
        self._read_or_not()

    def give_back(self) -> int:
        """Free the buffer if it is empty; returns how many bytes are still held."""
        self._reader.release()
        self.request_bytes = self._reader.held_bytes
        return self.request_bytes

    def wait_for_memory(self) -> None:
        """Stop reading: the requests of all connections reach the memory bound."""
        self.lacks_memory = True
        self._read_or_not()

    def memory_available(self) -> None:
        """Go on reading."""
        self.lacks_memory = False
        self._patience.arriving_since_ms = None
        self._read_or_not()

    def _read_or_not(self) -> None:
        """Read, or stop reading, as the two reasons say."""
        may_read = not self.is_ahead and not self.lacks_memory
        if may_read != self.is_reading and not self._transport.is_closing():
            self.is_reading = may_read
            if may_read:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

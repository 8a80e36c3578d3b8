"""One connection's use of the memory that all connections share, and whether it reads.

Three amounts are counted: bytes of requests that are unfinished or have not started, answers that wait for
their turn behind others, and answers the peer has not read. A connection stops reading for either of two
reasons: it has read far enough ahead of requests that may not start yet, or the requests of all connections
take all the memory they may (`memory.py`).
"""

from __future__ import annotations

import asyncio

from pykafka_broker.network.memory import RequestMemory, UnsentAnswers
from pykafka_broker.network.patience import Patience
from pykafka_broker.protocol.frames import FrameReader


class Account:
    """The account of one connection; the request memory knows it as a `Holder`."""

    __slots__ = (
        "_patience",
        "_queued_bytes",
        "_reader",
        "_request_memory",
        "_transport",
        "_unsent",
        "is_ahead",
        "is_reading",
        "lacks_memory",
        "request_bytes",
        "unsent_bytes",
    )

    def __init__(
        self,
        reader: FrameReader,
        patience: Patience,
        request_memory: RequestMemory,
        unsent: UnsentAnswers,
    ) -> None:
        self._reader = reader
        self._patience = patience
        self._request_memory = request_memory
        self._unsent = unsent
        self._transport: asyncio.Transport
        #: Bytes of requests, as far as the request memory has been told.
        self.request_bytes = 0
        #: Answers the peer has not read, as far as the transport or a sweep has said.
        self.unsent_bytes = 0
        #: Bytes in memory of answers whose turn has not come.
        self._queued_bytes = 0
        self.is_reading = True
        # Why it may not read.
        self.is_ahead = False
        self.lacks_memory = False

    @property
    def queued_bytes(self) -> int:
        """The bytes in memory of answers whose turn has not come."""
        return self._queued_bytes

    def opens(self, transport: asyncio.Transport) -> None:
        """The connection is made."""
        self._transport = transport

    def closes(self) -> None:
        """The connection is lost: it holds nothing any more."""
        self.count_requests()
        self.set_unsent(0)
        self.count_queued(-self._queued_bytes)

    # Requests.

    def count_requests(self) -> None:
        """Count the bytes held of requests; an empty buffer is kept only while memory is plenty."""
        memory, reader = self._request_memory, self._reader
        if memory.full:
            reader.release()
        held_bytes = reader.held_bytes
        if held_bytes != self.request_bytes:
            self.request_bytes = held_bytes
            memory.holds(self, held_bytes)

    def reads_too_far_ahead(self) -> None:
        """Stop reading until requests start again."""
        self.is_ahead = True
        self._read_or_not()
        self._request_memory.stands_still(self)

    def has_caught_up(self) -> None:
        """Requests start again: go on reading."""
        self.is_ahead = False
        self._request_memory.moves_again(self)
        self._read_or_not()

    def give_back(self) -> int:
        """Free the buffer if it is empty just now; returns how many bytes are still held."""
        self._reader.release()
        self.request_bytes = self._reader.held_bytes
        return self.request_bytes

    def wait_for_memory(self) -> None:
        """Requests of all connections take all the memory they may: stop reading."""
        self.lacks_memory = True
        self._read_or_not()

    def memory_available(self) -> None:
        """Go on reading."""
        self.lacks_memory = False
        self._patience.nothing_arrives()
        self._read_or_not()

    def _read_or_not(self) -> None:
        """Read as long as there is no reason not to."""
        may_read = not self.is_ahead and not self.lacks_memory
        if may_read != self.is_reading and not self._transport.is_closing():
            self.is_reading = may_read
            if may_read:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    # Answers.

    def set_unsent(self, unsent_bytes: int) -> None:
        """Count the answers that the peer has not read."""
        change_bytes = unsent_bytes - self.unsent_bytes
        self.unsent_bytes = unsent_bytes
        self._unsent.count(change_bytes)

    def count_queued(self, change_bytes: int) -> None:
        """Count so much more, or less, of answers whose turn has not come."""
        self._queued_bytes += change_bytes
        self._unsent.count(change_bytes)

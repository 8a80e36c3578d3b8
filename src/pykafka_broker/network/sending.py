"""Answers on their way to one peer: from memory, or read from a log while they are sent.

An answer without stored bytes goes straight to the transport, unless one with stored bytes is still being
sent: then it queues here. An answer with stored bytes goes out piece by piece, each when the transport has
sent the one before: a peer that reads slowly keeps one piece in memory, however much it asked for.

Limits: the transport's high water mark and one piece in memory, and `PIECES_PER_TURN` in one turn of the
event loop, so that other connections do not wait for a peer that reads as fast as we send.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.compile import StoredBytes

#: A MiB, which takes about as long as an expensive handler.
PIECES_PER_TURN = 4
IN_MEMORY = (bytes, bytearray, memoryview)


class Sender:
    """The queue of one connection.

    `on_sent` is called when everything was handed to the transport, `on_failed` when announced bytes cannot
    be read from disk: then the connection has to be closed.
    """

    __slots__ = ("_on_failed", "_on_sent", "_parts", "_paused", "_transport", "_waits")

    def __init__(
        self,
        transport: asyncio.Transport,
        on_sent: Callable[[], None],
        on_failed: Callable[[BaseException], None],
    ) -> None:
        self._transport = transport
        self._on_sent = on_sent
        self._on_failed = on_failed
        self._parts: deque[Buffer | StoredBytes] = deque()
        self._paused = False
        #: Whether it waits for a piece from the disk, or for the next turn of the event loop.
        self._waits = False

    @property
    def busy(self) -> bool:
        """True while something waits here for its turn."""
        return bool(self._parts)

    @property
    def left_bytes(self) -> int:
        """The bytes that wait here."""
        return sum(map(len, self._parts)) if self._parts else 0

    def send(self, parts: Iterable[Buffer | StoredBytes]) -> None:
        """Send these after all that was sent before."""
        was_busy = bool(self._parts)
        self._parts.extend(parts)
        if not was_busy:
            self._go_on()

    def pause(self) -> None:
        """The transport's buffer is full."""
        self._paused = True

    def resume(self) -> None:
        """The transport takes more."""
        self._paused = False
        if self._parts and not self._waits:
            self._go_on()

    def drop(self) -> None:
        """The peer is gone."""
        self._parts.clear()

    def _go_on(self) -> None:
        parts, transport = self._parts, self._transport
        pieces_left = PIECES_PER_TURN
        while parts and not self._paused:
            if transport.is_closing():
                parts.clear()
                return
            part = parts[0]
            if isinstance(part, IN_MEMORY):
                parts.popleft()
                transport.write(part)
                continue
            if not pieces_left:
                self._waits = True
                asyncio.get_running_loop().call_soon(self._take_turn)
                return
            pieces_left -= 1
            piece = part.take_cached()
            if piece is None:
                self._waits = True
                asyncio.ensure_future(part.take()).add_done_callback(self._piece_read)
                return
            self._hand_on(part, piece)
        if not parts:
            self._on_sent()

    def _hand_on(self, part: StoredBytes, piece: Buffer) -> None:
        if not len(part):
            self._parts.popleft()
        self._transport.write(piece)

    def _take_turn(self) -> None:
        self._waits = False
        self._go_on()

    def _piece_read(self, reading: asyncio.Future[Buffer]) -> None:
        self._waits = False
        if reading.cancelled() or not self._parts:
            return
        error = reading.exception()
        if error is not None:
            self._parts.clear()
            self._on_failed(error)
            return
        part = self._parts[0]
        assert not isinstance(part, IN_MEMORY)
        self._hand_on(part, reading.result())
        self._go_on()

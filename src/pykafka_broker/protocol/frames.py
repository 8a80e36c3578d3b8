"""Framing: a stream of bytes cut into Kafka's frames, without I/O and with as little copying as possible.

A frame is a 4-byte big-endian length and that many bytes of request or response:

    +---------------+----------------------------+
    | length: int32 | length bytes               |
    +---------------+----------------------------+

`FrameReader` is fed as an `asyncio.BufferedProtocol`: `get_buffer()` returns the buffer for the next bytes,
`received(n)` says how many came, `next_frame()` returns the complete frames one by one, and `settle()` ends
the round. Frames are writable memoryviews into the buffer; they are valid until `settle()`.

Where the bytes are kept:

* A reader that holds no bytes reads into the `Landing`, one buffer that all readers of an event loop share:
  no other reader runs between `get_buffer()` and `settle()` of a round. Most rounds hold whole frames, which
  are served from the landing; an idle connection owns no buffer at all.
* A small rest (a part of a frame, or frames that may not be served yet) is kept as exactly its bytes, which
  are copied in front of the next bytes that land. A peer that announces 100 MB and then sends nothing costs
  only the bytes it sent.
* A large rest moves once into a buffer of the reader's own, which doubles with the bytes received, and never
  grows by the announced length. Reading stops at the end of a large frame, so the next one starts at the
  front of the buffer, and a steady flow of large frames is never moved. The buffer is freed when frames have
  become small, or by `release()` when the connection is idle.

A length of zero or less, or above the limit, raises `ProtocolError` before anything is allocated.
"""

from __future__ import annotations

from struct import Struct

from pykafka_broker.protocol.errors import ProtocolError

LENGTH = Struct(">i")
LENGTH_BYTES = 4

#: The most bytes that one round receives when nothing is pending.
LANDING_BYTES = 256 * 1024
#: A rest of up to this many bytes is kept as bytes and copied to the landing; a larger one gets a buffer.
SMALL_REST_BYTES = 16 * 1024
#: If more than this is missing from a frame, reading stops at its end, so that no later bytes must be moved.
LARGE_FRAME_BYTES = 64 * 1024
#: A reader frees its own buffer after this many rounds with only small frames.
SMALL_ROUNDS_BEFORE_RELEASE = 32

_unpack_length = LENGTH.unpack_from


class Landing:
    """The receive buffer shared by all readers of one event loop."""

    __slots__ = ("view",)

    def __init__(self, size_bytes: int = LANDING_BYTES) -> None:
        if size_bytes < 2 * SMALL_REST_BYTES:
            raise ValueError(f"a landing of {size_bytes} bytes cannot take a small rest and what follows it")
        self.view = memoryview(bytearray(size_bytes))


class FrameReader:
    """Cuts the bytes of one connection into frames of at most `max_frame_bytes`."""

    __slots__ = (
        "_end",
        "_landing",
        "_last_large",
        "_own",
        "_own_bytes",
        "_rest",
        "_small_rounds",
        "_start",
        "_view",
        "held_bytes",
        "max_frame_bytes",
    )

    def __init__(self, landing: Landing, max_frame_bytes: int) -> None:
        self.max_frame_bytes = max_frame_bytes
        #: The memory this reader holds between rounds.
        self.held_bytes = 0
        self._landing = landing.view
        #: The small rest of the last round.
        self._rest = b""
        #: The reader's own buffer, while it receives large frames.
        self._own: memoryview | None = None
        self._own_bytes = 0
        self._small_rounds = 0
        self._last_large = 0
        #: Unconsumed bytes of this round are `_view[_start:_end]`.
        self._view = self._landing
        self._start = 0
        self._end = 0

    @property
    def pending_bytes(self) -> int:
        """Bytes received and not yet handed out as frames."""
        return len(self._rest) or self._end - self._start

    @property
    def pending(self) -> memoryview:
        """The bytes received and not yet handed out, to inspect between two rounds."""
        return memoryview(self._rest) if self._rest else self._view[self._start : self._end]

    def get_buffer(self) -> memoryview:
        """Return the buffer for the next bytes, never empty. Calling it changes nothing if no bytes come."""
        own = self._own
        if own is None:
            rest = self._rest
            if not rest:
                return self._landing
            size = len(rest)
            self._landing[:size] = rest
            return self._landing[size:]
        end = self._end
        if not end:
            return own[: self._last_large] if self._last_large else own
        missing = self._missing_bytes()
        room = self._own_bytes - end
        if not room or (self._start and missing > room):
            own = self._make_room()
            end = self._end
            room = self._own_bytes - end
        if LARGE_FRAME_BYTES < missing < room:
            return own[end : end + missing]
        return own[end:]

    def received(self, size: int) -> None:
        """`size` bytes were put at the front of the buffer that `get_buffer()` returned."""
        self._end += size
        if self._rest:
            self._end += len(self._rest)
            self._rest = b""
            self.held_bytes = 0

    def land(self) -> None:
        """Begin a round without new bytes: frames kept back by the last `settle()` can be taken now."""
        if self._rest:
            self.get_buffer()
            self.received(0)

    def next_frame(self) -> memoryview | None:
        """The next complete frame without its length, or None until more bytes come.

        Raises:
            ProtocolError: the announced length cannot be a frame's.
        """
        start = self._start + LENGTH_BYTES
        if start > self._end:
            return None
        (length,) = _unpack_length(self._view, start - LENGTH_BYTES)
        if not 0 < length <= self.max_frame_bytes:
            raise ProtocolError(self._invalid(length))
        stop = start + length
        if stop > self._end:
            return None
        self._start = stop
        if length > LARGE_FRAME_BYTES:
            self._small_rounds = 0
            self._last_large = min(length + LENGTH_BYTES, self._own_bytes)
        return self._view[start:stop]

    def put_back(self, frame: memoryview) -> None:
        """Return `frame`, the last one handed out, again from the next `next_frame()`."""
        self._start -= LENGTH_BYTES + len(frame)

    def settle(self) -> None:
        """End the round: keep the bytes not consumed; frames handed out become invalid."""
        if self._own is None:
            size = self._end - self._start
            if size:
                self._keep(size)
            else:
                self._start = self._end = 0
        elif self._start == self._end:
            self._start = self._end = 0
            self._small_rounds += 1
            if self._small_rounds > SMALL_ROUNDS_BEFORE_RELEASE:
                self.release()

    def release(self) -> None:
        """Free the reader's own buffer if it is empty."""
        if self._own is not None and self._start == self._end:
            self._own = None
            self._own_bytes = self.held_bytes = 0
            self._last_large = 0
            self._view = self._landing
            self._start = self._end = 0

    def close(self) -> None:
        """Drop all bytes and buffers."""
        self._start = self._end = 0
        self._rest = b""
        self.held_bytes = 0
        self.release()

    def _missing_bytes(self) -> int:
        """The number of missing bytes of the first pending frame; 0 if unknown."""
        pending = self._end - self._start
        if pending < LENGTH_BYTES:
            return 0
        (length,) = _unpack_length(self._view, self._start)
        if not 0 < length <= self.max_frame_bytes:
            return 0
        return max(0, int(length) + LENGTH_BYTES - pending)

    def _keep(self, size: int) -> None:
        """Save the unconsumed end of the landing, which the next reader will overwrite."""
        rest = self._landing[self._start : self._end]
        if size <= SMALL_REST_BYTES:
            self._rest = bytes(rest)
            self.held_bytes = size
            self._start = self._end = 0
            return
        self._use(2 * size, rest)

    def _make_room(self) -> memoryview:
        """Move the pending bytes to the front, into twice the space if they fill more than half of it."""
        assert self._own is not None
        size = self._end - self._start
        pending = self._own[self._start : self._end]
        if 2 * size > self._own_bytes:
            return self._use(2 * self._own_bytes, pending)
        self._own[:size] = pending
        self._start, self._end = 0, size
        return self._own

    def _use(self, size_bytes: int, pending: memoryview) -> memoryview:
        """Take a new buffer, with `pending` at its front."""
        size = len(pending)
        own = memoryview(bytearray(size_bytes))
        own[:size] = pending
        self._own = self._view = own
        self._own_bytes = self.held_bytes = size_bytes
        self._small_rounds = 0
        self._start, self._end = 0, size
        return own

    def _invalid(self, length: int) -> str:
        if length <= 0:
            return f"Invalid receive (size = {length})"
        foreign = foreign_protocol(LENGTH.pack(length))
        seems = f"; the peer seems to speak {foreign}" if foreign else ""
        return f"Invalid receive (size = {length} larger than {self.max_frame_bytes}){seems}"


def foreign_protocol(first: bytes) -> str:
    """The protocol that begins with these four bytes, for clients on the wrong port; empty if unknown."""
    if first[:2] in (b"\x16\x03", b"\x15\x03"):  # a handshake; an alert, which answers bytes that are no TLS
        return "TLS"
    if first in (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"PRI ", b"HTTP"):
        return "HTTP"
    return ""

"""Bytes of the protocol from the client's side: requests become frames, received bytes become responses.

    frame = request_frame(MetadataRequest(topics=None), 13, correlation_id=1, client_id="me")
    response = read_response(METADATA, 13, frame_that_came_back)

`FrameCutter` cuts a stream into frames: `get_buffer()` gives the buffer for the next bytes, `received(n)`
says how many came, and `next_frame()` returns the complete frames one by one, without their lengths. Each
frame has memory of its own, so records in a decoded response stay valid. With the smallest landing, of
`LENGTH_BYTES`, it never asks for a byte beyond the current frame: all later bytes are still in the socket.
With a larger landing, one receive can bring many small frames. A frame that does not fit into the landing is
received straight into its own memory.
"""

from __future__ import annotations

from typing import Any

from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.compile import decode, encode, encode_parts
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.fields import api_key_of
from pykafka_broker.protocol.frames import LENGTH, LENGTH_BYTES, foreign_protocol
from pykafka_broker.protocol.messages import response_type
from pykafka_broker.protocol.messages.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from pykafka_broker.system.named_tuple import NamedTuple

#: A longer frame is no response. Fetch responses may be as large as their requests allow.
MAX_RESPONSE_BYTES = 256 * 1024 * 1024

_unpack_length = LENGTH.unpack_from


def has_response(request: object) -> bool:
    """Whether a broker answers this request: all but Produce with acks=0."""
    return getattr(request, "acks", None) != 0


# -- requests
# -----------


def request_header(api_key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The header of a request, also of a version that does not exist."""
    header = RequestHeader(
        request_api_key=api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return encode(header, request_header_version(api_key, version))


def framed(payload: Buffer) -> bytes:
    """`payload` with its length in front."""
    return b"".join((LENGTH.pack(len(payload)), payload))


def request_frame(
    request: object, version: int, correlation_id: int = 1, client_id: str | None = None
) -> bytes:
    """A request as it goes on the wire.

    Raises:
        ValueError, struct.error: a value does not fit its field.
    """
    parts = [
        request_header(api_key_of(request), version, correlation_id, client_id),
        *encode_parts(request, version),
    ]
    return b"".join((LENGTH.pack(sum(map(len, parts))), *parts))


# -- responses
# ------------


class Response(NamedTuple):
    """A decoded response, and where in its frame it ends."""

    correlation_id: int
    message: Any
    end: int


def correlation_id_of(frame: Buffer) -> int:
    """The correlation id of a response.

    Raises:
        ProtocolError: the frame is too short.
    """
    if len(frame) < LENGTH_BYTES:
        raise ProtocolError(f"a response of {len(frame)} bytes has no header")
    correlation_id: int = _unpack_length(frame)[0]
    return correlation_id


def read_response(api_key: int, version: int, frame: Buffer) -> Response:
    """The response in a frame.

    Raises:
        ProtocolError: it is malformed.
    """
    header, body = decode(ResponseHeader, response_header_version(api_key, version), frame)
    message, end = decode(response_type(api_key), version, frame, body)
    return Response(header.correlation_id, message, end)


class FrameCutter:
    """Cuts the bytes that `peer` sends into frames of at most `max_frame_bytes`."""

    __slots__ = ("_end", "_filled", "_frame", "_landing", "_start", "max_frame_bytes", "peer")

    def __init__(
        self, peer: str, landing_bytes: int = LENGTH_BYTES, max_frame_bytes: int = MAX_RESPONSE_BYTES
    ) -> None:
        #: The sender of the bytes, for errors.
        self.peer = peer
        self.max_frame_bytes = max_frame_bytes
        #: Received and not handed out yet: `_landing[_start:_end]`.
        self._landing = memoryview(bytearray(max(landing_bytes, LENGTH_BYTES)))
        self._start = self._end = 0
        #: A frame that did not fit into the landing, and how many bytes of it have come.
        self._frame: bytearray | None = None
        self._filled = 0

    def get_buffer(self) -> memoryview:
        """The buffer for the next bytes; never empty once `next_frame()` has returned None."""
        if self._frame is not None:
            return memoryview(self._frame)[self._filled :]
        return self._landing[self._end :]

    def received(self, size: int) -> None:
        """`size` bytes were put at the front of the buffer that `get_buffer()` returned."""
        if self._frame is not None:
            self._filled += size
        else:
            self._end += size

    def next_frame(self) -> Buffer | None:
        """The next complete frame without its length, or None until more bytes come.

        Raises:
            ProtocolError: the announced length cannot be a frame's.
        """
        frame = self._frame
        if frame is not None:
            if self._filled < len(frame):
                return None
            self._frame = None
            return frame
        landing, start, end = self._landing, self._start, self._end
        if end - start < LENGTH_BYTES:
            if start:
                landing[: end - start] = bytes(landing[start:end])
                self._start, self._end = 0, end - start
            return None
        (length,) = _unpack_length(landing, start)
        if not 0 < length <= self.max_frame_bytes:
            raise ProtocolError(self._refused(bytes(landing[start : start + LENGTH_BYTES])))
        start += LENGTH_BYTES
        stop = start + length
        if stop <= end:
            self._start = stop
            return bytes(landing[start:stop])
        self._frame = bytearray(length)
        self._filled = end - start
        self._frame[: self._filled] = landing[start:end]
        self._start = self._end = 0
        return None

    def _refused(self, first: bytes) -> str:
        foreign = foreign_protocol(first)
        seems = f", and seems to speak {foreign}" if foreign else ""
        return f"{self.peer} announces a response of {LENGTH.unpack(first)[0]} bytes{seems}"

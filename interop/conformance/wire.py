"""One blocking connection to a broker: frames out, frames in, each answer with the request it belongs to."""

from __future__ import annotations

import contextlib
import socket
import struct
from dataclasses import dataclass
from typing import Any, Self

from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.messages import response_type
from pykafka_broker.protocol.messages.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)

#: Longer than any answer that a conversation waits for: a broker that has not answered by then will not.
ANSWER_TIMEOUT_S = 60.0


class Closed(Exception):
    """The broker closed the connection instead of answering."""


class NoAnswer(Exception):
    """The broker neither answered nor closed the connection in time."""


@dataclass(frozen=True)
class Answer:
    """A decoded response, and whether its bytes were those that our own encoder makes of it."""

    message: Any
    as_declared: bool


class Wire:
    """Frames over TCP. Nothing is interpreted but the length and the headers."""

    def __init__(self, address: str, client_id: str | None) -> None:
        host, _, port = address.rpartition(":")
        self._use(socket.create_connection((host, int(port)), timeout=ANSWER_TIMEOUT_S), client_id)

    @classmethod
    def over(cls, connected: socket.socket) -> Self:
        """The same over a connection that somebody else made."""
        wire = cls.__new__(cls)
        wire._use(connected, None)
        return wire

    def _use(self, connected: socket.socket, client_id: str | None) -> None:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connected
        self.client_id = client_id
        self.correlation_id = 0

    def send(self, request: Any, version: int) -> int:
        """Send a request message; its correlation id."""
        self.correlation_id += 1
        self.send_frame(
            header(request.api_key, version, self.correlation_id, self.client_id) + encode(request, version)
        )
        return self.correlation_id

    def send_frame(self, frame: bytes) -> None:
        self.send_bytes(struct.pack(">i", len(frame)) + frame)

    def send_bytes(self, data: bytes) -> None:
        """Whatever it is, without a length in front. Who reads the answer notices a broken connection."""
        with contextlib.suppress(ConnectionError):
            self.socket.sendall(data)

    def receive(self, timeout_s: float = ANSWER_TIMEOUT_S) -> bytes:
        """The next frame, header and all.

        Raises:
            Closed: there is none, the connection has ended.
            NoAnswer: nothing came in time.
        """
        (length,) = struct.unpack(">i", self._exactly(4, timeout_s))
        return self._exactly(length, timeout_s)

    def _exactly(self, size: int, timeout_s: float) -> bytes:
        self.socket.settimeout(timeout_s)
        data = bytearray()
        try:
            while len(data) < size:
                received = self.socket.recv(size - len(data))
                if not received:
                    raise Closed
                data += received
        except TimeoutError:
            raise NoAnswer from None
        except ConnectionError:
            raise Closed from None
        return bytes(data)

    def close(self) -> None:
        self.socket.close()


def header(api_key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    return encode(
        RequestHeader(
            request_api_key=api_key,
            request_api_version=version,
            correlation_id=correlation_id,
            client_id=client_id,
        ),
        request_header_version(api_key, version),
    )


def correlation_id_of(frame: bytes) -> int:
    (correlation_id,) = struct.unpack_from(">i", frame)
    return int(correlation_id)


def read_answer(api_key: int, version: int, frame: bytes) -> Answer:
    """The response in `frame`."""
    head, body = decode(ResponseHeader, response_header_version(api_key, version), frame)
    message, end = decode(response_type(api_key), version, frame, body)
    again = encode(head, response_header_version(api_key, version)) + encode(message, version)
    return Answer(message, as_declared=end == len(frame) and again == frame)

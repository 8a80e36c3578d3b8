"""One blocking connection to a broker: frames out, frames in, each answer with the request it belongs to."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from typing import Any, Self

from pykafka_broker.client.blocking import FrameSocket, Tls, connect
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.client.core.frames import framed, read_response, request_frame
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.messages.headers import ResponseHeader, response_header_version

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
    """Frames over a connected socket. Nothing is interpreted but the length and the headers."""

    def __init__(self, connected: socket.socket, client_id: str | None) -> None:
        self.socket = connected
        self.client_id = client_id
        self.correlation_id = 0
        self._frames = FrameSocket(connected, "the peer")

    @classmethod
    def to(cls, address: str, client_id: str | None, tls: Tls | None = None) -> Self:
        """Connect to a broker."""
        return cls(connect(parse_address(address), ANSWER_TIMEOUT_S, tls), client_id)

    def send(self, request: Any, version: int) -> int:
        """Send a request message; its correlation id."""
        self.correlation_id += 1
        self.send_bytes(request_frame(request, version, self.correlation_id, self.client_id))
        return self.correlation_id

    def send_frame(self, frame: Buffer) -> None:
        self.send_bytes(framed(frame))

    def send_bytes(self, data: bytes) -> None:
        """Send these bytes without a length in front. `receive` notices a broken connection."""
        with contextlib.suppress(ConnectionError):
            self._frames.send_bytes(data)

    def receive(self, timeout_s: float = ANSWER_TIMEOUT_S) -> Buffer:
        """The next frame, header and all.

        Raises:
            Closed: there is none, the connection has ended.
            NoAnswer: nothing came in time.
        """
        self.socket.settimeout(timeout_s)
        try:
            return self._frames.receive()
        except TimeoutError:
            raise NoAnswer from None
        except ConnectionError:
            raise Closed from None

    def close(self) -> None:
        self.socket.close()


def read_answer(api_key: int, version: int, frame: Buffer) -> Answer:
    """The response in `frame`."""
    response = read_response(api_key, version, frame)
    header = ResponseHeader(correlation_id=response.correlation_id)
    again = encode(header, response_header_version(api_key, version)) + encode(response.message, version)
    return Answer(response.message, as_declared=response.end == len(frame) and again == frame)

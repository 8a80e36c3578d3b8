"""A blocking connection that keeps the bytes of the last exchange."""

from __future__ import annotations

import socket
import struct
import time
from typing import Any

from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.messages import response_type
from pykafka_broker.protocol.messages.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from pykafka_broker.protocol.schema import api_key_of

CLIENT_ID = "golden"


class Kafka:
    """A blocking connection that keeps the bytes of the last exchange."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.correlation_id = 0
        self.request_frame = self.response_frame = b""

    def call(self, request: Any, version: int) -> Any:
        """Send `request` and return the response message."""
        api_key = api_key_of(request)
        self.correlation_id += 1
        header = RequestHeader(
            request_api_key=api_key,
            request_api_version=version,
            correlation_id=self.correlation_id,
            client_id=CLIENT_ID,
        )
        frame = encode(header, request_header_version(api_key, version)) + encode(request, version)
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        (length,) = struct.unpack(">i", self._receive(4))
        self.request_frame, self.response_frame = frame, self._receive(length)
        _, pos = decode(ResponseHeader, response_header_version(api_key, version), self.response_frame)
        response, _ = decode(response_type(api_key), version, self.response_frame, pos)
        return response

    def _receive(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            received = self.socket.recv(length - len(data))
            if not received:
                raise ConnectionError("the broker closed the connection")
            data += received
        return data

    def call_until_ok(self, request: Any, version: int) -> None:
        """Repeat while the broker is still electing, creating or loading something."""
        for _ in range(100):
            answer = repr(self.call(request, version))
            if "error_code=0" in answer and not any(
                f"error_code={code}," in answer for code in (3, 5, 6, 14, 15, 16)
            ):
                return
            time.sleep(0.1)
        raise TimeoutError(f"{request} is never answered without an error: {answer}")

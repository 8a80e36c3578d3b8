"""A blocking connection that keeps the bytes of the last exchange."""

from __future__ import annotations

import time
from typing import Any

from pykafka_broker.client.blocking import FrameSocket, connect
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.client.core.frames import framed, read_response, request_header
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.fields import api_key_of

CLIENT_ID = "golden"


class Kafka:
    """A blocking connection that keeps the bytes of the last exchange."""

    def __init__(self, address: str) -> None:
        self._frames = FrameSocket(connect(parse_address(address)), address)
        self._correlation_id = 0
        #: Without their lengths.
        self.request_frame = self.response_frame = b""

    def call(self, request: Any, version: int) -> Any:
        """Send `request` and return the response message."""
        api_key = api_key_of(request)
        self._correlation_id += 1
        header = request_header(api_key, version, self._correlation_id, CLIENT_ID)
        self.request_frame = header + encode(request, version)
        self._frames.send_bytes(framed(self.request_frame))
        self.response_frame = bytes(self._frames.receive())
        return read_response(api_key, version, self.response_frame).message

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

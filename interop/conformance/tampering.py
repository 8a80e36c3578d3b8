"""A proxy before a broker that changes answers on their way: how the comparison is shown to notice.

`Tampering(broker's address, change)` listens on an address of its own. `change(api_key, version, message)`
gets each decoded response and returns the message to pass on (which it may have changed in place), the bytes
to send in place of its body, or None to close the connection. One request at a time, each with an answer.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any, Self

from interop.conformance.wire import Closed, NoAnswer, Wire
from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.messages import response_type
from pykafka_broker.protocol.messages.headers import ResponseHeader, response_header_version

Change = Callable[[int, int, Any], Any]


class Tampering:
    def __init__(self, address: str, change: Change) -> None:
        self.broker_address = address
        self.change = change
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.accepting = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self.accepting.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.accepting.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, accepted: socket.socket) -> None:
        client, broker = Wire.over(accepted), Wire(self.broker_address, None)
        with contextlib.suppress(Closed, NoAnswer), contextlib.closing(client), contextlib.closing(broker):
            while True:
                request = client.receive()
                broker.send_frame(request)
                changed = self._changed(request, broker.receive())
                if changed is None:
                    return
                client.send_frame(changed)

    def _changed(self, request: bytes, response: bytes) -> bytes | None:
        api_key, version = struct.unpack_from(">hh", request)
        header_version = response_header_version(api_key, version)
        head, body = decode(ResponseHeader, header_version, response)
        message, _ = decode(response_type(api_key), version, response, body)
        changed = self.change(api_key, version, message)
        if changed is None:
            return None
        return encode(head, header_version) + (
            changed if isinstance(changed, bytes) else encode(changed, version)
        )

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
from pykafka_broker.client.core.frames import read_response
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.compile import encode
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
        client, broker = Wire(accepted, None), Wire.to(self.broker_address, None)
        with contextlib.suppress(Closed, NoAnswer), contextlib.closing(client), contextlib.closing(broker):
            while True:
                request = client.receive()
                broker.send_frame(request)
                changed = self._changed(request, broker.receive())
                if changed is None:
                    return
                client.send_frame(changed)

    def _changed(self, request: Buffer, response: Buffer) -> bytes | None:
        api_key, version = struct.unpack_from(">hh", request)
        answer = read_response(api_key, version, response)
        changed = self.change(api_key, version, answer.message)
        if changed is None:
            return None
        header = ResponseHeader(correlation_id=answer.correlation_id)
        body = changed if isinstance(changed, bytes) else encode(changed, version)
        return encode(header, response_header_version(api_key, version)) + body

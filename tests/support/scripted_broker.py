"""A socket that plays a broker: a test says what it answers to each request, down to the bytes."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pykafka_broker.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

#: API key, version and correlation id of a request -> the bytes to send; None hangs up.
Answer = Callable[[int, int, int], bytes | None]
#: Starts a broker that answers like this; its address.
Serve = Callable[[Answer], str]


@contextmanager
def scripted_brokers() -> Iterator[Serve]:
    """Serves one connection per script, until either side has enough of it."""
    servers: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def run(answer: Answer) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)
        thread = threading.Thread(target=_serve_one, args=(server, answer))
        thread.start()
        threads.append(thread)
        return f"127.0.0.1:{server.getsockname()[1]}"

    yield run
    for thread in threads:
        thread.join()
    for server in servers:
        server.close()


def _serve_one(server: socket.socket, answer: Answer) -> None:
    server.settimeout(60)
    connection, _ = server.accept()
    with connection, suppress(ConnectionError):
        while head := connection.recv(4, socket.MSG_WAITALL):
            size = struct.unpack(">i", head)[0]
            request = connection.recv(size, socket.MSG_WAITALL)
            response = answer(*struct.unpack_from(">hhi", request))
            if response is None:
                return
            connection.sendall(response)


def response_frame(correlation_id: int, body: bytes) -> bytes:
    """A response with header v0."""
    payload = struct.pack(">i", correlation_id) + body
    return struct.pack(">i", len(payload)) + payload


def versions(*apis: tuple[int, int, int], error_code: int = 0) -> ApiVersionsResponse:
    """What a broker says that serves these APIs: key, lowest and highest version."""
    keys = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in apis]
    return ApiVersionsResponse(error_code=error_code, api_keys=keys)

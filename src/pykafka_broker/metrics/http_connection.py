"""One client of a metrics listener: requests in, pages out, one after the other.

    /metrics         all samples (`exposition.py`), slice by slice as the client reads them
    /health/live     200: the event loop runs
    /health/ready    200, or 503 with the reason as text (`health.py`)
    /explain         what the node has decided lately about a group, producer, partition or client, and what a
                     client waits for (`explanations.py`), as JSON: `?kind=group&name=orders`

/explain tells names, principals and addresses of clients, and a listener of metrics knows no users. So only
listeners on a loopback address serve it, to those who are on the machine; and not to a page of a browser
there that has another host name point to that address (the Host header must be a loopback address, too).

The sweep closes a connection whose request does not arrive, or whose client does not read, within
`PATIENCE_MS`, and one that has been idle for `IDLE_MS`.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import cast
from urllib.parse import parse_qs, urlsplit

from pykafka_broker.machine.history import Kind
from pykafka_broker.metrics.explanations import explained
from pykafka_broker.metrics.exposition import CONTENT_TYPE, exposition
from pykafka_broker.metrics.health import why_not_ready
from pykafka_broker.metrics.http_request import BadRequest, Request, read_request
from pykafka_broker.metrics.node_parts import NodeParts
from pykafka_broker.network.connection_factory import Accepted, NewConnection
from pykafka_broker.network.shared import Shared
from pykafka_broker.system.host_text import is_loopback

PATIENCE_MS = 10_000
IDLE_MS = 120_000
#: Bytes that are kept while an answer is under way; more stop the reading.
MOST_PENDING_BYTES = 16 * 1024
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


class HttpConnections:
    """The connection factory of a metrics listener; `node` returns the parts of the node."""

    def __init__(self, shared: Shared, node: Callable[[], NodeParts]) -> None:
        self._shared = shared
        self.node = node

    def __call__(self, accepted: Accepted) -> NewConnection:
        connection = HttpConnection(self._shared, self.node(), accepted)
        return NewConnection(connection, connection)


class HttpConnection(asyncio.Protocol):
    """Serves one client."""

    def __init__(self, shared: Shared, node: NodeParts, accepted: Accepted) -> None:
        self.listener_name = accepted.listener_name
        self.peer_host = accepted.peer[0]
        #: When a sweep last saw something move.
        self.idle_since_ms = shared.clock.monotonic_ms()
        self.stalled_since_ms: int | None = None
        self._shared = shared
        self._node = node
        self._accepted = accepted
        self._on_close: list[Callable[[], None]] = []
        self._received = bytearray()
        self._transport: asyncio.Transport
        #: The answer under way.
        self._answering: asyncio.Task[None] | None = None
        #: Set while the client reads what is sent.
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._is_last = False
        self._is_lost = False
        self._has_moved = False

    def __repr__(self) -> str:
        return f"{self.listener_name} from {self.peer_host}:{self._accepted.peer[1]}"

    # asyncio's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._shared.connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._has_moved = True
        self._received += data
        if self._answering is None:
            self._serve()
        elif len(self._received) > MOST_PENDING_BYTES:
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._has_moved = True
        self._may_write.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._may_write.set()
        self._shared.connections.discard(self)
        callbacks, self._on_close = self._on_close, []
        for callback in callbacks:
            callback()
        self._accepted.on_lost()

    # The listener's side.

    @property
    def unsent_bytes(self) -> int:
        """Bytes that the client has not read."""
        return self._transport.get_write_buffer_size()

    def check(self, now_ms: int) -> None:
        """Close the connection if its client takes too long."""
        if self._has_moved:
            self._has_moved = False
            self.idle_since_ms = now_ms
        is_waiting = self._received or self._answering is not None
        if now_ms - self.idle_since_ms >= (PATIENCE_MS if is_waiting else IDLE_MS):
            self.abort()

    def drop_unread(self) -> None:
        """Close it because unread answers take too much memory."""
        self.abort()

    def finish(self) -> None:
        """Serve no further request, and close when the answer under way is sent."""
        self._is_last = True
        if self._answering is None:
            self._transport.close()

    def abort(self) -> None:
        """Close now."""
        self._transport.abort()

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection is lost."""
        if self._is_lost:
            callback()
        else:
            self._on_close.append(callback)

    # Requests.

    def _serve(self) -> None:
        """Answer the requests that have arrived, up to one whose answer is made in slices."""
        while not self._is_last:
            try:
                request = read_request(self._received)
            except BadRequest as error:
                self._is_last = True
                self._answer(error.status, HTTPStatus(error.status).phrase)
                break
            if request is None:
                return
            self._is_last = not request.keeps_alive
            if request.path == "/metrics" and request.method == "GET":
                self._answering = asyncio.get_running_loop().create_task(self._send_metrics(request))
                return
            self._answer_page(request)
        self._transport.close()

    def _answer_page(self, request: Request) -> None:
        status, text, others, content_type = 200, "ok", "", TEXT
        if request.path == "/explain":
            status, text = self._explained(request)
            content_type = JSON if status == 200 else TEXT
        elif request.path == "/health/ready":
            if (reason := why_not_ready(self._node)) is not None:
                status, text = 503, reason
        elif request.path == "/metrics":
            text = ""
        elif request.path != "/health/live":
            status, text = 404, "Served are /metrics, /health/live, /health/ready and /explain"
        if request.method not in ("GET", "HEAD"):
            status, text, others = 405, "Served are GET and HEAD", "Allow: GET, HEAD\r\n"
        self._answer(status, text, others, content_type, has_body=request.method != "HEAD")

    def _explained(self, request: Request) -> tuple[int, str]:
        """The status and the text of an explanation: JSON if the status is 200."""
        if not (is_loopback(_host_of(self.listener_name)) and is_loopback(_host_of(f"//{request.host}"))):
            return 403, "/explain is served on loopback addresses only, such as http://127.0.0.1:9404"
        asked = parse_qs(request.query)
        kind, name = asked.get("kind", [""])[0], asked.get("name", [""])[0]
        if kind not in set(Kind) or not name:
            return 400, f"Ask for ?kind={'|'.join(Kind)}&name=NAME"
        return 200, json.dumps(explained(self._node, Kind(kind), name))

    def _answer(
        self, status: int, text: str, others: str = "", content_type: str = TEXT, *, has_body: bool = True
    ) -> None:
        body = f"{text}\n".encode()
        head = self._head(status, content_type, f"{others}Content-Length: {len(body)}\r\n")
        self._transport.write(head + body if has_body else head)

    def _head(self, status: int, content_type: str, others: str) -> bytes:
        connection = "close" if self._is_last else "keep-alive"
        return (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {content_type}\r\n"
            f"Cache-Control: no-store\r\nConnection: {connection}\r\n{others}\r\n"
        ).encode("latin-1")

    async def _send_metrics(self, request: Request) -> None:
        """Send the page slice by slice; between two slices the event loop serves others."""
        transport, chunks = self._transport, request.takes_chunks
        if not chunks:
            self._is_last = True
        try:
            transport.write(self._head(200, CONTENT_TYPE, "Transfer-Encoding: chunked\r\n" if chunks else ""))
            for part in exposition(self._node):
                if part:
                    data = part.encode()
                    transport.writelines(_chunk(data) if chunks else (data,))
                await asyncio.sleep(0)
                await self._may_write.wait()
                if self._is_lost:
                    return
            if chunks:
                transport.write(b"0\r\n\r\n")
        except Exception as error:  # the client learns from the missing end that the page is not complete
            self._shared.complaints.log(
                logging.ERROR, type(error).__name__, "metrics", f"Failed to serve metrics to {self!r}", error
            )
            transport.abort()
            return
        self._answering = None
        transport.resume_reading()
        self._serve()


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _chunk(data: bytes) -> Iterable[bytes]:
    return b"%x\r\n" % len(data), data, b"\r\n"

"""What a client of HTTP asks for: the head of a GET or HEAD, read without I/O (RFC 9112).

Only what a scraper or a probe sends is understood. A request with a body is refused, and so is a head above
`MOST_HEAD_BYTES`.
"""

from __future__ import annotations

from pykafka_broker.system.named_tuple import NamedTuple

MOST_HEAD_BYTES = 8 * 1024
_END = b"\r\n\r\n"


class BadRequest(Exception):
    """The request is refused with this status, and its connection closes."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Request(NamedTuple):
    """A request."""

    method: str
    #: Without the query.
    path: str
    #: Whether the client understands an answer in chunks (HTTP/1.1).
    takes_chunks: bool
    #: Whether the connection stays open after the answer.
    keeps_alive: bool
    #: What follows the first "?" of the target.
    query: str = ""
    #: The host that the client asked for, with its port; "" if it names none.
    host: str = ""


def read_request(received: bytearray) -> Request | None:
    """Take the next request off `received`; None if its head is not complete.

    Raises:
        BadRequest: it is not served here.
    """
    end = received.find(_END)
    if end > MOST_HEAD_BYTES or (end < 0 and len(received) > MOST_HEAD_BYTES):
        raise BadRequest(431)
    if end < 0:
        return None
    first, *others = bytes(received[:end]).decode("latin-1").split("\r\n")
    del received[: end + len(_END)]
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequest(505 if len(parts) == 3 and parts[2].startswith("HTTP/") else 400)
    method, target, version = parts
    headers = {}
    for line in others:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BadRequest(400)
        headers[name.lower()] = value.strip()
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise BadRequest(413)
    is_new = version != "HTTP/1.0"
    wish = headers.get("connection", "").lower()
    keeps_alive = wish != "close" if is_new else wish == "keep-alive"
    path, _, query = target.partition("?")
    return Request(method, path, is_new, keeps_alive, query, headers.get("host", ""))

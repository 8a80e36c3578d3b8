"""A bearer token from an identity provider, by the client credentials grant (RFC 6749, 4.4).

A failed request is retried with growing pauses for at most `retry_backoff_max_ms`, but not after a final
status. Source: Apache Kafka's HttpJwtRetriever, Retry and JwtResponseParser.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ssl import SSLContext
from urllib.parse import quote_plus, urlsplit

from pykafka_broker.sasl.oauth_login import TokenEndpoint

#: The most bytes read of an answer.
MOST_BYTES = 1 << 20
#: The fields with the token; the first one present counts.
_TOKENS = ("access_token", "id_token")
#: The statuses after which a retry does not help.
_FINAL_STATUS = frozenset({*range(400, 408), *range(409, 416), 501, 505})


class RefusedRequestError(OSError):
    """The identity provider refuses this client."""


def fetch_token(
    endpoint: TokenEndpoint,
    tls: Callable[[], SSLContext],
    *,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> str:
    """A new token. `tls` makes the context for an `https:` URL.

    Raises:
        OSError: there is none in time (`RefusedRequestError`: a retry does not help). The text holds neither
            the secret nor a token.
    """
    end = monotonic() + endpoint.retry_backoff_max_ms / 1_000
    pause = endpoint.retry_backoff_ms / 1_000
    while True:
        try:
            return _token(_answer(endpoint, tls))
        except RefusedRequestError:
            raise
        except (OSError, HTTPException) as error:
            left = end - monotonic()
            if left <= 0:
                raise error if isinstance(error, OSError) else OSError(str(error)) from None
            sleep(min(pause, left))
            pause *= 2


def _answer(endpoint: TokenEndpoint, tls: Callable[[], SSLContext]) -> bytes:
    url = urlsplit(endpoint.url)
    assert url.hostname is not None
    timeout = endpoint.connect_timeout_ms / 1_000 or None
    connection = (
        HTTPSConnection(url.hostname, url.port, timeout=timeout, context=tls())
        if url.scheme == "https"
        else HTTPConnection(url.hostname, url.port, timeout=timeout)
    )
    scope = "" if endpoint.scope is None else f"&scope={quote_plus(endpoint.scope)}"
    credentials = base64.b64encode(f"{endpoint.client_id}:{endpoint.client_secret}".encode()).decode()
    headers = {
        "Accept": "application/json",
        "Authorization": f"Basic {credentials}",
        "Cache-Control": "no-cache",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    try:
        connection.connect()
        connection.sock.settimeout(endpoint.read_timeout_ms / 1_000 or None)
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection.request("POST", target, f"grant_type=client_credentials{scope}", headers)
        response = connection.getresponse()
        content = response.read(MOST_BYTES + 1)
    finally:
        connection.close()
    if response.status in (200, 201):
        if len(content) > MOST_BYTES:
            raise RefusedRequestError(f"its answer has more than {MOST_BYTES} bytes")
        return content
    kind = RefusedRequestError if response.status in _FINAL_STATUS else OSError
    raise kind(f"it answers with the status {response.status}{_reason(content)}")


def _reason(content: bytes) -> str:
    """The error code in an answer (RFC 6749, 5.2)."""
    try:
        error = json.loads(content)["error"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return f": {error[:100]}" if isinstance(error, str) and error.isprintable() else ""


def _token(content: bytes) -> str:
    try:
        told = json.loads(content)
    except (ValueError, RecursionError):
        told = None
    for name in _TOKENS:
        token = told.get(name) if isinstance(told, dict) else None
        if isinstance(token, str) and token.strip():
            return token.strip()
    raise RefusedRequestError("its answer has no token")

"""The keys of an issuer's URL: when they are fetched, and what stays when a fetch fails."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import trustme
from joserfc import jwk

from pykafka_broker.broker.security.key_sets import (
    MISSING_KEY_MS,
    MOST_KEY_ID_LENGTH,
    MOST_MISSING_KEYS,
    FetchedKeys,
    fetching,
)
from pykafka_broker.config.keys import ConfigError
from pykafka_broker.config.oauth_listeners import KeySetSettings
from pykafka_broker.testing.clock import VirtualClock
from tests.support.oauth import key_set

URL = "https://issuer.example/keys"
SETTINGS = KeySetSettings(
    URL, file=None, refresh_ms=3_600_000, retry_backoff_ms=100, retry_backoff_max_ms=10_000
)
NEW = jwk.RSAKey.generate_key(2048, {"kid": "new"})


class Web:
    """Requests for the keys, each answered when the test says so."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.waiting: list[Callable[[bytes | Exception], None]] = []
        self.asked = 0
        self.keys = FetchedKeys(SETTINGS, self.clock, self.fetch)

    def fetch(self, url: str, done: Callable[[bytes | Exception], None]) -> None:
        assert url == URL
        self.asked += 1
        self.waiting.append(done)

    def answer(self, content: bytes | Exception) -> None:
        """Answer the one request there is."""
        [done] = self.waiting
        self.waiting.clear()
        done(content)

    @property
    def names(self) -> set[str | None]:
        return {key.kid for key in self.keys.keys}


@pytest.fixture
def web() -> Web:
    return Web()


def test_a_fetch_that_cannot_begin_and_keys_that_cannot_be_read_are_tried_again(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(url: str, done: Callable[[bytes | Exception], None]) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(web.keys, "_fetch", no_thread)
    web.answer(RecursionError("nested too deep"))
    web.clock.advance(100)
    assert web.asked == 1
    monkeypatch.undo()
    web.clock.advance(200)
    web.answer(key_set())
    assert (web.asked, web.names) == (2, {"rsa", "ec"})


def test_keys_are_fetched_at_the_start_and_every_hour(web: Web) -> None:
    web.answer(key_set())
    assert web.names == {"rsa", "ec"}
    web.clock.advance(SETTINGS.refresh_ms - 1)
    assert web.asked == 1
    web.clock.advance(1)
    web.answer(key_set(NEW))
    assert (web.asked, web.names) == (2, {"new"})


def test_a_key_that_is_missed_is_fetched_for_once_a_minute(web: Web) -> None:
    web.answer(key_set())
    for _ in range(3):
        web.keys.miss("unknown")
    web.answer(key_set())
    web.keys.miss("unknown")
    assert web.asked == 2
    web.clock.advance(MISSING_KEY_MS)
    web.keys.miss("unknown")
    web.answer(key_set())
    assert web.asked == 3


def test_names_that_are_missed_together_are_fetched_for_together(web: Web) -> None:
    web.answer(key_set())
    web.keys.miss("unknown")
    # This one came into being after the request left: it needs another one.
    web.keys.miss("new")
    assert web.asked == 2
    web.answer(key_set())
    web.answer(key_set(NEW))
    assert (web.asked, web.names) == (3, {"new"})


def test_a_failed_fetch_is_tried_again_later_each_time_and_leaves_the_keys(web: Web) -> None:
    web.answer(key_set())
    web.keys.miss("unknown")
    web.answer(OSError("it is not there"))
    for pause_ms in (100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000):
        asked = web.asked
        web.clock.advance(pause_ms - 1)
        assert web.asked == asked
        web.clock.advance(1)
        web.answer(b'{"keys": []}')
    assert web.names == {"rsa", "ec"}


def test_failures_in_between_do_not_add_to_the_trying(web: Web) -> None:
    web.answer(OSError("it is not there"))
    web.keys.miss("rsa")
    web.answer(OSError("it is not there"))
    web.clock.advance(100)
    assert web.asked == 2
    web.clock.advance(100)
    assert web.asked == 3


def test_a_success_ends_the_trying(web: Web) -> None:
    web.answer(OSError("it is not there"))
    web.keys.miss("rsa")
    web.answer(key_set())
    web.clock.advance(SETTINGS.retry_backoff_max_ms)
    assert web.asked == 2


def test_many_invented_names_cost_no_memory(web: Web) -> None:
    web.answer(key_set())
    web.keys.miss(None)
    web.keys.miss("x" * (MOST_KEY_ID_LENGTH + 1))
    assert web.asked == 1
    for number in range(10 * MOST_MISSING_KEYS):
        web.keys.miss(str(number))
    assert len(web.keys._missing) == MOST_MISSING_KEYS


class Publishing(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(key_set())

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


class Publisher(HTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that breaks the connection off is what some tests are about."""


@contextmanager
def publishing(authority: trustme.CA) -> Iterator[str]:
    """An issuer whose certificate is of this authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with Publisher(("127.0.0.1", 0), Publishing) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}/keys"
        server.shutdown()
        thread.join()


async def fetched(settings: KeySetSettings) -> bytes | Exception:
    answer: asyncio.Future[bytes | Exception] = asyncio.get_running_loop().create_future()
    fetching(settings)(settings.url, answer.set_result)
    return await answer


async def test_the_login_module_says_whom_an_https_url_may_be_certified_by(tmp_path: Path) -> None:
    """Only the authorities of the system counted, and the log did not say where others are named."""
    authority = trustme.CA()
    trusted = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(trusted)
    with publishing(authority) as url:
        unknown = replace(SETTINGS, url=url)
        options = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(trusted)}
        assert await fetched(replace(unknown, tls=options)) == key_set()
        inline = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": trusted.read_text()}
        assert await fetched(replace(unknown, tls=inline)) == key_set()
        refusal = await fetched(unknown)
        assert isinstance(refusal, OSError)
        assert "CERTIFICATE_VERIFY_FAILED" in str(refusal)
        assert "ssl.truststore.* of the login module" in str(refusal)


def test_a_trust_that_cannot_be_read_is_refused_at_the_start() -> None:
    options = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/nowhere"}
    with pytest.raises(ConfigError, match="login module's TLS"):
        fetching(replace(SETTINGS, tls=options))

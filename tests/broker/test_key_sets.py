"""The keys of an issuer's URL: when they are fetched, and what stays when a fetch fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from joserfc import jwk

from pykafka_broker.broker.security.key_sets import (
    MISSING_KEY_MS,
    MOST_KEY_ID_LENGTH,
    MOST_MISSING_KEYS,
    FetchedKeys,
)
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

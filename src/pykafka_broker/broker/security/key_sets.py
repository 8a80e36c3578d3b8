"""The keys of an issuer of tokens (JWKS), from a file or a URL.

A file is read at the start. A URL is fetched at the start, at intervals of `refresh_ms`, and when a token
names an unknown key, for each key name at most once a minute. If a fetch fails, the old keys stay and it is
tried again with growing pauses. Until the first success no token is accepted.

A URL is fetched in its own thread, without following redirects, and at most `MOST_BYTES` of it. The login
module's options `ssl.*` say whose certificates an `https:` URL may have, as in Apache Kafka.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from ssl import SSLCertVerificationError, SSLContext
from typing import Union
from urllib.error import HTTPError, URLError
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
)

from pykafka_broker.client.bearer_tokens import provider_context
from pykafka_broker.config.keys import ConfigError
from pykafka_broker.config.oauth_listeners import KeySetSettings
from pykafka_broker.machine.clock import Clock, Timer
from pykafka_broker.sasl.signed_tokens import SigningKey, read_keys

logger = logging.getLogger("kafka.security.oauthbearer")

MOST_BYTES = 1 << 20
TIMEOUT_S = 10
#: The shortest time between two fetches for the same unknown key name.
MISSING_KEY_MS = 60_000
MOST_MISSING_KEYS = 16
MOST_KEY_ID_LENGTH = 1_000

#: The content of a URL, or the error.
Fetched = Union[bytes, Exception]
#: Fetches a URL, and calls back with the content.
Fetch = Callable[[str, Callable[[Fetched], None]], None]


def keys_of_file(settings: KeySetSettings) -> tuple[SigningKey, ...]:
    """The keys of a `file:` URL.

    Raises:
        ConfigError: the file cannot be read, or has no key that verifies signatures.
    """
    try:
        with open(str(settings.file), "rb") as file:
            keys = read_keys(file.read(MOST_BYTES))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{settings.url} cannot be read: {error}") from None
    if not keys:
        raise ConfigError(f"{settings.url} has no key that verifies signatures")
    return keys


def fetching(settings: KeySetSettings) -> Fetch:
    """What fetches the URL of `settings`, with the trust that they ask for.

    Raises:
        ConfigError: the options `ssl.*` of the login module are invalid.
    """
    if not settings.url.lower().startswith("https:"):
        return partial(fetch_in_thread, None)
    try:
        return partial(fetch_in_thread, provider_context(settings.tls))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{settings.url} cannot be fetched with the login module's TLS: {error}") from None


def fetch_in_thread(tls: SSLContext | None, url: str, done: Callable[[Fetched], None]) -> None:
    """Fetch in a daemon thread; `tls` is the context for an `https:` URL."""
    loop = asyncio.get_running_loop()

    def work() -> None:
        fetched: Fetched
        try:
            fetched = _content(url, tls)
        except HTTPError as error:
            error.close()
            fetched = error
        except URLError as error:
            fetched = error
            if isinstance(error.reason, SSLCertVerificationError):
                fetched = OSError(
                    f"{error.reason}. The options ssl.truststore.* of the login module name the authorities "
                    "that are trusted; without any they are those of the system"
                )
        except Exception as error:
            fetched = error
        with suppress(RuntimeError):  # the node has stopped meanwhile
            loop.call_soon_threadsafe(done, fetched)

    threading.Thread(target=work, name="jwks", daemon=True).start()


def _content(url: str, tls: SSLContext | None) -> bytes:
    opener = OpenerDirector()
    for handler in (
        HTTPHandler(),
        HTTPSHandler(context=tls),
        HTTPDefaultErrorHandler(),
        HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    with opener.open(url, timeout=TIMEOUT_S) as response:
        content: bytes = response.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES} bytes")
    return content


class FetchedKeys:
    """The keys of a URL, which is fetched repeatedly."""

    def __init__(self, settings: KeySetSettings, clock: Clock, fetch: Fetch) -> None:
        self._settings = settings
        self._clock = clock
        self._fetch = fetch
        self.keys: tuple[SigningKey, ...] = ()
        #: Unknown key name -> when it may cause a fetch again (monotonic).
        self._missing: OrderedDict[str, int] = OrderedDict()
        self._is_fetching = False
        #: Whether a key was missed after the fetch under way began.
        self._is_outdated = False
        self._failures = 0
        self._retry: Timer | None = None
        self._refresh()

    def miss(self, kid: str | None) -> None:
        """A token names an unknown key."""
        if kid is None or len(kid) > MOST_KEY_ID_LENGTH:
            return
        now_ms = self._clock.monotonic_ms()
        if self._missing.get(kid, now_ms) > now_ms:
            return
        self._missing[kid] = now_ms + MISSING_KEY_MS
        self._missing.move_to_end(kid)
        if len(self._missing) > MOST_MISSING_KEYS:
            self._missing.popitem(last=False)
        self._is_outdated = self._is_fetching
        self._start()

    def _refresh(self) -> None:
        self._start()
        self._later(self._settings.refresh_ms, self._refresh)

    def _start(self) -> None:
        if not self._is_fetching:
            self._is_fetching = True
            try:
                self._fetch(self._settings.url, self._fetched)
            except Exception as error:  # no thread could be started
                self._later(0, partial(self._fetched, error))

    def _fetched(self, fetched: Fetched) -> None:
        self._is_fetching = False
        if self._is_outdated:
            self._is_outdated = False
            self._start()
        try:
            if isinstance(fetched, Exception):
                raise fetched
            keys = read_keys(fetched)
            if not keys:
                raise ValueError("it has no key that verifies signatures")
        except Exception as error:
            logger.warning("The keys of %s cannot be fetched: %s", self._settings.url, error)
            pause_ms = self._settings.retry_backoff_ms << min(self._failures, 20)
            self._failures += 1
            if self._retry is not None:  # a key was missed while it waited
                self._retry.cancel()
            self._retry = self._later(min(pause_ms, self._settings.retry_backoff_max_ms), self._start)
            return
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self._failures or not self.keys:
            logger.info("The keys of %s are fetched.", self._settings.url)
        self._failures = 0
        self.keys = keys
        for key in keys:
            self._missing.pop(key.kid or "", None)

    def _later(self, after_ms: int, do: Callable[[], None]) -> Timer:
        return self._clock.call_at(self._clock.monotonic_ms() + after_ms, do)

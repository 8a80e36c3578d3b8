"""The bearer token that a client sends, and its refresh.

Before a connection is made, a token is fetched if there is none yet, or if most of the lifetime of the last
one has passed. If that fails, the last token is used until it expires, and fetching is retried later.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.sasl.oauth_login import OAuthLogin, TokenEndpoint, TokenFile
from pykafka_broker.sasl.token_life import refresh_at_ms, token_life
from pykafka_broker.sasl.unsecured_login import unsecured_login_token

if TYPE_CHECKING:
    from ssl import SSLContext

logger = logging.getLogger("kafka.security.oauthbearer")

#: The pause after a token could not be fetched, as in Apache Kafka.
RETRY_MS = 10_000
#: The most bytes read from a token file.
MOST_BYTES = 1 << 20


class TokenUnavailableError(ConnectionError):
    """There is no token to connect with."""


def new_bearer_tokens(login: OAuthLogin) -> BearerTokens:
    """The tokens of a login, none of them fetched yet."""
    source = login.source
    if isinstance(source, TokenFile):
        return BearerTokens(login, partial(_read, source.path), f"The token in {source.path}")
    if isinstance(source, TokenEndpoint):
        return BearerTokens(login, partial(_fetch, source), f"The token of {source.url}")
    return BearerTokens(
        login, lambda: unsecured_login_token(source.options, _now_ms()), "The token of the login module"
    )


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read(MOST_BYTES).strip()


def _fetch(endpoint: TokenEndpoint) -> str:
    from pykafka_broker.client.token_endpoint import fetch_token  # needs the HTTP client of the library

    return fetch_token(endpoint, lambda: provider_context(endpoint.tls))


def provider_context(tls: Mapping[str, str]) -> SSLContext:
    """The TLS context for the `https:` URLs of an identity provider. `tls` are the options `ssl.*` of a login
    module; without any, the authorities of the system are trusted.

    Raises:
        OSError, ValueError: an option is invalid, or a store cannot be read. The text holds no secret.
    """
    if not tls:
        from ssl import create_default_context

        return create_default_context()
    from pykafka_broker.client.tls import context_of

    return context_of(tls)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class BearerTokens:
    """The tokens of one user; may be used by several threads."""

    def __init__(
        self,
        login: OAuthLogin,
        retrieve: Callable[[], str],
        name: str,
        *,
        now_ms: Callable[[], int] = _now_ms,
        dice: Callable[[], float] = random.random,
    ) -> None:
        """`retrieve` returns a token, or raises OSError or ValueError; `name` names the token in errors."""
        self._login = login
        self._retrieve = retrieve
        self._name = name
        self._now_ms = now_ms
        self._dice = dice
        self._lock = threading.Lock()
        self._token: str | None = None
        self._refresh_ms = 0
        self._expires_ms = 0

    @property
    def extensions(self) -> Mapping[str, str]:
        """The extensions that are sent with a token."""
        return self._login.extensions

    @property
    def token(self) -> str:
        """The newest token. Raises TokenUnavailableError before one was fetched."""
        if self._token is None:
            raise TokenUnavailableError(f"{self._name} was not fetched yet")
        return self._token

    @property
    def is_stale(self) -> bool:
        """Whether `refresh` must be called before the next connection."""
        return self._now_ms() >= self._refresh_ms

    def refresh(self) -> None:
        """Get a new token if this one is stale. Blocks.

        Raises:
            TokenUnavailableError: it cannot be fetched, and the current one has expired.
        """
        with self._lock:
            if not self.is_stale:
                return
            try:
                token = self._retrieve()
                life = token_life(token, self._login.principal_claim)
            except (OSError, ValueError) as error:
                failure = f"{self._name} cannot be had: {error}"
                if self._now_ms() >= self._expires_ms:
                    raise TokenUnavailableError(failure) from None
                logger.warning("%s. The one before is used.", failure)
                self._refresh_ms = self._now_ms() + RETRY_MS
                return
            now_ms = self._now_ms()
            self._token, self._expires_ms = token, life.expires_ms
            self._refresh_ms = refresh_at_ms(life, now_ms, self._login.refresh, self._dice())

"""OAUTHBEARER of a client, or of a node that connects to other nodes: the source of its tokens.

Without `sasl.oauthbearer.token.endpoint.url` the login module's options make a token without a signature
(`unsecured_login.py`). With it a token is fetched there by the client credentials grant (RFC 6749, 4.4), or
read from the file of a `file:` URL. The keys for the grant's client id, secret and scope take precedence over
the options `clientId`, `clientSecret` and `scope` of the login module. An option `extension_<name>` is sent
with the token.

Source: Apache Kafka's OAuthBearerLoginCallbackHandler, DefaultJwtRetriever and ClientCredentialsJwtRetriever.
Grants with assertions (JwtBearerJwtRetriever, `sasl.oauthbearer.assertion.*`) are not implemented.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from pykafka_broker.sasl.oauth_bearer_client import check_extensions
from pykafka_broker.sasl.token_life import RefreshRules
from pykafka_broker.sasl.unsecured_login import (
    EXTENSION_PREFIX,
    LOGIN_OPTIONS,
    principal_claim,
    unsecured_login_token,
)

LOGIN_HANDLER = "sasl.login.callback.handler.class"
_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
FETCHING_HANDLER = f"{_PACKAGE}.OAuthBearerLoginCallbackHandler"
UNSECURED_LOGIN_HANDLER = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
_RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
_RETRIEVERS = tuple(
    f"{_PACKAGE}.{name}"
    for name in ("DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "FileJwtRetriever")
)
#: Defaults of a client's properties; a node's configuration has the same defaults of its own.
_DEFAULTS: Mapping[str, Any] = {
    _RETRIEVER: _RETRIEVERS[0],
    "sasl.oauthbearer.sub.claim.name": "sub",
    "sasl.login.refresh.window.factor": 0.8,
    "sasl.login.refresh.window.jitter": 0.05,
    "sasl.login.refresh.min.period.seconds": 60,
    "sasl.login.refresh.buffer.seconds": 300,
    "sasl.login.retry.backoff.ms": 100,
    "sasl.login.retry.backoff.max.ms": 10_000,
}
#: The default time-out of requests to an identity provider. Apache Kafka has none.
_TIMEOUT_MS = 10_000
_EXTENSION = "extension_"


@dataclass(frozen=True, slots=True)
class UnsecuredTokens:
    """The options of a login module make the tokens."""

    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file holds the token; it is read anew each time."""

    path: str


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """An identity provider is asked for each token."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    connect_timeout_ms: int = _TIMEOUT_MS
    read_timeout_ms: int = _TIMEOUT_MS
    retry_backoff_ms: int = 100
    #: Also the total time for all attempts.
    retry_backoff_max_ms: int = 10_000
    #: The keys `ssl.*` for this URL alone; without them the system's certificate authorities are trusted.
    tls: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class OAuthLogin:
    """Where tokens come from, and when a new one is needed."""

    source: UnsecuredTokens | TokenFile | TokenEndpoint
    principal_claim: str = "sub"
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)
    refresh: RefreshRules = field(default_factory=RefreshRules)


def oauth_login(value: Callable[[str], Any], options: Mapping[str, str]) -> OAuthLogin:
    """The login that the keys and the options of the login module describe.

    Args:
        value: Returns the value of a key, as text or of its own type; None if the key is not set.
        options: The options of the login module.

    Raises:
        ValueError: a value is invalid or missing. The text names the key, and holds no secret.
    """

    def known(name: str) -> Any:
        found = value(name)
        return _DEFAULTS.get(name) if found is None else found

    handler, url = known(LOGIN_HANDLER), known(TOKEN_URL)
    if handler not in (None, FETCHING_HANDLER, UNSECURED_LOGIN_HANDLER):
        raise ValueError(f"{LOGIN_HANDLER} names code for Java, which cannot be run here")
    rules = RefreshRules(
        _number(known, "sasl.login.refresh.window.factor", float),
        _number(known, "sasl.login.refresh.window.jitter", float),
        _number(known, "sasl.login.refresh.min.period.seconds", int),
        _number(known, "sasl.login.refresh.buffer.seconds", int),
    )
    is_unsecured = url is None or any(name.startswith(LOGIN_OPTIONS) for name in options)
    if handler == UNSECURED_LOGIN_HANDLER or (handler is None and is_unsecured):
        unsecured_login_token(options, now_ms=0)  # raises if an option is invalid
        return OAuthLogin(
            UnsecuredTokens(options), principal_claim(options), _extensions(options, EXTENSION_PREFIX), rules
        )
    if url is None:
        raise ValueError(f"{LOGIN_HANDLER} asks for {TOKEN_URL}")
    return OAuthLogin(
        _source(known, str(url).strip(), options),
        known("sasl.oauthbearer.sub.claim.name"),
        _extensions(options, _EXTENSION),
        rules,
    )


def _source(value: Callable[[str], Any], url: str, options: Mapping[str, str]) -> TokenFile | TokenEndpoint:
    if value(_RETRIEVER) not in _RETRIEVERS:
        raise ValueError(f"{_RETRIEVER} names code for Java, which cannot be run here")
    parts = urlsplit(url)
    if parts.scheme == "file":
        return TokenFile(unquote(parts.path))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{TOKEN_URL} is no URL that begins with https:, http: or file:")

    def credential(name: str, option: str) -> str | None:
        found: str | None = value(name) or options.get(option)
        return found

    client_id = credential("sasl.oauthbearer.client.credentials.client.id", "clientId")
    client_secret = credential("sasl.oauthbearer.client.credentials.client.secret", "clientSecret")
    if not client_id or not client_secret:
        raise ValueError(
            f"{TOKEN_URL} needs sasl.oauthbearer.client.credentials.client.id and "
            "sasl.oauthbearer.client.credentials.client.secret"
        )
    return TokenEndpoint(
        url,
        client_id,
        client_secret,
        credential("sasl.oauthbearer.scope", "scope"),
        connect_timeout_ms=_number(value, "sasl.login.connect.timeout.ms", int, _TIMEOUT_MS),
        read_timeout_ms=_number(value, "sasl.login.read.timeout.ms", int, _TIMEOUT_MS),
        retry_backoff_ms=_number(value, "sasl.login.retry.backoff.ms", int),
        retry_backoff_max_ms=_number(value, "sasl.login.retry.backoff.max.ms", int),
        tls=tls_options(options),
    )


def tls_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options of a login module for the `https:` URLs of an identity provider: `ssl.*`."""
    return {name: text for name, text in options.items() if name.startswith("ssl.")}


def _number(value: Callable[[str], Any], name: str, kind: Callable[[Any], Any], default: Any = None) -> Any:
    found = value(name)
    try:
        number = default if found is None else kind(found)
    except ValueError:
        raise ValueError(f"{name} must be a number") from None
    if number < 0:
        raise ValueError(f"{name} must not be negative")
    return number


def _extensions(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    found = {name[len(prefix) :]: text for name, text in options.items() if name.startswith(prefix)}
    check_extensions(found)
    return found

"""OAUTHBEARER on a listener: which tokens are accepted, and the source of the keys that verify them.

Signed tokens need the keys of their issuer, and a configured issuer or audience: otherwise a token for any
other service would be accepted. Tokens without a signature are accepted only if the login module has an
option that begins with `unsecured`, or their callback handler is configured; Apache Kafka accepts them if
nothing else is configured.

A key is looked up as `listener.name.<listener>.oauthbearer.<key>`, then as `listener.name.<listener>.<key>`,
then as `<key>`. All are read only at the start, so no client can change a URL of a running node; Apache
Kafka's system property `org.apache.kafka.sasl.oauthbearer.allowed.urls` is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote, urlsplit

from pykafka_broker.config.keys import ConfigError, code_for_java
from pykafka_broker.sasl.jaas import LoginModule
from pykafka_broker.sasl.oauth_login import tls_options
from pykafka_broker.sasl.signed_tokens import SignedRules
from pykafka_broker.sasl.unsecured_tokens import UNSECURED_OPTIONS, UnsecuredRules

HANDLER = "sasl.server.callback.handler.class"
_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
SIGNED_HANDLER = f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler"
UNSECURED_HANDLER = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
_VALIDATORS = (f"{_PACKAGE}.DefaultJwtValidator", f"{_PACKAGE}.BrokerJwtValidator")
_URL = "sasl.oauthbearer.jwks.endpoint.url"


@dataclass(frozen=True, slots=True)
class KeySetSettings:
    """The source of an issuer's keys."""

    url: str
    #: The file of a `file:` URL; else None.
    file: str | None
    refresh_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    #: The options `ssl.*` of the login module, for an `https:` URL; without any, the system's authorities
    #: are trusted.
    tls: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class SignedSettings:
    """A listener's settings to accept signed tokens."""

    keys: KeySetSettings
    rules: SignedRules


OAuthSettings = SignedSettings | UnsecuredRules


def oauth_settings(value: Callable[[str], Any], login: LoginModule, listener: str) -> OAuthSettings:
    """Which tokens a listener accepts; `value` returns its value of a key.

    Raises:
        ConfigError: it would accept none, or every token of an issuer.
    """
    handler, url = value(HANDLER), value(_URL)
    if handler not in (None, SIGNED_HANDLER, UNSECURED_HANDLER):
        raise code_for_java(listener, HANDLER)
    if value("sasl.oauthbearer.jwt.validator.class") not in _VALIDATORS:
        raise code_for_java(listener, "sasl.oauthbearer.jwt.validator.class")
    is_asked = any(name.startswith(UNSECURED_OPTIONS) for name in login.options)
    if handler == UNSECURED_HANDLER or (handler is None and url is None and is_asked):
        try:
            return UnsecuredRules.of_options(login.options)
        except ValueError as error:
            raise ConfigError(f"Listener {listener}: {error}") from None
    if url is None:
        raise ConfigError(
            f"Listener {listener} has no keys that verify the tokens of OAUTHBEARER: set {_URL}. Tokens "
            f"without a signature, with which everybody is who he wants to be, are accepted with {HANDLER}="
            f"{UNSECURED_HANDLER}"
        )
    issuer, audiences = value("sasl.oauthbearer.expected.issuer"), value("sasl.oauthbearer.expected.audience")
    if not issuer and not audiences:
        raise ConfigError(
            f"Listener {listener} would accept tokens that are meant for others: set "
            "sasl.oauthbearer.expected.issuer, sasl.oauthbearer.expected.audience, or both"
        )
    if find_spec("joserfc") is None:
        raise ConfigError(
            f"Listener {listener}: OAUTHBEARER needs joserfc: pip install 'pykafka-broker[oauth]'"
        )
    return SignedSettings(
        _key_set(value, url, login),
        SignedRules(
            issuer=issuer or None,
            audiences=frozenset(audiences),
            scope_claim=_claim(value, "sasl.oauthbearer.scope.claim.name"),
            principal_claim=_claim(value, "sasl.oauthbearer.sub.claim.name"),
            clock_skew_s=value("sasl.oauthbearer.clock.skew.seconds"),
        ),
    )


def _key_set(value: Callable[[str], Any], url: str, login: LoginModule) -> KeySetSettings:
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https", "file"):
        raise ConfigError(f"{_URL} is no URL that begins with https:, http: or file:")
    refresh_ms = value("sasl.oauthbearer.jwks.endpoint.refresh.ms")
    if refresh_ms <= 0:
        raise ConfigError("sasl.oauthbearer.jwks.endpoint.refresh.ms must be positive")
    return KeySetSettings(
        url.strip(),
        unquote(parts.path) if parts.scheme == "file" else None,
        refresh_ms,
        max(1, value("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms")),
        max(1, value("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms")),
        tls_options(login.options),
    )


def _claim(value: Callable[[str], Any], name: str) -> str:
    claim: str = (value(name) or "").strip()
    if not claim:
        raise ConfigError(f"{name} must not be empty")
    return claim

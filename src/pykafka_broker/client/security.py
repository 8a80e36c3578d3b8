"""The security of a client, in the keys of Kafka's own clients (`security.protocol`, `ssl.*`, `sasl.*`)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from pykafka_broker.client.bearer_tokens import new_bearer_tokens
from pykafka_broker.client.core.authentication import STRONGEST_FIRST, Login, TokenLogin
from pykafka_broker.client.core.connection import ClientSecurity
from pykafka_broker.client.tls import context_of
from pykafka_broker.sasl.jaas import parse_jaas
from pykafka_broker.sasl.oauth_bearer import OAUTHBEARER
from pykafka_broker.sasl.oauth_login import oauth_login

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def security_of(properties: Mapping[str, str]) -> ClientSecurity:
    """The TLS and the login of client properties. Other keys are ignored.

    Raises:
        ValueError: a value is invalid or missing; the message names the key, and holds no secret.
    """
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise ValueError(f"security.protocol {protocol} is none of {', '.join(PROTOCOLS)}")
    context = context_of(properties) if protocol.endswith("SSL") else None
    return ClientSecurity(
        login=_login(properties) if protocol.startswith("SASL") else None,
        tls=None if context is None else lambda: context,
    )


def _login(properties: Mapping[str, str]) -> Login | TokenLogin:
    mechanism = properties.get("sasl.mechanism", "GSSAPI")
    if mechanism not in (*STRONGEST_FIRST, OAUTHBEARER):
        raise ValueError(
            f"sasl.mechanism {mechanism} is none of {', '.join((*STRONGEST_FIRST, OAUTHBEARER))}"
        )
    text = properties.get("sasl.jaas.config")
    if text is None:
        raise ValueError("sasl.jaas.config is missing")
    try:
        options = parse_jaas(text)[0].options
    except ValueError as error:
        raise ValueError(f"sasl.jaas.config: {error}") from None
    if mechanism == OAUTHBEARER:
        return TokenLogin(new_bearer_tokens(oauth_login(properties.get, options)))
    if "username" not in options or "password" not in options:
        raise ValueError("sasl.jaas.config has no username and password")
    by_token = options.get("tokenauth", "").lower() == "true"
    return login_of(options["username"], options["password"], mechanism, by_token=by_token)


def login_of(user: str, password: str, mechanism: str | None = None, *, by_token: bool = False) -> Login:
    """A user or a delegation token; by default with the strongest mechanism that the broker offers."""
    return Login(mechanism, user, password, lambda: secrets.token_hex(16), by_token)

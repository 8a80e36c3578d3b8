"""Bearer tokens without a signature, for trials only: a client can claim to be any user.

Source of the checks, in this order: Apache Kafka's OAuthBearerUnsecuredValidatorCallbackHandler.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pykafka_broker.sasl.oauth_bearer import JAVA_SPACE, LATEST_MS, BearerToken, TokenError, principal_of
from pykafka_broker.sasl.refusal import UnreadableTokenError

#: The prefix of the options about tokens without a signature.
UNSECURED_OPTIONS = "unsecured"
_PREFIX = "unsecuredValidator"


@dataclass(frozen=True, slots=True)
class UnsecuredRules:
    """The rules for the claims of a token without a signature."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    clock_skew_ms: int = 0

    @classmethod
    def of_options(cls, options: Mapping[str, str]) -> UnsecuredRules:
        """The rules that the options of a login module set.

        Raises:
            ValueError: the clock skew is no number, or negative.
        """

        def option(name: str) -> str:
            return options.get(_PREFIX + name, "").strip()

        skew = option("AllowableClockSkewMs") or "0"
        if not skew.isascii() or not skew.isdigit():
            raise ValueError(f"{_PREFIX}AllowableClockSkewMs must be a number of milliseconds")
        return cls(
            option("PrincipalClaimName") or "sub",
            option("ScopeClaimName") or "scope",
            tuple(option("RequiredScope").split()),
            int(skew),
        )


def unsecured_token(token: str, rules: UnsecuredRules, now_ms: int) -> BearerToken:
    """What a token says.

    Raises:
        TokenError: it has another form, expired, or lacks a claim.
        UnreadableTokenError: its header names no algorithm.
    """
    if ".." in token:
        raise TokenError("Malformed compact serialization contains '..'")
    # A dot at the end begins an empty last part, as in Java; more dots than one were refused above.
    parts = token.rstrip(".").split(".") + ([""] if token.endswith(".") else [])
    if len(parts) != 3:
        raise TokenError("Unsecured JWS compact serializations must have 3 dot-separated values")
    header, claims = _object(parts[0]), _object(parts[1])
    if header.get("alg") is None:
        raise UnreadableTokenError("JWS header must have an Algorithm value")
    if header["alg"] != "none":
        raise TokenError("Unsecured JWS must have 'none' for an algorithm")
    if parts[2]:
        raise TokenError("Unsecured JWS must not contain a digital signature")
    scope = _scope(claims.get(rules.scope_claim))
    expires_s = _number(claims, "exp")
    if expires_s is None:
        raise TokenError("No expiration time in JWT")
    principal = principal_of(claims, rules.principal_claim)
    issued_s = _number(claims, "iat")
    if issued_s is not None and 1_000 * issued_s > now_ms + rules.clock_skew_ms:
        raise TokenError("The token is issued later than now")
    if now_ms - rules.clock_skew_ms >= 1_000 * expires_s:
        raise TokenError("The token has expired")
    if issued_s is not None and expires_s <= issued_s:
        raise TokenError("The token expires before it is issued")
    if not scope.issuperset(rules.required_scope):
        raise TokenError("The token lacks a required scope", scope=f"[{', '.join(rules.required_scope)}]")
    return BearerToken(principal, LATEST_MS if expires_s >= LATEST_MS / 1_000 else round(expires_s * 1_000))


def _object(part: str) -> dict[str, Any]:
    """The members of the JSON object in a part of a token; empty if it is another value."""
    try:
        data = base64.b64decode(part + "=" * (-len(part) % 4), validate=True)
        value, _ = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode(data.decode().lstrip())
    except (binascii.Error, ValueError, RecursionError):
        raise TokenError("malformed JSON, or not in base64") from None
    return {name: _plain(each) for name, each in value.items()} if isinstance(value, dict) else {}


def _refuse_constant(name: str) -> object:
    raise ValueError(name)


def _plain(value: Any) -> Any:
    """A value in Apache Kafka's types: text, a number, or a list of texts."""
    if isinstance(value, list):
        return [_text(each) for each in value]
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else _text(value)


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return "" if isinstance(value, (dict, list)) else str(value)


def _number(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if isinstance(value, (str, list)):
        raise TokenError(f"The {name} claim is no number")
    try:
        return None if value is None else float(value)
    except OverflowError:
        raise TokenError(f"The {name} claim is too large") from None


def _scope(value: Any) -> frozenset[str]:
    if value is None or isinstance(value, list):
        return frozenset({each.strip(JAVA_SPACE) for each in value or ()} - {""})
    if not isinstance(value, str):
        raise TokenError("The scope is neither text nor a list")
    return frozenset({value.strip(JAVA_SPACE)} - {""})

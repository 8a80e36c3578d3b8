"""Signed bearer tokens (JWT): the accepted signatures, and the checks of the claims.

A token may name its key; otherwise each key that fits the token's algorithm is tried. All accepted
algorithms are asymmetric, and a key is used only with algorithms of its own kind, so a public key is never
used as a shared secret. Keys in the token itself (`jwk`, `jku`, `x5c`) are ignored, and a token in a token is
not read. Only `sasl.server.max.receive.size` limits how long a token is.

Source of the checks: Apache Kafka's BrokerJwtValidator, and jose4j's JwtConsumer, which it uses.
`interop/bearer_tokens.py` compares with them, and lists what is judged otherwise on purpose.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any

from pykafka_broker.sasl.oauth_bearer import JAVA_SPACE, LATEST_MS, BearerToken, TokenError, principal_of

if TYPE_CHECKING:
    from joserfc.jwk import Key

#: Algorithm -> the kind of key that it needs.
ALGORITHMS: Mapping[str, str] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
#: The most keys tried for a token that names none.
MOST_KEYS_TRIED = 8
#: The most keys of a set; a larger one is refused.
MOST_KEYS = 1_000
#: The bits of the smallest RSA key that is used, as in jose4j.
LEAST_RSA_BITS = 2_048
#: The content types of a token in a token, which is not read.
_NESTED = frozenset({"jwt", "application/jwt"})


@dataclass(frozen=True, slots=True)
class SignedRules:
    """The rules for the claims of a signed token."""

    issuer: str | None = None
    audiences: frozenset[str] = frozenset()
    scope_claim: str = "scope"
    principal_claim: str = "sub"
    clock_skew_s: int = 30


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key of a set (JWKS)."""

    kid: str | None
    kind: str
    #: None: any algorithm that fits the kind.
    algorithm: str | None
    key: Key


class UnknownKeyError(TokenError):
    """The set has no key for the token; a newer set may have the one that the token names."""

    def __init__(self, kid: str | None) -> None:
        super().__init__("No key is known that may have signed the token")
        self.kid = kid


def read_keys(data: bytes) -> tuple[SigningKey, ...]:
    """The keys of a JWKS that verify signatures; keys of other kinds or uses are left out.

    Raises:
        ValueError: it is no JWKS.
    """
    from joserfc.errors import JoseError
    from joserfc.jwk import import_key

    try:
        entries = json.loads(data)["keys"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError("not a set of keys (JWKS)") from None
    if not isinstance(entries, list) or len(entries) > MOST_KEYS:
        raise ValueError(f"not a set of at most {MOST_KEYS} keys (JWKS)")
    keys = []
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("kty") not in ALGORITHMS.values():
            continue
        if entry.get("use", "sig") != "sig":
            continue
        try:
            if entry["kty"] == "RSA" and _bits(entry["n"]) < LEAST_RSA_BITS:
                continue
            key: Any = import_key(entry)
        except (JoseError, ValueError, TypeError, KeyError):
            continue
        keys.append(SigningKey(entry.get("kid"), entry["kty"], entry.get("alg"), key))
    return tuple(keys)


def _bits(modulus: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(modulus + "==")).bit_length()


def signed_token(token: str, keys: Sequence[SigningKey], rules: SignedRules, now_ms: int) -> BearerToken:
    """What a token says.

    Raises:
        TokenError: none of the keys has signed it, it is for another audience, has expired or lacks a claim
            (`UnknownKeyError`: no key fits it).
    """
    claims = _verified(token, keys)
    now_s = now_ms / 1_000
    expires_s, issued_s = _time(claims, "exp"), _time(claims, "iat")
    not_before_s = _time(claims, "nbf")
    if expires_s is None or issued_s is None:
        raise TokenError("The token lacks exp or iat")
    if min(expires_s, issued_s) < 0:
        raise TokenError("The token has a negative exp or iat")
    if now_s - rules.clock_skew_s >= expires_s:
        raise TokenError("The token has expired")
    if not_before_s is not None and now_s + rules.clock_skew_s < not_before_s:
        raise TokenError("The token is not valid yet")
    if expires_s < issued_s or (not_before_s is not None and expires_s < not_before_s):
        raise TokenError("The token expires before it begins")
    _check_texts(claims)
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise TokenError("The token is of another issuer")
    _check_audience(claims.get("aud"), rules.audiences)
    _check_scope(claims.get(rules.scope_claim))
    principal_name = principal_of(claims, rules.principal_claim)
    return BearerToken(principal_name.strip(JAVA_SPACE), expires_s * 1_000)


def _verified(token: str, keys: Sequence[SigningKey]) -> dict[str, Any]:
    """The claims of a token that one of these keys has signed."""
    parts = token.split(".")
    if len(parts) != 3 or not all(parts):
        raise TokenError("The token does not have three parts")
    header = _object(parts[0], "header")
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise TokenError("The token is not signed with an asymmetric algorithm that is accepted")
    if kid is not None and not isinstance(kid, str):
        raise TokenError("The kid of the token is no text")
    _check_meaning(header)
    fitting = list(_fitting(keys, algorithm, kid))
    if not fitting:
        raise UnknownKeyError(kid)
    content, signature = token.rpartition(".")[0].encode(), _decoded(parts[2], "signature")
    if not any(_has_signed(each, algorithm, content, signature) for each in fitting[:MOST_KEYS_TRIED]):
        raise TokenError("The signature of the token is wrong")
    return _object(parts[1], "claims")


def _check_meaning(header: Mapping[str, Any]) -> None:
    """Refuse parameters that change what the other parts mean; unknown ones are ignored (RFC 7515, 4)."""
    critical, kind = header.get("crit"), header.get("cty")
    if critical is not None and (not isinstance(critical, list) or any(each != "b64" for each in critical)):
        raise TokenError("The token has a critical extension (crit) that is unknown")
    if header.get("b64") is False:
        raise TokenError("The token has claims that are not encoded (b64)")
    if kind is not None and (not isinstance(kind, str) or kind.lower() in _NESTED):
        raise TokenError("The token holds another token (cty)")


def _object(part: str, what: str) -> dict[str, Any]:
    """The JSON object in a part of a token."""
    data = _decoded(part, what)
    try:
        value = json.loads(data.decode(), object_pairs_hook=_members, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise TokenError(
            f"The {what} of the token is malformed: no JSON object, or one that has a name twice"
        )
    return value


def _decoded(part: str, what: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        raise TokenError(f"The {what} of the token is malformed: not in base64") from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name occurs twice")
    return members


def _refuse_constant(name: str) -> object:
    raise ValueError(name)


def _has_signed(key: SigningKey, algorithm: str, content: bytes, signature: bytes) -> bool:
    from joserfc.errors import JoseError
    from joserfc.jws import JWSRegistry

    model = JWSRegistry.algorithms[algorithm]
    try:
        model.check_key(key.key)
        return model.verify(content, signature, key.key)
    except (JoseError, ValueError):  # a key of another curve, or for another operation
        return False


def _fitting(keys: Sequence[SigningKey], algorithm: str, kid: str | None) -> Iterator[SigningKey]:
    for key in keys:
        if (
            key.kind == ALGORITHMS[algorithm]
            and key.algorithm in (None, algorithm)
            and kid in (None, key.kid)
        ):
            yield key


def _time(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > LATEST_MS // 1_000:
        raise TokenError(f"The {name} of the token is no time")
    return int(value)


def _check_texts(claims: Mapping[str, Any]) -> None:
    """Refuse a token with another value than text where only text has a meaning, used here or not."""
    for name in ("iss", "sub", "jti"):
        if not isinstance(claims.get(name), (str, NoneType)):
            raise TokenError(f"The {name} of the token is no text")


def _check_audience(audience: Any, expected: frozenset[str]) -> None:
    found = [audience] if isinstance(audience, str) else audience
    if found is None and not expected:
        return
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise TokenError("The token's aud is missing or malformed")
    if expected.isdisjoint(found):
        # Even if no audience is expected: a token with one is meant for another service.
        raise TokenError("The token is for another audience")


def _check_scope(scope: Any) -> None:
    found = [scope] if isinstance(scope, str) else scope if isinstance(scope, list) else []
    names = [each.strip(JAVA_SPACE) if isinstance(each, str) else "" for each in found]
    if not all(names) or len(set(names)) != len(names):
        raise TokenError("The scope is empty, or names something twice")

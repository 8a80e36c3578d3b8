"""Tokens of OAUTHBEARER: signed by an issuer of the tests, or by nobody."""

from __future__ import annotations

import base64
import json
from typing import Any

from joserfc import jwk, jws

ISSUER, AUDIENCE = "https://issuer.example", "kafka"
RSA = jwk.RSAKey.generate_key(2048, {"kid": "rsa", "use": "sig"})
EC = jwk.ECKey.generate_key("P-256", {"kid": "ec", "use": "sig"})


def claims(now_ms: int, **changes: Any) -> dict[str, Any]:
    """Those of a token of alice for an hour; a change to None leaves a claim out."""
    now_s = now_ms // 1_000
    values = {
        "sub": "alice",
        "iss": ISSUER,
        "aud": AUDIENCE,
        "iat": now_s,
        "exp": now_s + 3_600,
        "scope": "read write",
        **changes,
    }
    return {name: value for name, value in values.items() if value is not None}


def signed(content: dict[str, Any], key: Any = RSA, algorithm: str = "RS256", **header: Any) -> str:
    """A signed token."""
    protected = {"alg": algorithm, "kid": key.kid, **header}
    protected = {name: value for name, value in protected.items() if value is not None}
    return jws.serialize_compact(protected, json.dumps(content), key, algorithms=[algorithm])


def signed_text(text: str) -> str:
    """A token with this text for its claims, however long it is."""
    content = f"{part({'alg': 'RS256', 'kid': 'rsa'})}.{_encoded(text)}"
    signature = jws.JWSRegistry.algorithms["RS256"].sign(content.encode(), RSA)
    return f"{content}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def part(content: Any) -> str:
    """A part of a token."""
    return _encoded(json.dumps(content))


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode().rstrip("=")


def unsigned(content: dict[str, Any], header: Any = None) -> str:
    """A token without a signature."""
    return f"{part({'alg': 'none'} if header is None else header)}.{part(content)}."


def key_set(*keys: Any) -> bytes:
    """The public halves of keys, as an issuer publishes them."""
    return json.dumps({"keys": [key.as_dict(private=False) for key in keys or (RSA, EC)]}).encode()


def initial(token: str, authorization_id: str = "", extensions: str = "") -> bytes:
    """The message with a token."""
    asked = f"a={authorization_id}" if authorization_id else ""
    return f"n,{asked},\x01auth=Bearer {token}\x01{extensions}\x01".encode()

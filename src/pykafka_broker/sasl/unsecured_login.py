"""Bearer tokens without a signature that a client makes from the options of its login module.

    unsecuredLoginStringClaim_sub="alice"        a claim with text; also `NumberClaim_`, and `ListClaim_`,
                                                 whose first character separates the elements after it
    unsecuredLoginLifetimeSeconds="3600"
    unsecuredLoginPrincipalClaimName="sub"
    unsecuredLoginExtension_traceId="123"        an extension, which is sent with the token

Source: Apache Kafka's OAuthBearerUnsecuredLoginCallbackHandler.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

#: The prefix of the options that make a token.
LOGIN_OPTIONS = "unsecuredLogin"
EXTENSION_PREFIX = f"{LOGIN_OPTIONS}Extension_"
_RESERVED = ("iat", "exp")
_LIFETIME_S = 3_600


def principal_claim(options: Mapping[str, str]) -> str:
    """The name of the claim with the user."""
    return options.get(f"{LOGIN_OPTIONS}PrincipalClaimName", "").strip() or "sub"


def unsecured_login_token(options: Mapping[str, str], now_ms: int) -> str:
    """A new token.

    Raises:
        ValueError: an option is malformed, or none names the user.
    """
    text = options.get(f"{LOGIN_OPTIONS}LifetimeSeconds", str(_LIFETIME_S))
    try:
        lifetime_s = int(text)
    except ValueError:
        raise ValueError(f"{LOGIN_OPTIONS}LifetimeSeconds must be a number of seconds") from None
    claims: dict[str, object] = {"exp": now_ms / 1_000 + lifetime_s, "iat": now_ms / 1_000}
    for option, value in options.items():
        kind, _, name = option.removeprefix(LOGIN_OPTIONS).partition("Claim_")
        if not option.startswith(LOGIN_OPTIONS) or not name:
            continue
        if name in _RESERVED:
            raise ValueError(
                f"{option}: this claim is made from {LOGIN_OPTIONS}LifetimeSeconds and the clock"
            )
        claims[name] = _claim(option, kind, value)
    user = claims.get(principal_claim(options))
    if not isinstance(user, str) or not user.strip():
        raise ValueError(f"No option {LOGIN_OPTIONS}StringClaim_{principal_claim(options)} names the user")
    return f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."


def _claim(option: str, kind: str, value: str) -> object:
    if kind == "String":
        return value
    if kind == "Number":
        try:
            return float(value)
        except ValueError:
            raise ValueError(f"{option} must be a number") from None
    if kind == "List":
        return value[1:].split(value[0]) if len(value) > 1 else []
    raise ValueError(f"{option} is no option of a login module")


def _encoded(part: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part, separators=(",", ":")).encode()).rstrip(b"=").decode()

"""How long a client uses a bearer token, and when it fetches the next.

A client reads the times in its token without checking the signature: that is the server's task.

Source: Apache Kafka's ClientJwtValidator and ExpiringCredentialRefreshingLogin.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TokenLife:
    """The claims that a client reads; times are in ms since 1970."""

    principal_name: str
    #: None if the token has no `iat`.
    issued_ms: int | None
    expires_ms: int


@dataclass(frozen=True, slots=True)
class RefreshRules:
    """The keys `sasl.login.refresh.*`."""

    #: The share of a token's life after which the next is fetched, and a random share on top.
    window_factor: float = 0.8
    window_jitter: float = 0.05
    #: The least time between two fetches.
    min_period_s: int = 60
    #: The least time before the current token expires.
    buffer_s: int = 300


def token_life(token: str, principal_claim: str) -> TokenLife:
    """The claims of a token; its signature is not checked.

    Raises:
        ValueError: the token does not have three parts, or lacks `exp` or the principal
            claim. The text quotes nothing of the token.
    """
    parts = token.split(".")
    if len(parts) != 3 or not token.isascii():
        raise ValueError("it has not the three parts of a token")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise ValueError("its claims cannot be read") from None
    if not isinstance(claims, dict):
        raise ValueError("its claims cannot be read")
    principal = claims.get(principal_claim)
    if not isinstance(principal, str) or not principal.strip():
        raise ValueError(f"it has no claim {principal_claim}")
    expires_ms = _time_ms(claims, "exp")
    if expires_ms is None:
        raise ValueError("it has no claim exp")
    return TokenLife(principal.strip(), _time_ms(claims, "iat"), expires_ms)


def _time_ms(claims: dict[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e15:
        raise ValueError(f"its claim {name} is no time")
    return int(value * 1_000)


def refresh_at_ms(life: TokenLife, now_ms: int, rules: RefreshRules, dice: float) -> int:
    """When to fetch the token after one that was fetched now; `dice` is random, from 0 up to 1."""
    share = rules.window_factor + rules.window_jitter * dice
    if now_ms + 1_000 * (rules.min_period_s + rules.buffer_s) > life.expires_ms:
        # The token expires too soon for `min_period_s` and `buffer_s`.
        return now_ms + int((life.expires_ms - now_ms) * share)
    start_ms = now_ms if life.issued_ms is None else life.issued_ms
    proposed_ms = start_ms + int((life.expires_ms - start_ms) * share)
    latest_ms = life.expires_ms - 1_000 * rules.buffer_s
    if proposed_ms > latest_ms:
        return latest_ms
    return max(proposed_ms, now_ms + 1_000 * rules.min_period_s)

"""The account that a finished exchange has authenticated."""

from __future__ import annotations

from dataclasses import dataclass

#: A name in the messages of SCRAM and OAUTHBEARER, with escapes (RFC 5801), as a regular expression.
SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"


@dataclass(frozen=True, slots=True)
class Account:
    #: The name of the principal: without "User:".
    name: str
    #: When the credentials expire, in ms since 1970; None if they do not.
    expires_ms: int | None = None
    #: True for a delegation token: its user may not create another token.
    by_token: bool = False

"""The account that a finished exchange has authenticated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Account:
    #: The name of the principal: without "User:".
    name: str
    #: When the credentials expire, in ms since 1970; None if they do not.
    expires_ms: int | None = None
    #: True for a delegation token: its user may not create another token.
    by_token: bool = False

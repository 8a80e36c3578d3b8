"""Who a finished exchange has shown the peer to be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Account:
    #: The name of the principal: without "User:".
    name: str
    #: When the credentials stop being valid, in ms since 1970; None where they do not end by themselves.
    expires_ms: int | None = None
    #: True for a delegation token: who came with one may not ask for another.
    by_token: bool = False

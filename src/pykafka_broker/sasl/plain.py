"""SASL/PLAIN (RFC 4616): a user and a password in one token.

Source of the order of the checks and of the messages: Apache Kafka's PlainSaslServer.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from pykafka_broker.sasl.account import Account
from pykafka_broker.sasl.refusal import other_authorization_id, refused_in_public

PLAIN = "PLAIN"


class PlainServer:
    """One exchange with a peer."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self.user: str | None = None
        self.account: Account | None = None

    @property
    def complete(self) -> bool:
        return self.account is not None

    def respond(self, token: bytes) -> bytes:
        """The answer to the peer's only token: empty.

        Raises:
            RefusedError: the user is unknown, the password is wrong, or the token asks for another user.
        """
        parts = token.decode("utf-8", "replace").split("\0", 3)
        if len(parts) != 3:
            raise refused_in_public(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, user, password = parts
        self.user = user or None
        if not user:
            raise refused_in_public("Authentication failed: username not specified")
        if not password:
            raise refused_in_public("Authentication failed: password not specified")
        expected = self._passwords.get(user)
        # For an unknown user compare with a password that no token can hold: it contains a NUL.
        if not _same("\0" if expected is None else expected, password):
            raise refused_in_public("Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != user:
            raise other_authorization_id()
        self.account = Account(user)
        return b""


def plain_token(user: str, password: str) -> bytes:
    """The token that a client sends."""
    return f"\0{user}\0{password}".encode()


def _same(expected: str, sent: str) -> bool:
    """Compare digests: so the time of the comparison tells neither the length nor a prefix of a password."""
    return hmac.compare_digest(_digest(expected), _digest(sent))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()

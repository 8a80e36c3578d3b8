"""The SASL exchange of a connection, as the handlers of SaslHandshake and SaslAuthenticate advance it.

Source of what it answers: `sasl/exchange.py`.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from pykafka_broker.sasl.exchange import HandshakeAnswer, TokenAnswer

Answer = TypeVar("Answer")


class SaslConversation(Protocol):
    """The first and all later exchanges (KIP-368) of one connection.

    Every method raises ProtocolError if the peer leaves the order of an exchange.
    """

    @property
    def by_token(self) -> bool:
        """Whether the peer has authenticated with a delegation token."""
        ...

    def versions_told(self, answered: bool) -> None:
        """The peer sent ApiVersions before the handshake; `answered` is False if the answer is an error."""
        ...

    def handshake(self, version: int, mechanism: str) -> HandshakeAnswer | None:
        """The peer chose a mechanism; None if no exchange may begin now."""
        ...

    def token(self, token: bytes) -> TokenAnswer | None:
        """The peer sent a token; None without an exchange."""
        ...

    def misplaced(self, name: str) -> TokenAnswer:
        """The peer sent a request of the API `name` instead of a token."""
        ...

    async def last_answer(self, answer: Answer) -> Answer:
        """Return `answer` after the delay of failed authentications; the connection closes with it."""
        ...

"""The SASL exchange of a connection, as the handlers of SaslHandshake and SaslAuthenticate advance it.

Source of what it answers: `sasl/exchange.py`.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from pykafka_broker.sasl.exchange import HandshakeAnswer, TokenAnswer

Answer = TypeVar("Answer")


class SaslConversation(Protocol):
    """One connection's, from its first exchange through all that follow (KIP-368).

    Every method raises ProtocolError where the peer left the order of an exchange.
    """

    @property
    def by_token(self) -> bool:
        """Whether the peer has shown who it is with a delegation token."""
        ...

    def versions_told(self, answered: bool) -> None:
        """ApiVersions was asked for before the handshake; False if its answer is an error."""
        ...

    def handshake(self, version: int, mechanism: str) -> HandshakeAnswer | None:
        """The peer chose a mechanism; None if no exchange may begin now."""
        ...

    def token(self, token: bytes) -> TokenAnswer | None:
        """The peer sent a token; None if no exchange is under way."""
        ...

    def misplaced(self, name: str) -> TokenAnswer:
        """The peer asked for the API `name` where only a token may come."""
        ...

    async def last_answer(self, answer: Answer) -> Answer:
        """Return `answer`, with which the connection closes, after the time that a failure has to wait."""
        ...

"""SASL on a connection to a broker: who this side is, shown before its first request.

The mechanisms are PLAIN and SCRAM. A broker that ends sessions (`connections.max.reauth.ms`) closes the
connection then: its user connects anew, as after any other end.
"""

from __future__ import annotations

from collections.abc import Callable

from pykafka_broker.client.conversation import Ask, Conversation
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from pykafka_broker.sasl.plain import PLAIN, plain_token
from pykafka_broker.sasl.refusal import RefusedError
from pykafka_broker.sasl.scram_client import ScramClient
from pykafka_broker.sasl.scram_keys import SCRAM_MECHANISMS

#: The version of the handshake after which tokens are requests.
HANDSHAKE_VERSION = 1
#: Of SaslAuthenticate: the first with the lifetime of the session, for old brokers too.
AUTHENTICATE_VERSION = 1


class Login:
    """A user of a mechanism. It holds a secret, so `repr` does not show it.

    `new_nonce` makes random text, another for each exchange.
    """

    __slots__ = ("_password", "mechanism", "new_nonce", "user")

    def __init__(self, mechanism: str, user: str, password: str, new_nonce: Callable[[], str]) -> None:
        """Raises ValueError if the mechanism is none of those above."""
        if mechanism != PLAIN and mechanism not in SCRAM_MECHANISMS:
            raise ValueError(f"The SASL mechanism {mechanism} is none that this client knows")
        self.mechanism = mechanism
        self.user = user
        self._password = password
        self.new_nonce = new_nonce

    def __repr__(self) -> str:
        return f"Login({self.mechanism}, {self.user!r})"

    def authenticating(self) -> Conversation[None]:
        """Show the broker who this is.

        Raises:
            KafkaError: it does not offer the mechanism, or refuses the user, or is not who it should be.
        """
        handshake: SaslHandshakeResponse = (
            yield Ask(SaslHandshakeRequest(mechanism=self.mechanism), version=HANDSHAKE_VERSION)
        ).response
        if handshake.error_code:
            offered = ", ".join(handshake.mechanisms)
            text = f"The broker offers {offered or 'no SASL mechanism'}, and not {self.mechanism}."
            raise KafkaError(ErrorCode(handshake.error_code), text)
        if self.mechanism == PLAIN:
            yield from _told(plain_token(self.user, self._password))
            return
        client = ScramClient(SCRAM_MECHANISMS[self.mechanism], self.user, self._password, self.new_nonce())
        try:
            final = client.final((yield from _told(client.first())))
            client.verify((yield from _told(final)))
        except RefusedError as error:
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error)) from None


def _told(token: bytes) -> Conversation[bytes]:
    """The broker's token, which answers this one."""
    request = SaslAuthenticateRequest(auth_bytes=token)
    response: SaslAuthenticateResponse = (yield Ask(request, version=AUTHENTICATE_VERSION)).response
    if response.error_code:
        raise KafkaError(ErrorCode(response.error_code), response.error_message or None)
    return bytes(response.auth_bytes)

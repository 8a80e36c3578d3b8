"""SASL on a connection to a broker: this side authenticates before its first request.

The mechanisms are PLAIN, SCRAM and OAUTHBEARER. A broker that limits sessions (`connections.max.reauth.ms`)
closes the connection at the end: the caller reconnects, as after any other end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from pykafka_broker.client.core.conversation import AnotherMechanismError, Ask, Conversation
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, error_of
from pykafka_broker.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from pykafka_broker.sasl.oauth_bearer import OAUTHBEARER
from pykafka_broker.sasl.oauth_bearer_client import ACKNOWLEDGED, first_message
from pykafka_broker.sasl.plain import PLAIN, plain_token
from pykafka_broker.sasl.refusal import RefusedError
from pykafka_broker.sasl.scram_client import ScramClient
from pykafka_broker.sasl.scram_keys import SCRAM_MECHANISMS

STRONGEST_FIRST = (*sorted(SCRAM_MECHANISMS, reverse=True), PLAIN)
#: The version of SaslHandshake after which tokens are sent as SaslAuthenticate requests.
HANDSHAKE_VERSION = 1
#: The version of SaslAuthenticate: the first with a session lifetime, and old enough for old brokers.
AUTHENTICATE_VERSION = 1


class TokenSource(Protocol):
    """The source of a user's bearer tokens."""

    @property
    def token(self) -> str:
        """The newest token."""
        ...

    @property
    def extensions(self) -> Mapping[str, str]:
        """The extensions that are sent with it."""
        ...

    @property
    def is_stale(self) -> bool:
        """Whether `refresh` must be called before the next connection."""
        ...

    def refresh(self) -> None:
        """Get a new token. Blocks. Raises OSError if no valid token is left."""
        ...


class Login:
    """A user with a password, which `repr` hides. `mechanism` None is the strongest that the broker offers.

    `new_nonce` makes random text, new for each exchange. With `by_token` the user is the id of a delegation
    token and the password its HMAC in base64, for SCRAM. If no mechanism was given, `alternatives` are the
    offered mechanisms other than the one used.
    """

    __slots__ = (
        "_by_token",
        "_is_chosen",
        "_is_given",
        "_password",
        "alternatives",
        "mechanism",
        "new_nonce",
        "user",
    )

    #: A password needs no tokens.
    tokens: TokenSource | None = None

    def __init__(
        self,
        mechanism: str | None,
        user: str,
        password: str,
        new_nonce: Callable[[], str],
        by_token: bool = False,
    ) -> None:
        """Raises ValueError if the mechanism is unknown."""
        self._by_token = by_token
        self._is_given = mechanism is not None
        #: Whether no other mechanism may be tried.
        self._is_chosen = self._is_given
        self.alternatives: tuple[str, ...] = ()
        if mechanism is None:
            mechanism = STRONGEST_FIRST[0]
        if mechanism not in STRONGEST_FIRST:
            raise ValueError(f"The SASL mechanism {mechanism} is none that this client knows")
        self.mechanism = mechanism
        self.user = user
        self._password = password
        self.new_nonce = new_nonce

    def __repr__(self) -> str:
        return f"Login({self.mechanism}, {self.user!r})"

    def authenticating(self) -> Conversation[None]:
        """Authenticate with the user and the password.

        Raises:
            KafkaError: the broker does not offer the mechanism (`AnotherMechanismError`: the next connection
                uses one that it offers), refuses the user, or does not know the credential (SCRAM).
        """
        handshake: SaslHandshakeResponse = (
            yield Ask(SaslHandshakeRequest(mechanism=self.mechanism), version=HANDSHAKE_VERSION)
        ).response
        if handshake.error_code:
            others = [each for each in STRONGEST_FIRST if each in handshake.mechanisms]
            if others and not self._is_chosen:
                self.mechanism, self._is_chosen = others[0], True
                raise AnotherMechanismError(error_of(handshake.error_code))
            raise _not_offered(handshake, self.mechanism)
        self._is_chosen = True
        if not self._is_given:
            self.alternatives = tuple(
                each for each in STRONGEST_FIRST if each in handshake.mechanisms and each != self.mechanism
            )
        if self.mechanism == PLAIN:
            yield from _told(plain_token(self.user, self._password))
            return
        client = ScramClient(
            SCRAM_MECHANISMS[self.mechanism], self.user, self._password, self.new_nonce(), self._by_token
        )
        try:
            final = client.final((yield from _told(client.first())))
            client.verify((yield from _told(final)))
        except RefusedError as error:
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error)) from None


class TokenLogin:
    """A user with bearer tokens (OAUTHBEARER). The shell of a connection refreshes them."""

    __slots__ = ("tokens",)

    mechanism = OAUTHBEARER

    def __init__(self, tokens: TokenSource) -> None:
        self.tokens = tokens

    def __repr__(self) -> str:
        return f"TokenLogin({OAUTHBEARER})"

    def authenticating(self) -> Conversation[None]:
        """Authenticate with the newest token.

        Raises:
            KafkaError: the broker does not offer the mechanism, or refuses the token.
        """
        handshake: SaslHandshakeResponse = (
            yield Ask(SaslHandshakeRequest(mechanism=OAUTHBEARER), version=HANDSHAKE_VERSION)
        ).response
        if handshake.error_code:
            raise _not_offered(handshake, OAUTHBEARER)
        refused = yield from _told(first_message(self.tokens.token, self.tokens.extensions))
        if refused:
            yield from _told(ACKNOWLEDGED)
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, "The broker does not accept the token.")


def _not_offered(handshake: SaslHandshakeResponse, mechanism: str) -> KafkaError:
    offered = ", ".join(handshake.mechanisms)
    text = f"The broker offers {offered or 'no SASL mechanism'}, and not {mechanism}."
    return KafkaError(error_of(handshake.error_code), text)


def _told(token: bytes) -> Conversation[bytes]:
    """Send a token; returns the broker's answer."""
    request = SaslAuthenticateRequest(auth_bytes=token)
    response: SaslAuthenticateResponse = (yield Ask(request, version=AUTHENTICATE_VERSION)).response
    if response.error_code:
        raise KafkaError(error_of(response.error_code), response.error_message or None)
    return bytes(response.auth_bytes)

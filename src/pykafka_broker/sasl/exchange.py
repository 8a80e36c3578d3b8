"""The order in which a peer authenticates: versions, the handshake, tokens.

    ApiVersions (once, if at all) > SaslHandshake > SaslAuthenticate ... > complete

After SaslHandshake v0 the tokens come as bare frames. A peer that leaves this order is disconnected, without
an answer unless a method says otherwise. An answer with `closes` is the last one: the shell sends it after
`connection.failed.authentication.delay.ms`. A peer that authenticates again (KIP-368) begins with the
handshake, in an exchange that knows the previous `Session`.

Source: Apache Kafka's SaslServerAuthenticator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.sasl.account import Account
from pykafka_broker.sasl.refusal import RefusedError, UnreadableTokenError

#: A SaslHandshake sooner than this after the last reauthentication began starts no exchange.
MIN_REAUTHENTICATION_INTERVAL_MS = 1_000

#: The most characters of an error message: it may quote names, and before v2 it fits only 32,767 bytes.
MOST_TOLD = 1_000


class MechanismServer(Protocol):
    """A mechanism as a server runs it, for one exchange."""

    @property
    def user(self) -> str | None:
        """The user that the peer claims to be; None while unknown."""
        ...

    @property
    def account(self) -> Account | None:
        """The peer's account; None until the exchange is complete."""
        ...

    def respond(self, token: bytes) -> bytes:
        """The answer to the peer's next token. Raises RefusedError and UnreadableTokenError."""
        ...


@dataclass(frozen=True, slots=True)
class OfferedMechanism:
    #: Makes the server's side of one exchange.
    start: Callable[[], MechanismServer]
    #: `connections.max.reauth.ms`; 0 sets no limit.
    max_reauth_ms: int = 0


@dataclass(frozen=True, slots=True)
class Session:
    """A finished exchange."""

    mechanism: str
    account: Account
    #: The lifetime of the session, which the peer is told; None: until the connection closes.
    lifetime_ms: int | None

    def is_renewed(self, since_last_ms: int | None, *, is_over: bool) -> bool:
        """Whether a handshake begins another exchange; `since_last_ms` ago another one has begun, in this
        session or an earlier one (None: none has).

        Raises:
            OutOfOrderError: the handshake comes too early, and the session is over.
        """
        if self.lifetime_ms is None:
            return False
        if since_last_ms is None or since_last_ms >= MIN_REAUTHENTICATION_INTERVAL_MS:
            return True
        if is_over:
            raise OutOfOrderError("The peer authenticates too often, and its session is over")
        return False


@dataclass(frozen=True, slots=True)
class HandshakeAnswer:
    error_code: int
    #: All offered mechanisms, in the order of the offer.
    mechanisms: list[str]
    closes: bool = False
    #: False: the connection closes without this answer.
    is_sent: bool = True


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    error_code: int = ErrorCode.NONE
    error_message: str = ""
    token: bytes = b""
    lifetime_ms: int = 0
    closes: bool = False
    #: Why it closes, for this node's log; contains no secret and nothing that the peer sent.
    reason: str = field(default="", compare=False)


class OutOfOrderError(Exception):
    """The peer sent a request out of order; its connection closes without an answer."""


class _Next(Enum):
    """What may come next."""

    VERSIONS_OR_HANDSHAKE = auto()
    HANDSHAKE = auto()
    TOKEN = auto()
    #: A token, which will fail: the handshake chose another mechanism than the previous session's.
    TOKEN_IN_VAIN = auto()
    NOTHING = auto()


class SaslExchange:
    """One exchange; a connection begins with one, and gets another when its peer authenticates again."""

    def __init__(self, offer: Mapping[str, OfferedMechanism], before: Session | None = None) -> None:
        self._offer = offer
        self._before = before
        self._next = _Next.VERSIONS_OR_HANDSHAKE if before is None else _Next.HANDSHAKE
        #: The mechanism that the peer has chosen, offered or not.
        self.mechanism = ""
        self._server: MechanismServer | None = None
        self._bare_tokens = False
        #: Set when the peer is authenticated.
        self.session: Session | None = None

    @property
    def user(self) -> str | None:
        """The user that the peer claims to be; None while unknown."""
        return None if self._server is None else self._server.user

    @property
    def expects_bare_token(self) -> bool:
        """The next frame is a token, without the header of a request."""
        return self._bare_tokens and self._next in (_Next.TOKEN, _Next.TOKEN_IN_VAIN)

    def on_versions(self, answered: bool) -> None:
        """The peer sent ApiVersions; `answered` is False if the answer is an error: the peer may ask again.

        Raises:
            OutOfOrderError: the peer asked twice, or after the handshake.
        """
        if self._next is not _Next.VERSIONS_OR_HANDSHAKE:
            raise self._out_of_order("ApiVersions")
        if answered:
            self._next = _Next.HANDSHAKE

    def on_handshake(self, version: int, mechanism: str) -> HandshakeAnswer:
        """The peer chose a mechanism.

        Raises:
            OutOfOrderError: the peer had already chosen one.
        """
        if self._next not in (_Next.VERSIONS_OR_HANDSHAKE, _Next.HANDSHAKE):
            raise self._out_of_order("SaslHandshake")
        self.mechanism = mechanism
        mechanisms = list(self._offer)
        offered = self._offer.get(mechanism)
        if offered is None:
            self._next = _Next.NOTHING
            return HandshakeAnswer(
                ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms, closes=True, is_sent=self._before is None
            )
        self._bare_tokens = version == 0
        if self._before is not None and self._before.mechanism != mechanism:
            self._next = _Next.TOKEN_IN_VAIN
        else:
            self._server = offered.start()
            self._next = _Next.TOKEN
        return HandshakeAnswer(ErrorCode.NONE, mechanisms)

    def on_other_request(self, name: str) -> TokenAnswer:
        """The peer sent a request of the API `name` during the exchange.

        After the handshake this is every API but SaslAuthenticate; the error and its message go into an
        answer of that API.

        Raises:
            OutOfOrderError: the peer has not chosen a mechanism: the request is not even read.
        """
        if self._next is not _Next.TOKEN or self._bare_tokens:
            raise self._out_of_order(name)
        self._next = _Next.NOTHING
        reason = f"Unexpected Kafka request of type {name} during SASL authentication."
        return TokenAnswer(ErrorCode.ILLEGAL_SASL_STATE, reason, closes=True, reason=reason)

    def on_token(self, token: bytes, now_ms: int) -> TokenAnswer:
        """The peer sent a token. After a bare token the shell does not send an answer that `closes`, it only
        closes the connection.

        Raises:
            OutOfOrderError: the peer chose no mechanism, or another one than in the previous session.
            UnreadableTokenError: the connection closes without an answer, as Apache Kafka's does.
        """
        server = self._server
        if self._next is not _Next.TOKEN or server is None:
            raise self._out_of_order("SaslAuthenticate")
        try:
            answer = server.respond(token)
            account = server.account
            if account is not None:
                self._refuse_another_principal(account)
        except RefusedError as refusal:
            self._next = _Next.NOTHING
            return TokenAnswer(
                ErrorCode.SASL_AUTHENTICATION_FAILED,
                (refusal.told or self._nothing_told())[:MOST_TOLD],
                closes=True,
                reason=str(refusal),
            )
        except UnreadableTokenError:
            self._next = _Next.NOTHING
            raise
        if account is None:
            return TokenAnswer(token=answer)
        self._next = _Next.NOTHING
        lifetime_ms = _lifetime_ms(self._offer[self.mechanism].max_reauth_ms, account.expires_ms, now_ms)
        self.session = Session(self.mechanism, account, lifetime_ms)
        return TokenAnswer(token=answer, lifetime_ms=lifetime_ms or 0)

    def _refuse_another_principal(self, account: Account) -> None:
        before = self._before
        if before is not None and before.account.name != account.name:
            reason = "Cannot change principals during re-authentication"
            names = f"User.{before.account.name}: User.{account.name}"
            raise RefusedError(reason, told=f"{reason} from {names}")

    def _nothing_told(self) -> str:
        """The error message that is the same for every reason."""
        step = "authentication" if self._before is None else "re-authentication"
        return (
            f"Authentication failed during {step} "
            f"due to invalid credentials with SASL mechanism {self.mechanism}"
        )

    def _out_of_order(self, what: str) -> OutOfOrderError:
        expected, self._next = self._next, _Next.NOTHING
        return OutOfOrderError(f"{what} came where {expected.name} was expected")


def _lifetime_ms(max_reauth_ms: int, expires_ms: int | None, now_ms: int) -> int | None:
    limits = [max_reauth_ms] if max_reauth_ms > 0 else []
    if expires_ms is not None:
        limits.append(expires_ms - now_ms)
    return max(0, min(limits)) if limits else None

"""SASL on a listener: an exchange (`sasl/exchange.py`) tells who a connection's peer is.

A connection goes through stages, each with routes of its own, so that serving a request needs no check of
the stage:

    versions, handshake    ApiVersions and SaslHandshake; any other request closes the connection
    tokens                 SaslAuthenticate; after any other request the connection closes, with an answer if
                           its API has an `error_response`
    authenticated          all that the listener serves
    expired                SaslHandshake; any other request closes the connection

A session with a lifetime (`connections.max.reauth.ms`, KIP-368) expires unless the peer completes another
exchange before; this begins with SaslHandshake. During an exchange a request may have at most
`sasl.server.max.receive.size` bytes.

Source: Apache Kafka's SaslServerAuthenticator, KafkaChannel and SocketServer.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pykafka_broker.apis.api import CLOSE
from pykafka_broker.network.connection_lines import authenticated
from pykafka_broker.network.identity import ANONYMOUS, Identifiable, Identity
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.protocol.messages import API_VERSIONS_KEY
from pykafka_broker.sasl.exchange import (
    HandshakeAnswer,
    OfferedMechanism,
    OutOfOrderError,
    SaslExchange,
    Session,
    TokenAnswer,
)
from pykafka_broker.sasl.refusal import UnreadableTokenError

if TYPE_CHECKING:
    from pykafka_broker.apis.api import Api, Handler
    from pykafka_broker.machine.clock import Clock, Timer
    from pykafka_broker.network.dispatch import Dispatch
    from pykafka_broker.network.faults import Faults
    from pykafka_broker.network.transports import TransportPeer

SASL_HANDSHAKE = 17
SASL_AUTHENTICATE = 36

Answer = TypeVar("Answer")

#: The word boundaries in the name of an API.
_NEXT_WORD = re.compile(r"(?<!^)(?=[A-Z])")


class _Stages:
    """The routes of one listener's stages."""

    def __init__(self, served: Dispatch[Any]) -> None:
        self.authenticated = served
        self.first = served.restricted(_first, "the peer has not authenticated")
        self.tokens = served.restricted(_token_or_misplaced, "the peer has not authenticated")
        self.expired = served.restricted(
            lambda api: api.handle if api.key == SASL_HANDSHAKE else None, "the session of the peer is over"
        )


class Sasl:
    """The authentication of one listener; `offer` has its mechanisms in the order that clients see."""

    def __init__(
        self,
        offer: Mapping[str, OfferedMechanism],
        clock: Clock,
        faults: Faults,
        *,
        max_receive_bytes: int,
        failure_delay_ms: int,
    ) -> None:
        self.offer = offer
        self.clock = clock
        self.faults = faults
        self.max_receive_bytes = max_receive_bytes
        self.failure_delay_ms = failure_delay_ms
        #: Logins, sessions that were renewed, and failures of both.
        self.logins = 0
        self.renewals = 0
        self.failed_logins = 0
        self.failed_renewals = 0
        self._stages: _Stages | None = None

    def begin(self, connection: Identifiable, dispatch: Dispatch[Any], peer: TransportPeer) -> Identity:
        if self._stages is None or self._stages.authenticated is not dispatch:
            self._stages = _Stages(dispatch)
        return SaslOfConnection(self, self._stages, connection).first()


class SaslOfConnection:
    """The exchanges of one connection, as handlers see them (`SaslConversation` in `apis/ports/sasl.py`)."""

    def __init__(self, listener: Sasl, stages: _Stages, connection: Identifiable) -> None:
        self._listener = listener
        self._stages = stages
        self._connection = connection
        #: The exchange in progress.
        self._exchange: SaslExchange | None = SaslExchange(listener.offer)
        #: The result of the last finished exchange.
        self._session: Session | None = None
        self._is_expired = False
        self._expiry: Timer | None = None
        #: When the last reauthentication began (monotonic).
        self._began_again_ms: int | None = None
        connection.on_close(self._forget_expiry)

    @property
    def by_token(self) -> bool:
        return self._session is not None and self._session.account.by_token

    def first(self) -> Identity:
        """The identity before any exchange."""
        return self._identity(self._stages.first)

    def _identity(
        self, routes: Dispatch[Any], take_token: Callable[[bytes], bytes | None] | None = None
    ) -> Identity:
        principal = ANONYMOUS if self._session is None else f"User:{self._session.account.name}"
        limit = None if self._exchange is None else self._listener.max_receive_bytes
        return Identity(principal, routes, self, take_token, limit)

    def versions_told(self, answered: bool) -> None:
        if self._exchange is not None:
            try:
                self._exchange.on_versions(answered)
            except OutOfOrderError as error:
                raise ProtocolError(str(error)) from None

    def handshake(self, version: int, mechanism: str) -> HandshakeAnswer | None:
        try:
            exchange = self._exchange or self._begun_again()
            if exchange is None:
                return None
            answer = exchange.on_handshake(version, mechanism)
        except OutOfOrderError as error:
            raise ProtocolError(str(error)) from None
        if answer.closes:
            self._log_failure(exchange, "Unsupported SASL mechanism")
            if not answer.is_sent:
                raise ProtocolError("The peer asked for another mechanism when it authenticated again")
        else:
            take_token = self._bare_token if exchange.expects_bare_token else None
            self._connection.identify(self._identity(self._stages.tokens, take_token))
        return answer

    def _begun_again(self) -> SaslExchange | None:
        """The next exchange of an authenticated peer; None without a session lifetime, or if too early."""
        session = self._session
        assert session is not None
        now_ms, before_ms = self._listener.clock.monotonic_ms(), self._began_again_ms
        since_last_ms = None if before_ms is None else now_ms - before_ms
        if not session.is_renewed(since_last_ms, is_over=self._is_expired):
            return None
        self._began_again_ms = now_ms
        self._forget_expiry()
        self._exchange = SaslExchange(self._listener.offer, session)
        return self._exchange

    def token(self, token: bytes) -> TokenAnswer | None:
        exchange = self._exchange
        if exchange is None:
            return None
        try:
            answer = exchange.on_token(token, self._listener.clock.now_ms())
        except (OutOfOrderError, UnreadableTokenError) as error:
            raise ProtocolError(str(error)) from None
        if answer.closes:
            self._log_failure(exchange, answer.reason)
        elif exchange.session is not None:
            self._finish(exchange.session)
        return answer

    def _finish(self, session: Session) -> None:
        again = self._session is not None
        if again:
            self._listener.renewals += 1
        else:
            self._listener.logins += 1
        self._session = session
        self._exchange = None
        self._is_expired = False
        self._connection.identify(self._identity(self._stages.authenticated))
        authenticated(self._connection, session.mechanism, again=again)
        if session.lifetime_ms is not None:
            clock = self._listener.clock
            self._expiry = clock.call_at(clock.monotonic_ms() + session.lifetime_ms, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        self._is_expired = True
        self._connection.identify(self._identity(self._stages.expired))

    def _forget_expiry(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    def _bare_token(self, token: bytes) -> bytes | None:
        """The answer to a token without a header; None if the connection closes without one."""
        try:
            answer = self.token(token)
        except ProtocolError:
            raise
        except Exception as error:
            self._listener.faults.of_bare_token(self._connection, error)
            answer = None
        if answer is not None and not answer.closes:
            return answer.token
        self._connection.close_after(self._listener.failure_delay_ms)
        return None

    def misplaced(self, name: str) -> TokenAnswer:
        exchange = self._exchange
        assert exchange is not None
        try:
            answer = exchange.on_other_request(name)
        except OutOfOrderError as error:
            raise ProtocolError(str(error)) from None
        self._log_failure(exchange, answer.reason)
        return answer

    async def last_answer(self, answer: Answer) -> Answer:
        await self._listener.clock.sleep(self._listener.failure_delay_ms)
        self._connection.close_when_answered()
        return answer

    def _log_failure(self, exchange: SaslExchange, reason: str) -> None:
        if self._session is None:
            self._listener.failed_logins += 1
        else:
            self._listener.failed_renewals += 1
        self._listener.faults.of_login(self._connection, exchange.mechanism, exchange.user, reason)


def _first(api: Api[Any]) -> Handler[Any] | None:
    if api.key == API_VERSIONS_KEY:
        return partial(_versions, api)
    return api.handle if api.key == SASL_HANDSHAKE else None


def _versions(api: Api[Any], request: Any, ctx: Any) -> Any:
    answer = api.handle(request, ctx)
    ctx.connection.sasl.versions_told(answer.error_code == ErrorCode.NONE)
    return answer


def _token_or_misplaced(api: Api[Any]) -> Handler[Any]:
    return api.handle if api.key == SASL_AUTHENTICATE else partial(_misplaced, api)


def _misplaced(api: Api[Any], request: Any, ctx: Any) -> Awaitable[Any]:
    told = ctx.connection.sasl.misplaced(_NEXT_WORD.sub("_", api.name).upper())
    error = KafkaError(ErrorCode(told.error_code), told.error_message)
    answer = CLOSE if api.error_response is None else api.error_response(request, error)
    last_answer: Awaitable[Any] = ctx.connection.sasl.last_answer(answer)
    return last_answer

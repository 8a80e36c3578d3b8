"""One client connection: frames in, answers out, in order.

An `asyncio.BufferedProtocol` around two cores: `FrameReader` cuts the bytes into frames, `Dispatch` finds the
handler of each. This file has the way of a request: received, decoded, handled, answered.

**A round** is the work of one wake-up: every complete frame is decoded, handed to its handler and answered
into one buffer, which goes to the transport in one write. `records` are never copied: on the way in they are
a view of the receive buffer.

**Order.** Answers leave in the order of their requests (`answers.py`). The answer of a `def` handler is
written at once. A coroutine runs at once up to its first wait. If it never waits, as nearly always with the
coordinators, its answer is written at once too. If it waits, it becomes a task and holds the connection: the
next request starts when it is done, as Kafka mutes the channel. `Later` reserves the place of its answer and
lets the next request start.

**Holds** are the reasons why no further request may start (`holds.py`). Bytes that come meanwhile are kept up
to `read_ahead_bytes`; then the connection stops reading, and TCP tells the peer.

**Limits** are in `limits.py` and, over all connections, in `memory.py`; `memory_account.py` counts the use
of this connection. A connection has no timer of its own: the sweep calls `check()` (`deadlines.py`).

**Errors** are counted and logged in `faults.py`. A fault of the peer closes its connection; an exception
out of a handler is answered if the API has an `error_response`. Other connections never notice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator, Iterable
from struct import Struct
from struct import error as StructError  # noqa: N812
from types import CoroutineType, coroutine
from typing import TYPE_CHECKING, Any, cast

from pykafka_broker.apis.api import NO_RESPONSE, Later
from pykafka_broker.apis.context import Context
from pykafka_broker.network import connection_lines
from pykafka_broker.network.addresses import plain_address
from pykafka_broker.network.answers import Answers, request_logger
from pykafka_broker.network.connection_factory import Accepted
from pykafka_broker.network.deadlines import Deadlines
from pykafka_broker.network.holds import CLOSING, HANDLING, OTHERS_TURN, OTHERS_UNREAD, Holds
from pykafka_broker.network.identity import Authentication, Identity
from pykafka_broker.network.measured_answers import MeasuredAnswers
from pykafka_broker.network.memory_account import MemoryAccount
from pykafka_broker.network.patience import Patience
from pykafka_broker.network.peer import Peer
from pykafka_broker.network.purgatory import Disconnected
from pykafka_broker.network.shared import Shared
from pykafka_broker.network.transports import peer_of
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.compile import skip_tags
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.frames import FrameReader
from pykafka_broker.protocol.messages import API_VERSIONS_KEY

if TYPE_CHECKING:
    from pykafka_broker.apis.api import Api
    from pykafka_broker.apis.ports.sasl import SaslConversation
    from pykafka_broker.network.dispatch import Dispatch

#: A longer client id is not kept; it may have 32 KiB.
MAX_REMEMBERED_CLIENT_ID_BYTES = 256

#: A request answered by a coroutine takes several times as long as a produce or a fetch: it counts as this
#: many more of `requests_per_round`.
COROUTINE_COST = 9

#: Each KiB of an answer counts as one more of `requests_per_round`.
ANSWER_BYTES_PER_REQUEST = 1024

#: ApiVersions v0, as the first four bytes of a request.
API_VERSIONS_V0 = API_VERSIONS_KEY << 16

#: API key and version as one number, correlation id, length of the client id.
_unpack_request_header = Struct(">Iih").unpack_from


class Connection(Peer, asyncio.BufferedProtocol):
    """Serves one client."""

    __slots__ = (
        "_account",
        "_authentication",
        "_client_id_bytes",
        "_counters",
        "_deadlines",
        "_dispatch",
        "_holds",
        "_listener_dispatch",
        "_node",
        "_on_close",
        "_on_lost",
        "_patience",
        "_reader",
        "_round_left",
        "_served",
        "_shared",
        "_take_token",
        "_transport",
        "answers",
        "closed",
        "sasl",
    )

    def __init__(
        self,
        shared: Shared,
        node: object,
        dispatch: Dispatch[Any],
        authentication: Authentication,
        accepted: Accepted,
    ) -> None:
        super().__init__(accepted)
        #: The exchange that the SASL handlers use; None on a listener without SASL.
        self.sasl: SaslConversation | None
        #: Serves the next frame, which is a token without the header of a request.
        self._take_token: Callable[[bytes], bytes | None] | None
        self.closed = False
        self._shared = shared
        self._node = node
        self._counters = shared.counters
        self._authentication = authentication
        #: The routes of the listener, and those of them that the peer may use.
        self._listener_dispatch = dispatch
        self._dispatch: Dispatch[Any]
        self._on_lost = accepted.on_lost
        self._on_close: list[Callable[[], None]] = []
        self._reader = FrameReader(shared.landing, shared.limits.request_max_bytes)
        self._patience = Patience(shared.limits, shared.clock.monotonic_ms())
        self._holds = Holds(shared.clock, self._may_go_on)
        # Made when the transport opens.
        self._transport: asyncio.Transport
        self._account: MemoryAccount
        self.answers: Answers
        self._deadlines: Deadlines
        #: Requests that may still be served in this turn of the event loop.
        self._round_left = 0
        #: Requests that have started.
        self._served = 0
        # The client id rarely changes, so its bytes are kept beside its text.
        self._client_id_bytes: Buffer | None = None

    # For handlers and the rest of the server.

    @property
    def outstanding_answers(self) -> int:
        """Requests whose answers are not written yet."""
        return len(self.answers.slots)

    @property
    def answer_budget_bytes(self) -> int:
        """The most bytes that an answer should have, given the unread answers of all peers."""
        return self._shared.unsent.budget_bytes

    @property
    def listed_apis(self) -> Iterable[Api[Any]]:
        """The APIs that ApiVersions lists of those that our listener serves, in key order."""
        return self._listener_dispatch.listed

    @property
    def local_address(self) -> tuple[str, int]:
        """The address the peer reached us at."""
        host, port = self._transport.get_extra_info("sockname")[:2]
        return plain_address(host), port

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection is lost."""
        if self.closed:
            callback()
        else:
            self._on_close.append(callback)

    def identify(self, identity: Identity) -> None:
        """Use `identity` from the next request on; only the authentication of the listener calls this."""
        self.principal = identity.principal
        self._dispatch = identity.dispatch
        self.sasl = identity.sasl
        self._take_token = identity.take_token
        self._reader.max_frame_bytes = identity.request_max_bytes or self._shared.limits.request_max_bytes

    def throttle(self, duration_ms: int) -> None:
        """Start no further request for `duration_ms`, as an answer's throttle_time_ms promises."""
        self._holds.throttle(duration_ms)

    def close_when_answered(self) -> None:
        """As `finish`, for the handler of a request that is not answered yet."""
        self._holds.reasons |= CLOSING
        asyncio.get_running_loop().call_soon(self.finish)

    def close_after(self, duration_ms: int) -> None:
        """Start no further request, and `finish` after `duration_ms`."""
        self._holds.reasons |= CLOSING
        clock = self._shared.clock
        clock.call_at(clock.monotonic_ms() + duration_ms, self.finish)

    def close(self) -> None:
        """Close once the answers written so far are sent; requests that have not started never will."""
        self.answers.close()

    def abort(self) -> None:
        """Close now; unsent answers are lost."""
        self.answers.abort()

    def finish(self) -> None:
        """Start no further request, and close when the outstanding ones are answered."""
        self.answers.finish()

    def reads_ahead(self, change_bytes: int) -> None:
        """Count bytes that are being read into memory for an answer; negative when they are freed."""
        self._shared.unsent.count(change_bytes)

    # asyncio's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)
        shared, reader, patience, holds = self._shared, self._reader, self._patience, self._holds
        self._account = account = MemoryAccount(transport, reader, patience, shared)
        new_answers = Answers if shared.times is None else MeasuredAnswers
        self.answers = answers = new_answers(self, transport, holds, patience, shared)
        self._deadlines = Deadlines(self, reader, answers, holds, account, patience, shared)
        self.identify(self._authentication.begin(self, self._listener_dispatch, peer_of(transport)))
        shared.connections.add(self)
        self._counters.connections_opened += 1
        connection_lines.accepted(self, logs_in=self.sasl is not None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        shared = self._shared
        shared.connections.discard(self)
        reason = self.closes_because or (str(exc) if exc is not None else "this node closed it")
        connection_lines.closed(self, self._served, reason)
        self._holds.close()
        self._reader.close()
        shared.unsent.forget(self)
        self.answers.drop()
        self._account.count_requests()
        self.sasl = self._take_token = None
        callbacks, self._on_close = self._on_close, []
        for callback in callbacks:
            callback()
        self._on_lost()

    def eof_received(self) -> bool:
        """The peer closed its side: close ours, as Kafka does, after the answers written so far are sent."""
        self._holds.reasons |= CLOSING
        self.closes_because = self.closes_because or "its peer closed it"
        return self.answers.is_sending

    def get_buffer(self, sizehint: int) -> memoryview:
        buffer = self._reader.get_buffer()
        if self._shared.request_memory.full and not self._account.request_bytes:
            # A small request fits; of a large one only this much is read before the connection has to wait.
            return buffer[:4096]
        return buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._patience.active = True
        self._counters.bytes_received += nbytes
        self._reader.received(nbytes)
        self._round()

    def pause_writing(self) -> None:
        self.answers.pause()

    def resume_writing(self) -> None:
        self.answers.resume()

    # Requests.

    def _round(self) -> None:
        """Serve the requests that have arrived until a hold stops it; keep the rest for later."""
        reader, holds = self._reader, self._holds
        if not holds.reasons:
            answers = self.answers
            answers.are_logged = request_logger.isEnabledFor(logging.DEBUG)
            if answers.measures:
                answers.begin_round()
            try:
                self._round_left = self._shared.limits.requests_per_round
                while self._round_left > 0:
                    self._round_left -= 1
                    frame = reader.next_frame()
                    if frame is None:
                        break
                    if answers.measures:
                        answers.request_bytes = len(frame)
                    if self._serve(frame):
                        break
                else:
                    # There may be more requests: other connections have their turn first.
                    holds.reasons |= OTHERS_TURN
                    asyncio.get_running_loop().call_soon(self._take_turn)
            except ProtocolError as error:
                self._blame(str(error))
            answers.flush()
        reader.settle()
        account = self._account
        if reader.held_bytes or account.request_bytes:
            account.count_requests()
        if holds.reasons:
            account.stand_still()

    def _serve(self, frame: memoryview) -> int:
        """Decode one request, call its handler, and write or await the answer; returns the holds.

        Raises:
            ProtocolError: the frame is no request that is served here.
        """
        holds, answers = self._holds, self.answers
        if self._take_token is not None:
            return self._serve_token(self._take_token(bytes(frame)))
        try:
            code, correlation_id, client_id_bytes = _unpack_request_header(frame)
        except StructError:
            raise ProtocolError(f"A request header does not fit into {len(frame)} bytes") from None
        route = self._dispatch.routes.get(code)
        if route is None:
            route = self._dispatch.find(code)
            if route is None:
                self._answer_unsupported_api_versions(correlation_id)
                return holds.reasons
        if route.large_answers and self._shared.unsent.full:
            self._reader.put_back(frame)
            self._shared.unsent.wait(self)
            holds.reasons |= OTHERS_UNREAD
            return holds.reasons
        pos = 10
        client_id = None
        if client_id_bytes >= 0:
            pos += client_id_bytes
            name = frame[10:pos]
            if name == self._client_id_bytes:
                client_id = self.client_id
            else:
                client_id = self._read_client_id(name, client_id_bytes)
        if route.flexible_request:
            try:
                pos = skip_tags(frame, pos, len(frame)) if frame[pos] else pos + 1
            except IndexError:
                raise ProtocolError(f"The header of {route.name} v{route.version} is cut short") from None
        request, _ = route.decode(frame, pos)
        route.requests += 1
        self._counters.requests += 1
        self._served += 1
        context = Context(
            self._node, self, code >> 16, route.version, correlation_id, client_id, self.principal
        )
        if answers.are_logged:
            answers.log_request(route, context)
        try:
            answer = route.handle(request, context)
        except Exception as error:
            answer = self._shared.faults.of_handler(route, context, request, error, self)
        kind = answer.__class__
        if kind is CoroutineType:
            coroutine = answer
            self._round_left -= COROUTINE_COST
            try:
                waits_for = coroutine.send(None)
            except StopIteration as end:
                answer = end.value
            except Disconnected:
                answer = NO_RESPONSE
            except Exception as error:
                answer = self._shared.faults.of_handler(route, context, request, error, self)
            else:
                going_on = _going_on(coroutine, waits_for)
                answers.wait_for(going_on, self._served, route, context, request, HANDLING)
                return holds.reasons
            kind = answer.__class__
        if kind is Later:
            answers.wait_for(answer.awaitable, self._served, route, context, request, 0)
        elif answer is not NO_RESPONSE:
            size = answers.add(route, context, answer, request)
            self._round_left -= size // ANSWER_BYTES_PER_REQUEST
        else:
            answers.add_none(route, context)
        return holds.reasons

    def _serve_token(self, answer: bytes | None) -> int:
        """Answer a bare SASL token, also without a header, unless `answer` is None; returns the holds."""
        self._served += 1
        if answer is not None:
            self.answers.add_token(answer)
        return self._holds.reasons

    def _read_client_id(self, name: memoryview, size: int) -> str:
        """The text of a client id that differs from the last one."""
        if len(name) < size:
            raise ProtocolError("A request header is cut short")
        client_id = str(name, "utf-8", "replace")
        if size <= MAX_REMEMBERED_CLIENT_ID_BYTES:
            self._client_id_bytes = bytes(name)
            self.client_id = client_id
        return client_id

    def _answer_unsupported_api_versions(self, correlation_id: int) -> None:
        """KIP-511: the v0 body, so that a client of any version learns which versions there are."""
        from pykafka_broker.apis.api_versions import unsupported_version

        route = self._dispatch.find(API_VERSIONS_V0)
        assert route is not None
        context = Context(self._node, self, API_VERSIONS_KEY, 0, correlation_id, None, self.principal)
        self.answers.add(route, context, unsupported_version(), None)

    # Errors.

    def _blame(self, what: str) -> None:
        """The peer broke the protocol."""
        client = f" (client id {self.client_id!r})" if self.client_id else ""
        self._shared.faults.of_peer(self, "protocol", what, client)
        self.finish()

    # Going on.

    def _may_go_on(self) -> None:
        """The last hold ended: schedule the next round, as this may be called within a round."""
        if self._reader.pending_bytes or self._account.is_ahead:
            asyncio.get_running_loop().call_soon(self._go_on)

    def _take_turn(self) -> None:
        """Go on after other connections had their turn."""
        self._holds.reasons &= ~OTHERS_TURN
        self._go_on()

    def _go_on(self) -> None:
        """Serve requests that had to wait, and read again."""
        if self._holds.reasons:
            return
        self._reader.land()
        self._round()
        if self._account.is_ahead and not self._holds.reasons:
            self._account.has_caught_up()

    def may_answer(self) -> None:
        """There is room again for unsent answers."""
        self._holds.let_go(OTHERS_UNREAD)

    # The sweep.

    def check(self, now_ms: int) -> None:
        """Close the connection if it is idle, a request takes too long to arrive, or answers are not read."""
        if not self.closed:
            self._deadlines.check(now_ms, self._served, self._dispatch if self._take_token is None else None)

    def drop_unread(self) -> None:
        """Close it: all peers together leave too much unread, and this one is among the slowest."""
        self._deadlines.drop_unread()

    @property
    def idle_since_ms(self) -> int:
        """When a sweep last saw that something had moved here (time of sweeps)."""
        return self._patience.active_ms

    @property
    def stalled_since_ms(self) -> int | None:
        """When sweeps first saw that the peer reads none of its answers (their time); None while it reads."""
        return self._patience.stalled_since_ms

    @property
    def unsent_bytes(self) -> int:
        """Bytes of answers the peer has not read, as of the last sweep."""
        return self.answers.unsent_bytes


@coroutine
def _going_on(handler: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
    """A handler that has begun and awaits `waits_for`, as a coroutine that a task can run."""
    while True:
        try:
            yield waits_for
        except BaseException as error:
            try:
                waits_for = handler.throw(error)
            except StopIteration as end:
                return end.value
        else:
            return (yield from handler)

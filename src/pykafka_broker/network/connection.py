"""One client connection: frames in, answers out, in order.

An `asyncio.BufferedProtocol` around two cores: `FrameReader` cuts the bytes into frames, `Dispatch` finds the
handler of each. This file keeps the order of requests and answers, and the limits.

**A round** is the work of one wake-up: every complete frame is decoded, handed to its handler and answered
into one output buffer, which goes to the transport in one write. `records` are never copied: they are a view
of the receive buffer on the way in, and on the way out a buffer of their own in `writelines` or, if there are
many, still in their file (`sending.py`).

**Order.** Answers leave in the order of their requests. The answer of a `def` handler is written at once. A
coroutine begins in the turn of its request. If it never waits, its answer is written at once too: so it is
nearly always with the coordinators. Where it first waits it becomes a task and holds the connection: the
next request starts when it is done, as in Kafka, where a channel is muted meanwhile. `Later` reserves the
answer's slot and lets the next request start; answers that are ready before their turn wait in their slots.

**Holds** are the reasons why no further request may start: a handler runs, too many answers are outstanding,
the peer does not read its answers, an answer is read from its file while it is sent, other peers do not read
theirs and this request's may be large, the peer is throttled, a long round gives way to other connections, or
the connection is closing. Bytes that come meanwhile are kept up to `read_ahead_bytes`; then the connection
stops reading, and TCP tells the peer.

**Limits** are in `limits.py` and, over all connections, in `memory.py`; `account.py` counts the use
of this connection. Nothing has a timer of its own: the sweep calls `check()`, and `patience.py` knows the
deadlines.

**Errors** are counted and logged in `faults.py`. A fault of the peer closes its connection; an exception
out of a handler is answered if the API has an `error_response`. Other connections never notice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from struct import Struct
from struct import error as StructError  # noqa: N812
from types import CoroutineType, coroutine
from typing import TYPE_CHECKING, Any, cast

from pykafka_broker.apis.api import CLOSE, NO_RESPONSE, Later
from pykafka_broker.apis.context import Context
from pykafka_broker.network.account import Account
from pykafka_broker.network.addresses import plain_address
from pykafka_broker.network.authentication import Authentication, Identity
from pykafka_broker.network.connection_factory import Accepted
from pykafka_broker.network.patience import Patience
from pykafka_broker.network.purgatory import Disconnected
from pykafka_broker.network.sending import IN_MEMORY, Sender
from pykafka_broker.network.shared import Shared
from pykafka_broker.network.transports import peer_of
from pykafka_broker.network.unanswered import GRACE_MS, begun, not_begun
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.compile import Cut, assemble, buffers_length, skip_tags
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.frames import FrameReader
from pykafka_broker.system.host_text import java_address

if TYPE_CHECKING:
    from pykafka_broker.apis.api import Api
    from pykafka_broker.apis.ports.sasl import SaslConversation
    from pykafka_broker.machine.clock import Timer
    from pykafka_broker.network.dispatch import Dispatch, Route

logger = logging.getLogger("kafka.network.Processor")
request_logger = logging.getLogger("kafka.request.logger")

#: A client id may have 32 KiB; no connection keeps that much.
MAX_REMEMBERED_CLIENT_ID_BYTES = 256

# Why no further request of a connection may start; bits of `_holds`.
HANDLING = 1
OUTSTANDING = 2
UNREAD = 4
THROTTLED = 8
OTHERS_UNREAD = 16
OTHERS_TURN = 32
CLOSING = 64
SENDING = 128

#: A request that a coroutine answers takes several times as long as one to the log: it counts for so many
#: more of `requests_per_round`.
COROUTINE_COST = 9

#: So do answers, for each KiB of theirs: a hundred large ones are not for one round.
ANSWER_BYTES_PER_REQUEST = 1024

#: ApiVersions v0, as the first four bytes of a request say it.
API_VERSIONS_V0 = 18 << 16

#: API key and version as one number, correlation id, length of the client id.
REQUEST_HEADER = Struct(">Iih")
#: Frame length, correlation id, and for flexible versions an empty tag section.
RESPONSE_HEADER = Struct(">ii")
FLEXIBLE_RESPONSE_HEADER = Struct(">iiB")
FRAME_LENGTH = Struct(">i")

_unpack_request_header = REQUEST_HEADER.unpack_from
_pack_response_header = RESPONSE_HEADER.pack
_pack_flexible_response_header = FLEXIBLE_RESPONSE_HEADER.pack
_pack_frame_length = FRAME_LENGTH.pack_into


class _Slot:
    """The place of an answer that is not ready yet."""

    __slots__ = ("closes", "context", "cuts", "held_bytes", "number", "out", "ready", "request", "route")

    #: Of an answer that is waited for: the request, how many have been served with it, and what goes with it.
    number: int
    route: Route
    context: Context[Any]
    request: Any

    def __init__(self) -> None:
        self.ready = False
        self.closes = False
        self.out = bytearray()
        self.cuts: list[Cut] = []
        #: Its bytes in memory.
        self.held_bytes = 0


class Connection(asyncio.BufferedProtocol):
    """Serves one client."""

    __slots__ = (
        "_account",
        "_authentication",
        "_client_id",
        "_client_id_bytes",
        "_counters",
        "_cuts",
        "_dispatch",
        "_holds",
        "_limits",
        "_listener_dispatch",
        "_log_requests",
        "_node",
        "_on_close",
        "_on_lost",
        "_out",
        "_patience",
        "_reader",
        "_round_left",
        "_routes",
        "_sender",
        "_served",
        "_shared",
        "_slots",
        "_take_token",
        "_throttle",
        "_throttled_until_ms",
        "_transport",
        "_written_bytes",
        "client_host",
        "closed",
        "listener_name",
        "peer_host",
        "peer_port",
        "principal",
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
        self.listener_name = accepted.listener_name
        self.peer_host, self.peer_port = accepted.peer
        #: The peer's address as Kafka shows it in group descriptions.
        self.client_host = f"/{java_address(self.peer_host)}"
        #: The peer's principal, which the next request carries; `identify` sets it with the routes.
        self.principal: str
        #: What the handlers of SASL speak to; None on a listener without SASL.
        self.sasl: SaslConversation | None
        #: Serves the next frame, which is a token without the header of a request.
        self._take_token: Callable[[bytes], bytes | None] | None
        self.closed = False
        self._shared = shared
        self._node = node
        self._counters = shared.counters
        self._limits = shared.limits
        self._authentication = authentication
        #: The routes of the listener, and those of them that the peer may use.
        self._listener_dispatch = dispatch
        self._dispatch: Dispatch[Any]
        self._routes: dict[int, Route]
        self._on_lost = accepted.on_lost
        self._on_close: list[Callable[[], None]] = []
        self._reader = FrameReader(shared.landing, shared.limits.request_max_bytes)
        self._transport: asyncio.Transport
        self._sender: Sender
        self._holds = 0
        self._slots: list[_Slot] = []
        self._out = bytearray()
        self._cuts: list[Cut] = []
        self._written_bytes = 0
        # Requests that may still be served in this turn of the event loop.
        self._round_left = 0
        # The client id rarely changes; the text is kept beside its bytes.
        self._client_id_bytes: Buffer | None = None
        self._client_id = ""
        self._log_requests = False
        self._throttled_until_ms = 0
        #: Ends the throttle, or is set anew where the end has moved; None while there is none.
        self._throttle: Timer | None = None
        self._served = 0
        self._patience = patience = Patience(shared.limits, shared.clock.monotonic_ms())
        self._account = Account(self._reader, patience, shared.request_memory, shared.unsent)

    def __repr__(self) -> str:
        return f"{self.listener_name}-{self.peer_host}:{self.peer_port}"

    # For handlers and the rest of the server.

    @property
    def outstanding_answers(self) -> int:
        """Requests whose answers are not written yet."""
        return len(self._slots)

    @property
    def answer_budget_bytes(self) -> int:
        """The most bytes that an answer should have, now that other peers may be slow to read theirs."""
        return self._shared.unsent.budget_bytes

    @property
    def idle_since_ms(self) -> int:
        """When the sweep last saw something move here (monotonic)."""
        return self._patience.active_ms

    @property
    def served_apis(self) -> Iterable[Api[Any]]:
        """The APIs that our listener serves, in key order."""
        return self._listener_dispatch.apis.values()

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
        """Go by `identity` from the next request on: only the authentication of the listener calls this."""
        self.principal = identity.principal
        self._dispatch = identity.dispatch
        self._routes = identity.dispatch.routes
        self.sasl = identity.sasl
        self._take_token = identity.take_token
        self._reader.max_frame_bytes = identity.request_max_bytes or self._limits.request_max_bytes

    def throttle(self, duration_ms: int) -> None:
        """Start no further request for `duration_ms`, as an answer's throttle_time_ms promises."""
        until_ms = self._shared.clock.monotonic_ms() + duration_ms
        self._throttled_until_ms = max(until_ms, self._throttled_until_ms)
        self._holds |= THROTTLED
        if self._throttle is None and not self.closed:
            self._throttle = self._shared.clock.call_at(until_ms, self._throttle_ends)

    def close_when_answered(self) -> None:
        """As `finish`, for the handler of a request, whose own answer is not written yet."""
        self._holds |= CLOSING
        asyncio.get_running_loop().call_soon(self.finish)

    def close_after(self, duration_ms: int) -> None:
        """Start no further request, and `finish` when `duration_ms` are over."""
        self._holds |= CLOSING
        clock = self._shared.clock
        clock.call_at(clock.monotonic_ms() + duration_ms, self.finish)

    def close(self) -> None:
        """Close once the answers written so far are sent; requests that have not started never will."""
        self._holds |= CLOSING
        if not self.closed:
            if self._out:
                self._flush()
            if not self._sender.busy:
                self._transport.close()

    def abort(self) -> None:
        """Close now; unsent answers are lost."""
        self._holds |= CLOSING
        if not self.closed:
            self._transport.abort()

    def finish(self) -> None:
        """Start no further request, and close when the outstanding ones are answered."""
        self._holds |= CLOSING
        if not self._slots:
            self.close()

    # asyncio's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)
        self._sender = Sender(transport, self._sent, self._cannot_send)
        self._account.opens(transport)
        transport.set_write_buffer_limits(high=self._limits.unsent_high_water_bytes)
        self.identify(self._authentication.begin(self, self._listener_dispatch, peer_of(transport)))
        self._shared.connections.add(self)
        self._counters.connections_opened += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self._holds |= CLOSING
        shared = self._shared
        shared.connections.discard(self)
        self._reader.close()
        self._sender.drop()
        shared.unsent.forget(self)
        self._account.closes()
        if self._throttle is not None:
            self._throttle.cancel()
            self._throttle = None
        self._slots.clear()
        self._out = bytearray()
        self._cuts = []
        self.sasl = self._take_token = None
        callbacks, self._on_close = self._on_close, []
        for callback in callbacks:
            callback()
        self._on_lost()

    def eof_received(self) -> bool:
        """The peer closed its side: as Kafka does, close ours; answers already written are still sent."""
        self._holds |= CLOSING
        return self._sender.busy

    def get_buffer(self, sizehint: int) -> memoryview:
        buffer = self._reader.get_buffer()
        if self._shared.request_memory.full and not self._account.request_bytes:
            # Small requests pass; of a large one no more than this comes in before the connection has to
            # wait.
            return buffer[:4096]
        return buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._patience.active = True
        self._counters.bytes_received += nbytes
        self._reader.received(nbytes)
        self._round()

    def pause_writing(self) -> None:
        """More than the high water mark is unsent: the peer does not read, so its requests wait."""
        self._holds |= UNREAD
        self._sender.pause()
        self._account.set_unsent(self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._account.set_unsent(0)
        self._patience.reads_again()
        self._sender.resume()
        self._let_go(UNREAD)

    # Requests.

    def _round(self) -> None:
        """Serve the requests that have arrived, as far as nothing holds; then put away the rest."""
        reader = self._reader
        if not self._holds:
            self._log_requests = request_logger.isEnabledFor(logging.DEBUG)
            try:
                self._round_left = self._limits.requests_per_round
                while self._round_left > 0:
                    self._round_left -= 1
                    frame = reader.next_frame()
                    if frame is None:
                        break
                    if self._serve(frame):
                        break
                else:
                    # There may be more. Others first.
                    self._holds |= OTHERS_TURN
                    asyncio.get_running_loop().call_soon(self._take_turn)
            except ProtocolError as error:
                self._blame(str(error))
            if self._out:
                self._flush()
        reader.settle()
        account = self._account
        if reader.held_bytes or account.request_bytes:
            account.count_requests()
        if self._holds and not account.is_ahead and reader.pending_bytes > self._limits.read_ahead_bytes:
            account.reads_too_far_ahead()

    def _serve(self, frame: memoryview) -> int:
        """Decode one request, call its handler, and write or await the answer; returns the holds.

        Raises:
            ProtocolError: this is no request that we serve.
        """
        if self._take_token is not None:
            return self._serve_token(self._take_token(bytes(frame)))
        try:
            code, correlation_id, client_id_bytes = _unpack_request_header(frame)
        except StructError:
            raise ProtocolError(f"A request header does not fit into {len(frame)} bytes") from None
        route = self._routes.get(code)
        if route is None:
            route = self._dispatch.find(code)
            if route is None:
                self._answer_unsupported_api_versions(correlation_id)
                return self._holds
        if route.large_answers and self._shared.unsent.full:
            self._reader.put_back(frame)
            self._shared.unsent.wait(self)
            self._holds |= OTHERS_UNREAD
            return self._holds
        pos = 10
        client_id = None
        if client_id_bytes >= 0:
            pos += client_id_bytes
            name = frame[10:pos]
            if name == self._client_id_bytes:
                client_id = self._client_id
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
        if self._log_requests:
            request_logger.debug(
                "< %r %s v%d #%d from %s", self, route.name, route.version, correlation_id, client_id
            )
        context = Context(
            self._node, self, code >> 16, route.version, correlation_id, client_id, self.principal
        )
        try:
            answer = route.handle(request, context)
        except Exception as error:
            answer = self._failed(route, request, error)
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
                answer = self._failed(route, request, error)
            else:
                self._holds |= HANDLING
                going_on = _going_on(coroutine, waits_for)
                self._await(route, context, request, going_on, holds=HANDLING)
                return self._holds
            kind = answer.__class__
        if answer is NO_RESPONSE:
            pass
        elif kind is Later:
            self._await(route, context, request, answer.awaitable, holds=0)
            if self._is_queue_full():
                self._holds |= OUTSTANDING
        elif not self._slots:
            if answer is CLOSE:
                self.close()
            else:
                self._written_bytes += self._write(route, correlation_id, answer, self._out, self._cuts)
                if self._written_bytes > self._limits.unsent_high_water_bytes:
                    # The peer may not be reading; the transport will tell.
                    self._flush()
        else:
            slot = _Slot()
            self._slots.append(slot)
            self._fill(slot, route, correlation_id, answer)
            if self._is_queue_full():
                self._holds |= OUTSTANDING
        return self._holds

    def _serve_token(self, answer: bytes | None) -> int:
        """Answer a token as it came, without a header; None is no answer. Returns the holds."""
        self._served += 1
        if answer is not None:
            size_and_answer = FRAME_LENGTH.pack(len(answer)) + answer
            if not self._slots:
                self._out += size_and_answer
            else:
                slot = _Slot()
                slot.ready = True
                slot.out += size_and_answer
                self._slots.append(slot)
        return self._holds

    def _is_queue_full(self) -> bool:
        """Too much waits behind an answer that is not ready; it lets go of the hold when it is."""
        limits = self._limits
        return (
            len(self._slots) >= limits.outstanding_answers
            or self._account.queued_bytes > limits.unsent_high_water_bytes
        )

    def _read_client_id(self, name: memoryview, size: int) -> str:
        """The text of a client id that differs from the last one."""
        if len(name) < size:
            raise ProtocolError("A request header is cut short")
        client_id = str(name, "utf-8", "replace")
        if size <= MAX_REMEMBERED_CLIENT_ID_BYTES:
            self._client_id_bytes = bytes(name)
            self._client_id = client_id
        return client_id

    def _await(
        self, route: Route, context: Context[Any], request: Any, awaitable: Awaitable[Any], holds: int
    ) -> None:
        slot = _Slot()
        slot.number, slot.route, slot.context, slot.request = self._served, route, context, request
        self._slots.append(slot)
        task = asyncio.get_running_loop().create_task(self._awaited(slot, awaitable, holds))
        handlers = self._shared.handlers
        handlers.add(task)
        task.add_done_callback(handlers.discard)

    async def _awaited(self, slot: _Slot, awaitable: Awaitable[Any], holds: int) -> None:
        """Wait for an answer and send it when its turn has come."""
        try:
            answer = await awaitable
        except Disconnected:
            return
        except Exception as error:
            answer = self._failed(slot.route, slot.request, error)
        if self.closed or self._transport.is_closing():
            return
        # Its answer may have to wait for its turn; the records of the request need not.
        slot.request = None
        self._fill(slot, slot.route, slot.context.correlation_id, answer)
        self._patience.active = True
        self._send_ready()
        if not self._is_queue_full():
            holds |= OUTSTANDING
        self._let_go(holds)

    # Answers.

    def _fill(self, slot: _Slot, route: Route, correlation_id: int, answer: Any) -> None:
        slot.ready = True
        if answer is CLOSE:
            slot.closes = True
        elif answer is not NO_RESPONSE:
            slot.closes = not self._write(route, correlation_id, answer, slot.out, slot.cuts)
            slot.held_bytes = len(slot.out) + sum(
                buffers_length(content)
                for _, content in slot.cuts
                if isinstance(content, (*IN_MEMORY, list, tuple))
            )
            self._account.count_queued(slot.held_bytes)

    def reads_ahead(self, change_bytes: int) -> None:
        """So much more, or less, is being read into memory for an answer."""
        self._shared.unsent.count(change_bytes)

    def _send_ready(self) -> None:
        """Send the answers whose turn has come."""
        slots = self._slots
        while slots and slots[0].ready:
            slot = slots.pop(0)
            self._account.count_queued(-slot.held_bytes)
            if slot.out:
                self._out, self._cuts = slot.out, slot.cuts
                self._flush()
            if slot.closes:
                self.close()
                return
        if not slots and self._holds & CLOSING:
            self.close()

    def _write(self, route: Route, correlation_id: int, answer: Any, out: bytearray, cuts: list[Cut]) -> int:
        """Append an answer's frame to `out` and `cuts`; returns its size, 0 if it cannot be encoded."""
        start = len(out)
        cuts_before = len(cuts)
        if route.flexible_response:
            out += _pack_flexible_response_header(0, correlation_id, 0)
        else:
            out += _pack_response_header(0, correlation_id)
        try:
            route.encode(answer, out, cuts)
        except Exception as error:
            del out[start:], cuts[cuts_before:]
            self._shared.faults.of_encoding(route, self, error)
            self.close()
            return 0
        size = len(out) - start - 4
        if len(cuts) > cuts_before:
            for _, content in cuts[cuts_before:]:
                size += buffers_length(content)
        _pack_frame_length(out, start, size)
        self._round_left -= size // ANSWER_BYTES_PER_REQUEST
        if self._log_requests:
            request_logger.debug(
                "> %r %s v%d #%d %d bytes", self, route.name, route.version, correlation_id, size
            )
        return size

    def _flush(self) -> None:
        """Hand everything written to the transport."""
        out, cuts = self._out, self._cuts
        self._out = bytearray()
        self._written_bytes = 0
        sender = self._sender
        if not cuts:
            self._counters.bytes_sent += len(out)
            if not sender.busy:
                self._transport.write(out)
            elif out:
                sender.send([out])
            return
        self._cuts = []
        parts = assemble(out, cuts)
        self._counters.bytes_sent += sum(map(len, parts))
        if sender.busy or not all(isinstance(part, IN_MEMORY) for part in parts):
            self._holds |= SENDING
            sender.send(parts)
        else:
            self._transport.writelines(cast("list[Buffer]", parts))

    def _sent(self) -> None:
        """Everything that was read while it was sent has been handed to the transport."""
        if self._holds & CLOSING and not self._slots:
            self.close()
        self._let_go(SENDING)

    def _cannot_send(self, error: BaseException) -> None:
        """A disk did not give the bytes that an answer announced: only a closed connection can tell that."""
        self._shared.faults.of_disk(self, error)
        self.abort()

    def _answer_unsupported_api_versions(self, correlation_id: int) -> None:
        """KIP-511: the v0 body, so that a client of any version learns which versions there are."""
        from pykafka_broker.apis.api_versions import unsupported_version

        route = self._dispatch.find(API_VERSIONS_V0)
        assert route is not None
        if not self._slots:
            self._write(route, correlation_id, unsupported_version(), self._out, self._cuts)
        else:
            slot = _Slot()
            self._slots.append(slot)
            self._fill(slot, route, correlation_id, unsupported_version())

    # Errors.

    def _blame(self, what: str) -> None:
        """The peer broke the protocol."""
        client = f" (client id {self._client_id!r})" if self._client_id else ""
        text = f"Closing connection {self!r}{client}: {what}"
        self._shared.faults.of_peer(self, "protocol", text)
        self.finish()

    def _failed(self, route: Route, request: Any, error: Exception) -> Any:
        """A handler raised; the answer that says so, or CLOSE."""
        return self._shared.faults.of_handler(route, request, error, self)

    # Holds and back-pressure.

    def _let_go(self, reasons: int) -> None:
        """A hold ended. The next round comes in a turn of its own: this may be called within one."""
        if self._holds & reasons:
            self._holds &= ~reasons
            if not self._holds and (self._reader.pending_bytes or self._account.is_ahead):
                asyncio.get_running_loop().call_soon(self._go_on)

    def _throttle_ends(self) -> None:
        """The time is up, unless another answer has moved the end, or the timer has come early."""
        clock, until_ms = self._shared.clock, self._throttled_until_ms
        if clock.monotonic_ms() < until_ms:
            self._throttle = clock.call_at(until_ms, self._throttle_ends)
        else:
            self._throttle = None
            self._let_go(THROTTLED)

    def _take_turn(self) -> None:
        """The others had their turn."""
        self._holds &= ~OTHERS_TURN
        self._go_on()

    def _go_on(self) -> None:
        """Serve requests that had to wait, and read again."""
        if self.closed or self._holds:
            return
        self._reader.land()
        self._round()
        if self._account.is_ahead and not self._holds:
            self._account.has_caught_up()

    def may_answer(self) -> None:
        """There is room again for unsent answers."""
        self._let_go(OTHERS_UNREAD)

    # The sweep.

    def check(self, now_ms: int) -> None:
        """Close the connection if it is idle, a request takes too long to arrive, or answers are not read."""
        if self.closed:
            return
        patience, account = self._patience, self._account
        patience.swept(now_ms)
        unsent_bytes = self._transport.get_write_buffer_size()
        if unsent_bytes != account.unsent_bytes:
            account.set_unsent(unsent_bytes)
        if patience.is_stalled(now_ms, unsent_bytes + self._sender.left_bytes):
            self._blame_and_abort("stalled", f"the peer has not read for {self._limits.stalled_ms} ms")
        pending_bytes = self._reader.pending_bytes
        self._look_at_oldest(now_ms)
        if not pending_bytes:
            patience.nothing_arrives()
            if account.request_bytes and patience.active_ms != now_ms:
                self._reader.release()
                account.count_requests()
            if not self._slots and patience.is_idle(now_ms):
                self._counters.connections_closed_idle += 1
                logger.debug("Closing idle connection %r", self)
                self.abort()
        elif not self._holds and not account.lacks_memory:
            overdue_ms = patience.overdue_after_ms(now_ms, pending_bytes, self._served)
            if overdue_ms is not None:
                self._blame_and_abort("slow", f"a request did not arrive within {overdue_ms} ms")

    def _look_at_oldest(self, now_ms: int) -> None:
        """Tell of the oldest request without an answer, once it has waited for longer than it may."""
        slots = self._slots
        number = 0
        if slots:
            number = slots[0].number
        elif self._reader.pending_bytes and (self._holds or self._account.lacks_memory):
            number = self._served + 1
        patience = self._patience
        waited_ms = patience.waited_ms(now_ms, number)
        if not waited_ms:
            return
        request = None
        if self._transport.is_closing():
            pass
        elif slots:
            request = begun(slots[0].route, slots[0].context, slots[0].request)
        elif self._take_token is None and not self._holds & CLOSING:
            frame = self._reader.pending[FRAME_LENGTH.size :]
            request = not_begun(frame, self._dispatch, self._why_held(now_ms))
        if request is None:
            patience.look_no_more()
        elif waited_ms < request.limit_ms + GRACE_MS:
            patience.look_again(request.limit_ms)
        elif self._shared.faults.of_waiting(self, request, waited_ms):
            patience.look_no_more()
        else:
            # Others like it have their line first.
            patience.look_later(now_ms)

    def _why_held(self, now_ms: int) -> str:
        """What the next request waits for."""
        holds = self._holds
        if holds & THROTTLED:
            left_ms = self._throttled_until_ms - now_ms
            ends = f"ends in {left_ms} ms" if left_ms >= 0 else f"has ended {-left_ms} ms ago"
            return f"the throttle of its client, which {ends}"
        if holds & UNREAD:
            return "its client, which has not read earlier answers"
        if holds & SENDING:
            return "an earlier answer, which is still being sent"
        if holds & OTHERS_UNREAD:
            return "other clients, which have not read their answers"
        if self._account.lacks_memory:
            return "memory, which other requests take"
        return ""

    @property
    def stalled_since_ms(self) -> int | None:
        """Since when the peer has not read a byte, as far as sweeps saw (monotonic); None while it does."""
        return self._patience.stalled_since_ms

    @property
    def unsent_bytes(self) -> int:
        """Answers the peer has not read, as far as sweeps saw."""
        return self._account.unsent_bytes

    def drop_unread(self) -> None:
        """All peers together leave too much unread, and this one is among the slowest."""
        self._blame_and_abort(
            "unread", f"{self._account.unsent_bytes} bytes of answers are unread and memory is short"
        )

    def _blame_and_abort(self, kind: str, what: str) -> None:
        self._shared.faults.of_peer(self, kind, f"Closing connection {self!r}: {what}")
        self.abort()


@coroutine
def _going_on(handler: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
    """A handler that has begun and waits for something, as a coroutine of which a task can be made."""
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

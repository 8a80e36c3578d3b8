"""The answers of one connection: encoded, and written in the order of its requests.

All answers of a round go into one buffer, and to the transport in one write. An answer that is not ready has
a slot, which keeps its place; later answers wait behind it in slots of their own. The number of slots and the
bytes in them are limited (`limits.py`): at the limit no further request starts.

The records of an answer are never copied: they are a buffer of their own in `writelines` or, if there are
many, still in their file (`sending.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from struct import Struct
from typing import TYPE_CHECKING, Any, cast

from pykafka_broker.apis.api import CLOSE, NO_RESPONSE
from pykafka_broker.network.faults import Faulty
from pykafka_broker.network.holds import CLOSING, OUTSTANDING, SENDING, UNREAD, Holds
from pykafka_broker.network.patience import Patience
from pykafka_broker.network.purgatory import Disconnected
from pykafka_broker.network.sending import IN_MEMORY, Sender
from pykafka_broker.network.shared import Shared
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.compile import Cut, assemble, buffers_length
from pykafka_broker.system.log_fields import about

if TYPE_CHECKING:
    from pykafka_broker.apis.context import Context
    from pykafka_broker.network.dispatch import Route
    from pykafka_broker.network.request_times import Times

request_logger = logging.getLogger("kafka.request.logger")

#: Frame length, correlation id, and for flexible versions an empty tag section.
_pack_response_header = Struct(">ii").pack
_pack_flexible_response_header = Struct(">iiB").pack
FRAME_LENGTH = Struct(">i")


class Slot:
    """The place of an answer that is not ready yet, or whose turn has not come."""

    __slots__ = (
        "asked_wait_ms",
        "began_ns",
        "closes",
        "context",
        "cuts",
        "encoded_ns",
        "error_code",
        "handled_ns",
        "held_bytes",
        "is_ready",
        "number",
        "out",
        "ready_ns",
        "request",
        "route",
        "throttle_ms",
        "times",
        "waits_ns",
    )

    #: Set for an answer that is not ready: the request, its number on the connection, its route and context.
    number: int
    route: Route
    context: Context[Any]
    request: Any
    #: Set if the request is timed: as in `Answered` (`request_times.py`).
    handled_ns: int
    waits_ns: int
    ready_ns: int
    encoded_ns: int
    throttle_ms: int
    asked_wait_ms: int
    error_code: int

    def __init__(self) -> None:
        self.is_ready = False
        self.closes = False
        #: Where the request counts, and when it came in if it is timed (`measured_answers.py`).
        self.times: Times | None = None
        self.began_ns = 0
        self.out = bytearray()
        self.cuts: list[Cut] = []
        #: Its bytes in memory.
        self.held_bytes = 0


class Answers:
    """Writes the answers of `connection`."""

    __slots__ = (
        "_connection",
        "_cuts",
        "_holds",
        "_is_dropped",
        "_out",
        "_patience",
        "_queued_bytes",
        "_sender",
        "_shared",
        "_transport",
        "_written_bytes",
        "are_logged",
        "request_bytes",
        "slots",
        "unsent_bytes",
    )

    def __init__(
        self,
        connection: Faulty,
        transport: asyncio.Transport,
        holds: Holds,
        patience: Patience,
        shared: Shared,
    ) -> None:
        self._connection = connection
        self._transport = transport
        self._holds = holds
        self._patience = patience
        self._shared = shared
        self._sender = Sender(transport, self._sent, self._cannot_send)
        #: From the first answer that is not ready on, in their order.
        self.slots: list[Slot] = []
        #: Their bytes in memory.
        self._queued_bytes = 0
        #: Bytes of answers the peer has not read, as the transport or a sweep last reported.
        self.unsent_bytes = 0
        #: What has been written since the last `flush`.
        self._out = bytearray()
        self._cuts: list[Cut] = []
        self._written_bytes = 0
        self._is_dropped = False
        #: Whether each answer of this round is logged.
        self.are_logged = False
        #: The bytes of the request that is served, where `measures`.
        self.request_bytes = 0
        transport.set_write_buffer_limits(high=shared.limits.unsent_high_water_bytes)

    #: Whether the times of requests are recorded.
    measures = False

    def begin_round(self) -> None:
        """A wake-up of the connection begins, in which it serves requests; called where `measures`."""

    @property
    def is_sending(self) -> bool:
        """Whether answers wait here while one is read from its file."""
        return self._sender.busy

    @property
    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""
        return self._is_dropped or self._transport.is_closing()

    def count_unread(self) -> int:
        """Count the bytes that the peer has not read; returns them and those still to be sent."""
        unsent_bytes = self._transport.get_write_buffer_size()
        if unsent_bytes != self.unsent_bytes:
            self._set_unsent(unsent_bytes)
        return unsent_bytes + self._sender.left_bytes

    def _set_unsent(self, unsent_bytes: int) -> None:
        change_bytes = unsent_bytes - self.unsent_bytes
        self.unsent_bytes = unsent_bytes
        self._shared.unsent.count(change_bytes)

    def _count_queued(self, change_bytes: int) -> None:
        self._queued_bytes += change_bytes
        self._shared.unsent.count(change_bytes)

    @property
    def _is_full(self) -> bool:
        """Whether too many answers or bytes wait behind an answer that is not ready (OUTSTANDING)."""
        limits = self._shared.limits
        return (
            len(self.slots) >= limits.outstanding_answers
            or self._queued_bytes > limits.unsent_high_water_bytes
        )

    def log_request(self, route: Route, context: Context[Any]) -> None:
        """Log a request that is about to be handled."""
        request_logger.debug(
            "< %r %s v%d #%d from %r",
            self._connection,
            route.name,
            route.version,
            context.correlation_id,
            context.client_id,
            extra=about(context),
        )

    # Answers to requests.

    def add(self, route: Route, context: Context[Any], answer: Any, request: Any) -> int:
        """Write an answer, or keep it behind those that are not ready; the bytes of its frame."""
        if self.slots:
            slot = Slot()
            self.slots.append(slot)
            size = self._fill(slot, route, context, answer)
            if self._is_full:
                self._holds.reasons |= OUTSTANDING
            return size
        if answer is CLOSE:
            self.close()
            return 0
        size = self._write(route, context, answer, self._out, self._cuts)
        self._written_bytes += size
        if self._written_bytes > self._shared.limits.unsent_high_water_bytes:
            # If the peer does not read, the transport calls `pause`.
            self.flush()
        return size

    def add_none(self, route: Route, context: Context[Any]) -> None:
        """The request wants no answer."""

    def add_token(self, token: bytes) -> None:
        """As `add`, for an answer that has no header."""
        frame = FRAME_LENGTH.pack(len(token)) + token
        if self.slots:
            slot = Slot()
            slot.is_ready = True
            slot.out += frame
            self.slots.append(slot)
        else:
            self._out += frame

    @property
    def waiting(self) -> list[Slot]:
        """The places of the requests whose handlers wait."""
        return [slot for slot in self.slots if not slot.is_ready]

    def wait_for(
        self, later: Awaitable[Any], number: int, route: Route, context: Context[Any], request: Any, hold: int
    ) -> None:
        """Keep a slot for the later answer to request `number` of the connection; `hold` holds until then."""
        slot = Slot()
        slot.number, slot.route, slot.context, slot.request = number, route, context, request
        self.slots.append(slot)
        task = asyncio.get_running_loop().create_task(self._wait(slot, later, hold))
        handlers = self._shared.handlers
        handlers.add(task)
        task.add_done_callback(handlers.discard)
        self._holds.reasons |= hold
        if not hold and self._is_full:
            self._holds.reasons |= OUTSTANDING

    async def _wait(self, slot: Slot, awaitable: Awaitable[Any], hold: int) -> None:
        try:
            answer = await awaitable
        except Disconnected:
            return
        except Exception as error:
            answer = self._shared.faults.of_handler(
                slot.route, slot.context, slot.request, error, self._connection
            )
        if self.is_closing:
            return
        self._patience.active = True
        # Free the request's records now, though its answer may still wait behind others.
        slot.request = None
        self._fill(slot, slot.route, slot.context, answer)
        self._send_ready()
        self._holds.let_go(hold if self._is_full else hold | OUTSTANDING)

    def _fill(self, slot: Slot, route: Route, context: Context[Any], answer: Any) -> int:
        slot.is_ready = True
        if answer is CLOSE:
            slot.closes = True
            return 0
        if answer is NO_RESPONSE:
            return 0
        size = self._write(route, context, answer, slot.out, slot.cuts)
        slot.closes = not size
        slot.held_bytes = len(slot.out) + sum(
            buffers_length(content)
            for _, content in slot.cuts
            if isinstance(content, (*IN_MEMORY, list, tuple))
        )
        self._count_queued(slot.held_bytes)
        return size

    def _write(
        self, route: Route, context: Context[Any], answer: Any, out: bytearray, cuts: list[Cut]
    ) -> int:
        """Append an answer's frame to `out` and `cuts`; returns its size, 0 if it cannot be encoded."""
        start = len(out)
        cuts_before = len(cuts)
        correlation_id = context.correlation_id
        if route.flexible_response:
            out += _pack_flexible_response_header(0, correlation_id, 0)
        else:
            out += _pack_response_header(0, correlation_id)
        try:
            route.encode(answer, out, cuts)
        except Exception as error:
            del out[start:], cuts[cuts_before:]
            self._shared.faults.of_encoding(route, context, self._connection, error)
            self.close()
            return 0
        size = len(out) - start - 4
        if len(cuts) > cuts_before:
            for _, content in cuts[cuts_before:]:
                size += buffers_length(content)
        FRAME_LENGTH.pack_into(out, start, size)
        if self.are_logged:
            request_logger.debug(
                "> %r %s v%d #%d %d bytes",
                self._connection,
                route.name,
                route.version,
                correlation_id,
                size,
                extra=about(context),
            )
        return size

    # Their way to the transport.

    def _send_ready(self) -> None:
        """Send the answers whose turn has come."""
        slots = self.slots
        while slots and slots[0].is_ready:
            slot = slots.pop(0)
            self._count_queued(-slot.held_bytes)
            if slot.out:
                self._out, self._cuts = slot.out, slot.cuts
                self.flush()
            if self.measures:
                self._slot_sent(slot)
            if slot.closes:
                self.close()
                return
        if not slots and self._holds.reasons & CLOSING:
            self.close()

    def flush(self) -> None:
        """Hand everything written to the transport."""
        out, cuts = self._out, self._cuts
        if not out:
            return
        self._out = bytearray()
        self._written_bytes = 0
        sender, counters = self._sender, self._shared.counters
        if not cuts:
            counters.bytes_sent += len(out)
            if sender.busy:
                sender.send([out])
            else:
                self._transport.write(out)
            return
        self._cuts = []
        parts = assemble(out, cuts)
        counters.bytes_sent += sum(map(len, parts))
        if sender.busy or not all(isinstance(part, IN_MEMORY) for part in parts):
            self._holds.reasons |= SENDING
            sender.send(parts)
        else:
            self._transport.writelines(cast("list[Buffer]", parts))

    def pause(self) -> None:
        """Start no further request: the peer leaves more than the high water mark unread."""
        self._holds.reasons |= UNREAD
        self._sender.pause()
        self._set_unsent(self._transport.get_write_buffer_size())

    def resume(self) -> None:
        """The transport's buffer has drained: requests may start again."""
        self._set_unsent(0)
        self._patience.reads_again()
        self._sender.resume()
        self._holds.let_go(UNREAD)

    def _slot_sent(self, slot: Slot) -> None:
        """The answer of a slot has been sent."""

    def _sent(self) -> None:
        """The sender has handed everything to the transport."""
        if self._holds.reasons & CLOSING and not self.slots:
            self.close()
        self._holds.let_go(SENDING)

    def _cannot_send(self, error: BaseException) -> None:
        """Close the connection: the announced bytes of an answer cannot be read from disk."""
        self._shared.faults.of_disk(self._connection, error)
        self.abort()

    # The end.

    def close(self) -> None:
        """Close the transport once the answers written so far are sent; none follows them."""
        self._holds.reasons |= CLOSING
        self.slots.clear()
        if not self._is_dropped:
            self.flush()
            if not self._sender.busy:
                self._transport.close()

    def finish(self) -> None:
        """As `close`, when the outstanding answers are written."""
        self._holds.reasons |= CLOSING
        self._send_ready()

    def abort(self) -> None:
        """Close now; unsent answers are lost."""
        self._holds.reasons |= CLOSING
        if not self._is_dropped:
            self._transport.abort()

    def drop(self) -> None:
        """The peer is gone."""
        self._is_dropped = True
        self._sender.drop()
        self.slots.clear()
        self._set_unsent(0)
        self._count_queued(-self._queued_bytes)
        self._out = bytearray()
        self._cuts = []

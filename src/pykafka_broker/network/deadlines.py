"""The sweep's check of one connection: which of its deadlines have passed, and the consequences.

`patience.py` holds the deadlines; this file reports progress to it. A connection is closed if its peer is
idle, sends a request too slowly or does not read its answers. A request that has waited too long is logged.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pykafka_broker.network.answers import Answers
from pykafka_broker.network.faults import Faulty
from pykafka_broker.network.holds import CLOSING, Holds
from pykafka_broker.network.memory_account import MemoryAccount
from pykafka_broker.network.patience import Patience
from pykafka_broker.network.shared import Shared
from pykafka_broker.network.unanswered import GRACE_MS, begun, not_begun
from pykafka_broker.protocol.frames import LENGTH_BYTES, FrameReader
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.network.dispatch import Dispatch

logger = logging.getLogger("kafka.network.Processor")


class Deadlines(NamedTuple):
    """The deadlines of one connection, and the parts of it that know whether each is met."""

    connection: Faulty
    reader: FrameReader
    answers: Answers
    holds: Holds
    account: MemoryAccount
    patience: Patience
    shared: Shared

    def check(self, now_ms: int, served: int, dispatch: Dispatch[Any] | None) -> None:
        """Close the connection if it is idle, a request takes too long to arrive, or answers are not read.

        `now_ms` is the time of sweeps. `served` requests have started. `dispatch` has the routes of the next
        one; None for a bare token.
        """
        patience, account, answers = self.patience, self.account, self.answers
        # A sweep calls this for each connection: what is not needed for one that only waits is not called.
        if patience.active:
            patience.swept(now_ms)
        unread_bytes = answers.count_unread()
        if (unread_bytes or patience.unread_bytes) and patience.is_stalled(now_ms, unread_bytes):
            self._blame("stalled", f"the peer has not read for {self.shared.limits.stalled_ms} ms")
        pending_bytes = self.reader.pending_bytes
        if pending_bytes or answers.slots:
            self._look_at_oldest(now_ms, served, pending_bytes, dispatch)
        if not pending_bytes:
            patience.arriving_since_ms = None
            if account.request_bytes and patience.active_ms != now_ms:
                self.reader.release()
                account.count_requests()
            if not answers.slots and patience.is_idle(now_ms):
                self.shared.counters.connections_closed_idle += 1
                self.connection.closes_because = "it was idle"
                logger.debug("Closing idle connection %r", self.connection)
                self.answers.abort()
        elif self.holds.reasons:
            account.stand_still()
        elif not account.lacks_memory:
            overdue_ms = patience.overdue_after_ms(now_ms, pending_bytes, served)
            if overdue_ms is not None:
                self._blame("slow", f"a request did not arrive within {overdue_ms} ms")

    def drop_unread(self) -> None:
        """Close it: all peers together leave too much unread, and this one is among the slowest."""
        self._blame("unread", f"{self.answers.unsent_bytes} bytes of answers are unread and memory is short")

    def _blame(self, kind: str, what: str) -> None:
        self.shared.faults.of_peer(self.connection, kind, what)
        self.answers.abort()

    def _look_at_oldest(
        self, now_ms: int, served: int, pending_bytes: int, dispatch: Dispatch[Any] | None
    ) -> None:
        """Log the oldest request without an answer once it has waited longer than it may."""
        holds, patience = self.holds, self.patience
        slots = self.answers.slots
        number = 0
        if slots:
            number = slots[0].number
        elif pending_bytes and (holds.reasons or self.account.lacks_memory):
            number = served + 1
        waited_ms = patience.waited_ms(now_ms, number)
        if not waited_ms:
            return
        request = None
        if self.answers.is_closing:
            pass
        elif slots:
            request = begun(slots[0].route, slots[0].context, slots[0].request, self.shared.knowledge)
        elif dispatch is not None and not holds.reasons & CLOSING:
            waits_for = holds.why()
            if not waits_for and self.account.lacks_memory:
                waits_for = "memory, which other requests take"
            pending = self.reader.pending[LENGTH_BYTES:]
            request = not_begun(pending, dispatch, waits_for, self.shared.knowledge)
        if request is None:
            patience.look_no_more()
        elif waited_ms < request.limit_ms + GRACE_MS:
            patience.look_again(request.limit_ms)
        elif self.shared.faults.of_waiting(self.connection, request, waited_ms):
            patience.look_no_more()
        else:
            # The log takes no more lines of this kind in this interval.
            patience.look_later(now_ms)

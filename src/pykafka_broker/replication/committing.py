"""Commits the records of a partition that is led here, and answers the producers that wait for that.

If no follower counts, appended records are committed at once or, if `flush.messages` is set, once they are on
disk. Otherwise the fetches of followers commit them.
"""

from __future__ import annotations

from collections.abc import Awaitable

from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.machine.clock import Clock
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.replication.core.access import (
    ACKS_ALL,
    outcome_of_committed,
    outcome_without_leader,
)
from pykafka_broker.replication.core.high_watermark import commits_at_once, high_watermark
from pykafka_broker.replication.core.state import Leadership
from pykafka_broker.replication.flushing import Flushing, SyncThreads
from pykafka_broker.replication.led_log import LedLog
from pykafka_broker.replication.waiting import WaitingClients
from pykafka_broker.system.named_tuple import NamedTuple


class _Awaited(NamedTuple):
    """A producer waits until everything below `next_offset` may be acknowledged to it."""

    next_offset: int
    required_acks: int


class Committing:
    """Moves the high watermark of one partition, and answers its producers. Event loop only."""

    __slots__ = (
        "_clock",
        "_flushing",
        "_has_followers_in_sync",
        "_led",
        "_producers",
        "acknowledges_at_once",
        "commits_at_once",
    )

    def __init__(self, led: LedLog, sync_threads: SyncThreads, clock: Clock) -> None:
        self._led = led
        self._clock = clock
        self._flushing = Flushing(self, sync_threads)
        self._producers: WaitingClients[_Awaited] = WaitingClients(clock)
        # Flags that appends read, computed when the leadership changes.
        #: No follower counts.
        self.commits_at_once = False
        #: Others are in the ISR, or asked for: their fetches, not appends, move the high watermark.
        self._has_followers_in_sync = False
        #: Appended records may be acknowledged at once, with any acks.
        self.acknowledges_at_once = False

    @property
    def log(self) -> PartitionLog:
        """The log to sync."""
        return self._led.log

    def take_up(self, leadership: Leadership) -> None:
        """Begin or change the leadership."""
        self.commits_at_once = commits_at_once(leadership)
        self._has_followers_in_sync = leadership.isr.maximal != {leadership.node_id}
        self.acknowledges_at_once = self.commits_at_once and not self._flushing.is_under_way
        self._advance()
        self._acknowledge()

    def resign(self) -> None:
        """End the leadership. Producers that wait only for a sync are answered after it."""
        self.send_to_next_leader()
        self.commits_at_once = self.acknowledges_at_once = False

    def send_to_next_leader(self) -> None:
        """Answer the producers that wait for followers with NOT_LEADER_OR_FOLLOWER."""
        if self._producers and self._waits_for_followers():
            self._producers.answer(lambda each: outcome_without_leader(each.required_acks))

    def appended(self, flush_due: bool) -> None:
        """Commit the appended records, or begin the sync that they wait for."""
        state = self._led.log.state
        high_watermark_before = state.high_watermark
        if flush_due or self._flushing.is_under_way:
            self._flushing.begin()
            self.acknowledges_at_once = False
        elif self.commits_at_once:
            state.advance_high_watermark(state.log_end_offset)
            return
        elif not self._has_followers_in_sync:
            self.commit()
        if state.on_advance and state.high_watermark == high_watermark_before:
            state.wake_waiting()  # parked fetches of followers, which read to the log end

    def commit(self) -> None:
        """Move the high watermark as far as possible; if it moves, acknowledge requests up to it."""
        if self._advance():
            self._acknowledge()

    def _advance(self) -> bool:
        """Move the high watermark as far as possible; return whether it has moved."""
        leadership, state, offset = self._led.leadership, self._led.log.state, self._local_offset()
        if leadership is None:
            return False
        if not self.commits_at_once:
            offset = high_watermark(leadership, state, offset, self._clock.monotonic_ms())
        high_watermark_before = state.high_watermark
        state.advance_high_watermark(offset)
        return state.high_watermark > high_watermark_before

    def acknowledged(
        self, next_offset: int, required_acks: int, timeout_ms: int | None = None
    ) -> Awaitable[ErrorCode] | None:
        """None if everything below `next_offset` may be acknowledged now, otherwise an awaitable for that.

        With acks=all, and followers that count, it waits for the high watermark: REQUEST_TIMED_OUT after
        `timeout_ms`, NOT_LEADER_OR_FOLLOWER if another broker leads first. Otherwise it waits only for the
        sync of `flush.messages`. While `acknowledges_at_once`, the result is always None.
        """
        if self.acknowledges_at_once or next_offset <= self._acknowledged_offset(required_acks):
            return None
        if required_acks != ACKS_ALL or not self._waits_for_followers():
            timeout_ms = None
        return self._producers.wait(_Awaited(next_offset, required_acks), timeout_ms)

    def _local_offset(self) -> int:
        """The log end offset; while a sync of `flush.messages` is under way, the synced offset."""
        state = self._led.log.state
        return state.recovery_point if self._flushing.is_under_way else state.log_end_offset

    def _acknowledged_offset(self, required_acks: int) -> int:
        """The offset below which records may be acknowledged to a producer with these acks."""
        if required_acks == ACKS_ALL and self._waits_for_followers():
            return self._led.log.state.high_watermark
        return self._local_offset()

    def _waits_for_followers(self) -> bool:
        return self._led.leadership is not None and not self.commits_at_once

    def _acknowledge(self) -> None:
        """Answer the producers whose batches may be acknowledged."""
        if self._producers:
            self._producers.answer(
                lambda each: (
                    outcome_of_committed(self._led.leadership, each.required_acks)
                    if each.next_offset <= self._acknowledged_offset(each.required_acks)
                    else None
                )
            )

    # --- syncs ------------------------------------------------------------------------------------

    def on_flushed(self) -> None:
        """More appended records are on disk, which is enough for some producers."""
        self._advance()
        self._acknowledge()

    def on_flush_ended(self, error: ErrorCode) -> None:
        """All appended records are on disk; or the sync has failed, and waiting producers get `error`."""
        self.acknowledges_at_once = self.commits_at_once
        if error is ErrorCode.NONE:
            self.on_flushed()  # another sync, or a move of the log, may have put the rest on disk
            if self._led.leadership is None:  # the next leader may have had records cut off
                self._producers.answer(lambda _: ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            self._producers.answer(lambda _: error)

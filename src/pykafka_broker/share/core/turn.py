"""The changes of one event to a share partition, while it is handled."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Optional

from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.machine.step import Effect, Reply, SetTimer, Start, Step
from pykafka_broker.share.core.batch import InFlightBatch, Piece, changed
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import WakeFetches
from pykafka_broker.share.core.in_flight import InFlightState
from pykafka_broker.share.core.records import StateWrite, WrittenBatch
from pykafka_broker.share.core.state import GapWindow, PendingWrite, SharePartition
from pykafka_broker.system.named_tuple import NamedTuple

_first_offset = attrgetter("first_offset")


class LockTimer(NamedTuple):
    """The key of a share partition's only timer, which fires at or before the end of its first lock."""


LOCK_TIMER = LockTimer()


class Turn:
    """Holds the batches in a list; every change updates `delivery_complete_count`."""

    def __init__(self, state: SharePartition, config: ShareConfig, now_ms: int = 0) -> None:
        self.state = state
        self.config = config
        self.now_ms = now_ms
        self.batches = list(state.batches)
        self.start_offset = state.start_offset
        self.end_offset = state.end_offset
        self.gap_window: Optional[GapWindow] = state.gap_window
        self.look_for_available = state.look_for_available
        self.delivery_complete_count = state.delivery_complete_count
        self.writes = state.writes
        self.next_write_id = state.next_write_id
        self.timer_at_ms = state.timer_at_ms
        self.records: list[StateWrite] = []
        self.effects: list[Effect] = []

    # ---- where ----

    def floor(self, offset: int) -> int:
        """The place of the last batch that begins at or below an offset; -1 if there is none."""
        return bisect_right(self.batches, offset, key=_first_offset) - 1

    def places(self, first_offset: int, last_offset: int) -> range:
        """The places of the batches from the floor of one offset to that of another."""
        return range(max(self.floor(first_offset), 0), self.floor(last_offset) + 1)

    @property
    def active_gap_window(self) -> Optional[GapWindow]:
        window = self.gap_window
        return window if window is not None and window.end_offset == self.end_offset else None

    def is_cut_by_start(self, batch: InFlightBatch) -> bool:
        """Some of the batch's records have left the log, and some have not."""
        return batch.first_offset < self.start_offset <= batch.last_offset

    # ---- changes ----

    def insert(self, batch: InFlightBatch) -> None:
        """Insert a batch of records that were never in flight.

        Raises:
            IllegalState: some of its offsets are in flight already.
        """
        place = self.floor(batch.first_offset) + 1
        before = self.batches[place - 1] if place else None
        after = self.batches[place] if place < len(self.batches) else None
        if (before is not None and before.last_offset >= batch.first_offset) or (
            after is not None and after.first_offset <= batch.last_offset
        ):
            raise IllegalState(f"{batch} overlaps {before} or {after}")
        self.batches.insert(place, batch)

    def by_offset(self, place: int) -> None:
        """Keep the state of a batch by offset from now on."""
        if not self.batches[place].by_offset:
            self.batches[place] = self.batches[place]._replace(by_offset=True)

    def change(
        self, place: int, first_offset: int, last_offset: int, to: Callable[[Piece], InFlightState]
    ) -> None:
        """Change the states between two offsets of a batch, and update `delivery_complete_count`."""

        def changed_piece(piece: Piece) -> tuple[Piece]:
            after = Piece(piece.first_offset, piece.last_offset, to(piece))
            self._count(piece, after)
            return (after,)

        self._change(place, first_offset, last_offset, changed_piece)

    def put(self, place: int, pieces: Sequence[Piece]) -> None:
        """Give pieces of a batch, in order, the states that they have here; each had one state before.

        In one pass: a member may acknowledge each record of a large batch in another way than the one before.
        """
        if len(pieces) == 1:
            self.set(place, *pieces[0])
        if len(pieces) < 2:
            return
        coming = deque(pieces)

        def parts(piece: Piece) -> Iterator[Piece]:
            begin = piece.first_offset
            while coming and coming[0].first_offset <= piece.last_offset:
                part = coming.popleft()
                if begin < part.first_offset:
                    yield Piece(begin, part.first_offset - 1, piece.state)
                self._count(piece, part)
                yield part
                begin = part.last_offset + 1
            if begin <= piece.last_offset:
                yield piece._replace(first_offset=begin)

        self._change(place, pieces[0].first_offset, pieces[-1].last_offset, parts)

    def _change(
        self, place: int, first_offset: int, last_offset: int, to: Callable[[Piece], Iterable[Piece]]
    ) -> None:
        batch = changed(self.batches[place], first_offset, last_offset, to)
        self.batches[place] = batch if len(batch.runs) == 1 else batch._replace(by_offset=True)

    def _count(self, before: Piece, after: Piece) -> None:
        """Update `delivery_complete_count`, now that `before` or a part of it has become `after`."""
        is_done = after.state.is_done
        if is_done is not before.state.is_done:
            size = max(after.last_offset - max(after.first_offset, self.start_offset) + 1, 0)
            self.delivery_complete_count += size if is_done else -size

    def set(self, place: int, first_offset: int, last_offset: int, state: InFlightState) -> None:
        """Give all records between two offsets of a batch one state."""
        self.change(place, first_offset, last_offset, lambda _: state)

    # ---- what follows ----

    def write(self, token: Optional[int], batches: list[WrittenBatch]) -> None:
        """Write states; the request of `token` is answered when that is done."""
        write = StateWrite(
            self.next_write_id,
            self.state.state_epoch,
            self.start_offset,
            self.delivery_complete_count,
            tuple(batches),
        )
        self.next_write_id += 1
        self.writes = (*self.writes, PendingWrite(write, token))
        self.records.append(write)

    def lock_until(self) -> int:
        """The end of a lock that begins now."""
        end_ms = self.now_ms + self.config.record_lock_duration_ms
        self.watch(end_ms)
        return end_ms

    def watch(self, end_ms: int) -> None:
        """A lock ends at `end_ms`: set the timer if it would fire later."""
        if self.timer_at_ms is None or end_ms < self.timer_at_ms:
            self.timer_at_ms = end_ms
            self.effects.append(SetTimer(LOCK_TIMER, end_ms))

    def reply(self, token: Optional[int], result: object) -> None:
        """Answer a request, if there is one."""
        if token is not None:
            self.effects.append(Reply(token, result))

    def wake(self) -> None:
        """Wake the fetches that wait for this share partition."""
        self.effects.append(Start(WakeFetches()))

    def step(self) -> Step[SharePartition]:
        """The decision."""
        state = self.state._replace(
            start_offset=self.start_offset,
            end_offset=self.end_offset,
            batches=tuple(self.batches),
            gap_window=self.gap_window,
            look_for_available=self.look_for_available,
            delivery_complete_count=self.delivery_complete_count,
            writes=self.writes,
            next_write_id=self.next_write_id,
            timer_at_ms=self.timer_at_ms,
        )
        return Step(state, tuple(self.records), tuple(self.effects))


def written_batch(piece: Piece) -> WrittenBatch:
    """The state batch to write for records in their new state."""
    return WrittenBatch(
        piece.first_offset, piece.last_offset, piece.state.delivery, piece.state.delivery_count
    )

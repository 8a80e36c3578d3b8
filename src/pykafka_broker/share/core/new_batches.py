"""Records that were never delivered become in-flight batches.

In batch-optimized mode whole record batches are acquired, in pieces of about `batch_size` offsets. In
record-limit mode (KIP-1206) at most `max_records` are acquired; the rest of the last record batch is in
flight too, but available and with no delivery counted.
"""

from __future__ import annotations

from pykafka_broker.share.core.batch import InFlightBatch, Run, whole
from pykafka_broker.share.core.events import Acquire, AcquiredRecords, AcquireMode, FetchedBatch
from pykafka_broker.share.core.in_flight import Delivery, InFlightState, acquired
from pykafka_broker.share.core.turn import Turn

_NEVER_DELIVERED = InFlightState(Delivery.AVAILABLE, 0)


def acquire_new(
    turn: Turn, event: Acquire, first_offset: int, last_offset: int, max_records: int
) -> list[AcquiredRecords]:
    """Acquire from one offset on, at least one record batch."""
    if not turn.batches:
        # All records in flight are done; a record batch that begins earlier was delivered in part.
        first_offset = max(first_offset, turn.end_offset)
    if first_offset > last_offset:
        return []
    end = last_offset
    if max_records < last_offset - first_offset + 1:
        end = _end_of_batch(event.batches, first_offset + max_records - 1)
        if turn.active_gap_window is not None:
            # A loaded state may end within a record batch, and the next state may begin there.
            end = min(end, last_offset)
    state = acquired(_NEVER_DELIVERED, event.member_id, turn.lock_until())
    if event.mode is AcquireMode.RECORD_LIMIT:
        records = [acquire_at_most(turn, state, first_offset, end, max_records)]
    else:
        records = _in_pieces(event, first_offset, end)
        for part in records:
            turn.insert(whole(part.first_offset, part.last_offset, state))
    if turn.batches[0].first_offset == first_offset:
        turn.start_offset = first_offset
    turn.end_offset = max(turn.end_offset, end)
    move_gap_window(turn, records[-1].last_offset + 1)
    return records


def acquire_at_most(
    turn: Turn, state: InFlightState, first_offset: int, end: int, max_records: int
) -> AcquiredRecords:
    """Make one in-flight batch, and acquire at most `max_records` of it."""
    last = min(end, first_offset + max_records - 1)
    if last == end:
        turn.insert(whole(first_offset, end, state))
    else:
        runs = (Run(last, state), Run(end, _NEVER_DELIVERED))
        turn.insert(InFlightBatch(first_offset, end, runs, by_offset=True))
        turn.look_for_available = True
    return AcquiredRecords(first_offset, last, state.delivery_count)


def _in_pieces(event: Acquire, first_offset: int, end: int) -> list[AcquiredRecords]:
    """Cut the offsets before each record batch that begins `batch_size` or more after the last cut."""
    cuts = [first_offset]
    if end - first_offset + 1 > event.batch_size:
        for batch in event.batches:
            if batch.base_offset > end:
                break
            if batch.base_offset > cuts[-1] and batch.base_offset - cuts[-1] >= event.batch_size:
                cuts.append(batch.base_offset)
    ends = [cut - 1 for cut in cuts[1:]] + [end]
    return [AcquiredRecords(first, last, 1) for first, last in zip(cuts, ends, strict=True)]


def _end_of_batch(batches: tuple[FetchedBatch, ...], offset: int) -> int:
    """The last offset of the record batch that holds an offset; the offset itself if none does."""
    for batch in batches:
        if batch.base_offset <= offset <= batch.last_offset:
            return batch.last_offset
    return offset


def move_gap_window(turn: Turn, offset: int) -> None:
    """Everything below an offset has been read since the state was loaded."""
    window = turn.active_gap_window
    if window is not None and offset <= window.end_offset:
        turn.gap_window = window._replace(start_offset=max(window.start_offset, offset))
    else:
        turn.gap_window = None

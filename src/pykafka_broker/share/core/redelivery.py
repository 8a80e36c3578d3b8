"""Records that were delivered before and are available again.

A record that makes its consumer fail counts a delivery for all records delivered with it, so that all would
reach the limit together. So a batch that has had half of its deliveries is delivered apart from others and in
smaller pieces: half of the batch, then a quarter, and so on. In the last delivery each record goes alone.
"""

from __future__ import annotations

from pykafka_broker.share.core.batch import InFlightBatch, Piece
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import Acquire, AcquiredRecords, AcquireMode
from pykafka_broker.share.core.in_flight import acquired
from pykafka_broker.share.core.turn import Turn


def is_throttled(batch: InFlightBatch, first_offset: int, last_offset: int, config: ShareConfig) -> bool:
    """Whether an available record between two offsets must not be delivered with others any more."""
    return any(
        piece.state.can_be_acquired and piece.state.delivery_count >= config.throttled_delivery_count
        for piece in batch.pieces(first_offset, last_offset)
    )


def acquire_whole(turn: Turn, event: Acquire, place: int) -> AcquiredRecords:
    """Acquire an available batch in one piece."""
    batch = turn.batches[place]
    state = acquired(batch.state, event.member_id, turn.lock_until())
    turn.set(place, batch.first_offset, batch.last_offset, state)
    return AcquiredRecords(batch.first_offset, batch.last_offset, state.delivery_count)


def acquire_part(
    turn: Turn, event: Acquire, place: int, first_offset: int, last_offset: int, max_records: int
) -> list[AcquiredRecords]:
    """Acquire the available records between two offsets of a batch, which is kept by offset from now on."""
    turn.by_offset(place)
    batch, config = turn.batches[place], turn.config
    taken = 0
    parts: list[Piece] = []
    records: list[AcquiredRecords] = []
    throttle: int | None = None
    for first, last, state in batch.pieces(first_offset, last_offset):
        if not state.can_be_acquired:
            continue
        size = last - first + 1
        is_last_delivery = state.delivery_count == config.last_delivery_count
        if is_last_delivery:
            if taken:
                break
            size = 1
        too_often = state.delivery_count - config.throttled_delivery_count
        if too_often >= 0 and throttle is None:
            throttle = max(1, batch.size >> (too_often + 1))
        if event.mode is AcquireMode.RECORD_LIMIT:
            size = min(size, max_records - taken)
        if throttle is not None and taken < throttle:
            size = min(size, throttle - taken)
        after = acquired(state, event.member_id, turn.lock_until())
        parts.append(Piece(first, first + size - 1, after))
        taken += size
        _add(records, AcquiredRecords(first, first + size - 1, after.delivery_count))
        is_full = event.mode is AcquireMode.RECORD_LIMIT and taken == max_records
        if is_last_delivery or is_full or taken == throttle:
            break
    turn.put(place, parts)
    return records


def _add(records: list[AcquiredRecords], more: AcquiredRecords) -> None:
    """Add acquired records; consecutive ones of the same delivery count are joined."""
    last = records[-1] if records else None
    if last and last.last_offset + 1 == more.first_offset and last.delivery_count == more.delivery_count:
        records[-1] = last._replace(last_offset=more.last_offset)
    else:
        records.append(more)

"""Where the next fetch begins, whether there is room for what it finds, and who may fetch.

One fetch at a time reads for a share partition: it takes the fetch lock, reads, acquires and unlocks.
"""

from __future__ import annotations

from pykafka_broker.machine.step import Reply, Step
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import BeginFetch, EndFetch
from pykafka_broker.share.core.state import Phase, SharePartition


def first_available(state: SharePartition) -> int | None:
    """The first offset in flight from which records can be acquired; None if there are none."""
    if not state.batches or state.start_offset > state.batches[-1].last_offset:
        return None
    window = state.active_gap_window
    gap = window.start_offset if window is not None else None
    for batch in state.batches:
        if gap is not None:
            if batch.first_offset > gap:
                return gap
            gap = max(batch.last_offset + 1, gap)
        for piece in batch.pieces(batch.first_offset, batch.last_offset):
            if piece.state.can_be_acquired:
                return piece.first_offset
    return None


def behind_end(state: SharePartition) -> int:
    """The first offset that was never fetched."""
    if not state.batches or state.start_offset > state.batches[-1].last_offset:
        return state.end_offset
    return state.end_offset + 1


def earliest_begin(state: SharePartition, config: ShareConfig) -> int | None:
    """The lowest offset from which a fetch could read if it began now; None if none may begin."""
    if state.phase is not Phase.ACTIVE or state.fetch_id is not None:
        return None
    if state.look_for_available:
        return state.start_offset
    offset = behind_end(state)
    is_full = state.in_flight_records >= config.partition_max_record_locks
    return None if is_full and offset == state.end_offset + 1 else offset


def on_begin_fetch(state: SharePartition, event: BeginFetch, config: ShareConfig) -> Step[SharePartition]:
    """Records that are available again come first. At the limit of records in flight nothing else is read."""
    if state.phase is not Phase.ACTIVE or state.fetch_id is not None:
        return Step(state, effects=(Reply(event.token, None),))
    available = first_available(state) if state.look_for_available else None
    state = state._replace(look_for_available=available is not None)
    offset = behind_end(state) if available is None else available
    if offset == state.end_offset + 1 and state.in_flight_records >= config.partition_max_record_locks:
        return Step(state, effects=(Reply(event.token, None),))
    return Step(state._replace(fetch_id=event.fetch_id), effects=(Reply(event.token, offset),))


def on_end_fetch(state: SharePartition, event: EndFetch) -> Step[SharePartition]:
    """Give the fetch lock back, if this fetch has it."""
    return Step(state._replace(fetch_id=None) if state.fetch_id == event.fetch_id else state)

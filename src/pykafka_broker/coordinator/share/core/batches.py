"""State batches, and how new ones are combined with known ones.

For each offset the batch with the higher delivery count wins, then the one with the higher delivery state:
the state of a record only moves on, so the order of two writes does not matter. Offsets before the start
offset are cut off. The result is in offset order, without overlaps; neighbours of one state are joined as far
as one pass from left to right finds them. Apache Kafka's `PersisterStateBatchCombiner` makes the same list.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from pykafka_broker.system.named_tuple import NamedTuple

#: A start offset that cuts nothing off.
NO_CUT = -1


class StateBatch(NamedTuple):
    """A range of offsets whose records are in the same state. The order of fields is that of sorting."""

    first_offset: int
    #: Inclusive.
    last_offset: int
    delivery_count: int
    #: 0 available, 2 acknowledged, 4 archived; records in flight (1) are not stored.
    delivery_state: int


def combined(
    known: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Combine the batches in `known` and `new`, from `start_offset` on."""
    left = [*known, *new]
    if start_offset != NO_CUT:
        left = [from_offset(batch, start_offset) for batch in left if batch.last_offset >= start_offset]
    if len(left) < 2:
        return tuple(left)
    left.sort()
    # The results of merged batches; a heap.
    pieces: list[StateBatch] = []
    done = []
    before = left[0]
    place, end = 1, len(left)
    while place < end or pieces:
        if pieces and (place == end or pieces[0] < left[place]):
            after = heappop(pieces)
        else:
            after = left[place]
            place += 1
        # Most do not touch: the first condition saves a call.
        if after[0] > before[1] + 1 or not touch(before, after):
            done.append(before)
            before = after
            continue
        for batch in _merged(before, after):
            heappush(pieces, batch)
        before = heappop(pieces)
    done.append(before)
    return tuple(done)


def from_offset(batch: StateBatch, offset: int) -> StateBatch:
    """A batch without what is before `offset`."""
    return batch if batch[0] >= offset else batch._replace(first_offset=offset)


def rank(batch: StateBatch) -> tuple[int, int]:
    """Of batches that overlap, the one of the higher rank counts."""
    return batch.delivery_count, batch.delivery_state


def touch(before: StateBatch, after: StateBatch) -> bool:
    """Whether two batches in order overlap, or are neighbours of one state."""
    if after.first_offset <= before.last_offset:
        return True
    return after.first_offset == before.last_offset + 1 and rank(before) == rank(after)


def _merged(before: StateBatch, after: StateBatch) -> list[StateBatch]:
    """Merge two batches in order that touch: the higher rank is kept whole, the lower is cut."""
    if rank(before) == rank(after):
        return [before._replace(last_offset=max(before.last_offset, after.last_offset))]
    if rank(before) > rank(after):
        right = after._replace(first_offset=before.last_offset + 1)
        return [before, right] if right.first_offset <= right.last_offset else [before]
    pieces = [after]
    if before.first_offset < after.first_offset:
        pieces.append(before._replace(last_offset=after.first_offset - 1))
    if before.last_offset > after.last_offset:
        pieces.append(before._replace(first_offset=after.last_offset + 1))
    return pieces

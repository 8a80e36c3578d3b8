"""What is written to the share coordinator (WriteShareGroupState), and its replay.

Kafka's broker writes one state batch for each offset of a batch that is kept by offset; here consecutive
offsets of one state share one, as the share coordinator joins them anyway. Records archived because they left
the log, or because their transaction was aborted, are never written: the start offset passes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from pykafka_broker.share.core.in_flight import Delivery
from pykafka_broker.system.named_tuple import NamedTuple

_first_offset = attrgetter("first_offset")


class WrittenBatch(NamedTuple):
    """Consecutive offsets of one state, as requests between brokers have them."""

    first_offset: int
    last_offset: int
    delivery: Delivery
    delivery_count: int


class StateWrite(NamedTuple):
    """One request to the share coordinator; the shell adds its leader epoch."""

    #: Comes back with `WriteDone`.
    write_id: int
    state_epoch: int
    start_offset: int
    #: Records at or above the start offset that need no delivery any more.
    delivery_complete_count: int
    batches: tuple[WrittenBatch, ...]


class Persisted(NamedTuple):
    """The share coordinator's state of a share partition, its answer to ReadShareGroupState."""

    start_offset: int
    #: In offset order, without overlaps; neighbours of one state are joined.
    batches: tuple[WrittenBatch, ...] = ()


def replay(persisted: Persisted, write: StateWrite) -> Persisted:
    """Add a successful write: later states win, and states below the start offset are dropped."""
    start_offset = max(persisted.start_offset, write.start_offset)
    new = sorted(write.batches, key=_first_offset)
    known = [*_outside(persisted.batches, new), *new]
    known.sort(key=_first_offset)
    joined: list[WrittenBatch] = []
    for batch in known:
        if batch.last_offset < start_offset:
            continue
        batch = batch._replace(first_offset=max(batch.first_offset, start_offset))
        if joined and _continues(joined[-1], batch):
            joined[-1] = joined[-1]._replace(last_offset=batch.last_offset)
        else:
            joined.append(batch)
    return Persisted(start_offset, tuple(joined))


def _continues(before: WrittenBatch, after: WrittenBatch) -> bool:
    return (
        before.last_offset + 1 == after.first_offset
        and before.delivery is after.delivery
        and before.delivery_count == after.delivery_count
    )


def _outside(known: Iterable[WrittenBatch], new: Sequence[WrittenBatch]) -> Iterator[WrittenBatch]:
    """The parts of `known` that `new` does not cover, in one pass; both are in offset order, and neither
    overlaps itself.
    """
    at = 0
    for old in known:
        while at < len(new) and new[at].last_offset < old.first_offset:
            at += 1
        left = [old]
        place = at
        while left and place < len(new) and new[place].first_offset <= old.last_offset:
            *before, last = left
            left = uncovered(last, new[place])
            yield from before
            place += 1
        yield from left


def uncovered(old: WrittenBatch, new: WrittenBatch) -> list[WrittenBatch]:
    """The parts of `old` that `new` does not cover."""
    parts = []
    if old.first_offset < new.first_offset:
        parts.append(old._replace(last_offset=min(old.last_offset, new.first_offset - 1)))
    if old.last_offset > new.last_offset:
        parts.append(old._replace(first_offset=max(old.first_offset, new.last_offset + 1)))
    return parts

"""Records of aborted transactions, for groups that read committed: archived instead of delivered.

Markers are delivered like other records; a client acknowledges them as gaps.
"""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.share.core.events import AbortedTransaction, Acquired, AcquiredRecords, FetchedBatch
from pykafka_broker.share.core.in_flight import Delivery
from pykafka_broker.share.core.start_offset import archive
from pykafka_broker.share.core.turn import Turn


def without_aborted(
    turn: Turn,
    acquired: list[AcquiredRecords],
    batches: Iterable[FetchedBatch],
    aborted: tuple[AbortedTransaction, ...],
) -> Acquired:
    """Archive the acquired records of aborted transactions; the member gets the rest."""
    for batch in batches_of_aborted(batches, aborted):
        archive(turn, batch.base_offset, batch.last_offset, Delivery.ACQUIRED)
        acquired = [part for records in acquired for part in _outside(records, batch)]
    return Acquired(tuple(acquired))


def batches_of_aborted(
    batches: Iterable[FetchedBatch], aborted: tuple[AbortedTransaction, ...]
) -> list[FetchedBatch]:
    """A producer's batches from the first offset of its aborted transaction up to the marker."""
    coming = sorted(aborted, reverse=True)
    open_producers: set[int] = set()
    found = []
    for batch in batches:
        while coming and coming[-1].first_offset <= batch.last_offset:
            open_producers.add(coming.pop().producer_id)
        if batch.is_abort_marker:
            open_producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in open_producers:
            found.append(batch)
    return found


def _outside(records: AcquiredRecords, batch: FetchedBatch) -> list[AcquiredRecords]:
    """The parts of acquired records that a batch does not cover."""
    parts = []
    if records.first_offset < batch.base_offset:
        parts.append(records._replace(last_offset=min(records.last_offset, batch.base_offset - 1)))
    if records.last_offset > batch.last_offset:
        parts.append(records._replace(first_offset=max(records.first_offset, batch.last_offset + 1)))
    return parts

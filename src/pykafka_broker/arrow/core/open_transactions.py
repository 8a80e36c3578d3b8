"""The aborted and the open transactions of a partition, as its batches show from some offset on. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.protocol.records.batch import BatchHeader
from pykafka_broker.protocol.records.control import EndTransactionMarker
from pykafka_broker.system.named_tuple import NamedTuple


class Aborted(NamedTuple):
    """A transaction that was aborted, and the offset of its marker."""

    first_offset: int
    producer_id: int
    last_offset: int


class TransactionScan:
    """The transactions after some batches, which are noted in the order of the log."""

    __slots__ = ("_open", "aborted")

    def __init__(self, opened: Mapping[int, int]) -> None:
        """`opened`: the first offset of each transaction that is open before the first batch, by producer
        id.
        """
        self._open = dict(opened)
        self.aborted: list[Aborted] = []

    def note_batch(self, header: BatchHeader) -> None:
        """A batch with records of users."""
        if header.is_transactional:
            self._open.setdefault(header.producer_id, header.base_offset)

    def note_marker(self, header: BatchHeader, marker: EndTransactionMarker) -> None:
        """The end of its producer's transaction, if one was open."""
        first_offset = self._open.pop(header.producer_id, None)
        if first_offset is not None and not marker.commit:
            self.aborted.append(Aborted(first_offset, header.producer_id, header.base_offset))

    def aborted_from(self, offset: int) -> list[tuple[int, int]]:
        """First offset and producer id of the aborted transactions that end at `offset` or behind it."""
        return [(each.first_offset, each.producer_id) for each in self.aborted if each.last_offset >= offset]

    def last_stable_offset(self, end_offset: int) -> int:
        """The first offset of the oldest open transaction; `end_offset` if none is open."""
        return min(self._open.values(), default=end_offset)

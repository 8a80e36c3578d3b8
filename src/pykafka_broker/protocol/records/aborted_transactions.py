"""The batches that a read-committed consumer skips: those of aborted transactions, and markers. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.records.batch import BatchHeader, read_records
from pykafka_broker.protocol.records.control import ControlRecordType, decode_key


class AbortedTransactions:
    """Aborted transactions of one partition from an offset on, to filter the batches read from there."""

    __slots__ = ("_coming", "_open")

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        """Each transaction by its first offset and its producer id, as in a Fetch answer."""
        self._coming = sorted(aborted, reverse=True)
        self._open: set[int] = set()

    def hides(self, header: BatchHeader, batch: Buffer) -> bool:
        """Whether to hide the batch at the start of `batch` from a reader of committed records; call it for
        each batch in order.

        Raises:
            KafkaError: the batch is a damaged marker.
        """
        while self._coming and self._coming[-1][0] <= header.last_offset:
            self._open.add(self._coming.pop()[1])
        if not header.is_control:
            return header.is_transactional and header.producer_id in self._open
        marker = next(read_records(batch), None)
        if marker is not None and decode_key(marker.key) is ControlRecordType.ABORT:
            self._open.discard(header.producer_id)
        return True

"""Transactions as compaction meets them while it walks a log: pure.

Records of aborted transactions are removed at once, whatever their keys. A marker is kept until no batch of
its transaction is left, and then until its delete horizon has passed. Everything below the last stable offset
is decided, so the aborted transactions are known ahead, from the `.txnindex` files.
"""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.log.partition.producers import transaction_marker
from pykafka_broker.log.segment.aborted_txns import AbortedTxn
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.records.batch import BatchHeader


class CleanedTransactions:
    """Fed with every batch of a log in order."""

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._ahead = sorted(aborted, key=lambda txn: txn.first_offset, reverse=True)
        #: Aborted transactions that have begun and not ended, by producer id, and whether data was seen.
        self._aborted: dict[int, tuple[AbortedTxn, bool]] = {}
        #: Producers with data of a transaction that will be committed.
        self._committed: set[int] = set()
        #: Aborted transactions with batches left: the entries of the new `.txnindex`.
        self.kept: list[AbortedTxn] = []

    def on_data(self, header: BatchHeader) -> bool:
        """A batch of records; True if they belong to an aborted transaction."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        found = self._aborted.get(header.producer_id)
        if found is None:
            self._committed.add(header.producer_id)
            return False
        self._aborted[header.producer_id] = found[0], True
        return True

    def on_control(self, header: BatchHeader, batch: Buffer) -> bool:
        """A control batch; True if it may be removed."""
        self._begin_up_to(header.last_offset)
        if header.records_count == 0:
            return True
        marker = transaction_marker(batch, header)
        if marker is None:
            return False
        if marker.commit:
            had_data = header.producer_id in self._committed
            self._committed.discard(header.producer_id)
            return not had_data
        aborted, had_data = self._aborted.pop(header.producer_id, (None, False))
        if aborted is not None and had_data:
            self.kept.append(aborted)
            return False
        return True

    def _begin_up_to(self, offset: int) -> None:
        while self._ahead and self._ahead[-1].first_offset <= offset:
            txn = self._ahead.pop()
            self._aborted.setdefault(txn.producer_id, (txn, False))

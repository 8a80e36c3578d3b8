"""From the log of a shard to its state.

The log is read once. Only the newest value of each key is decoded: a million commits of one key cost a
million dictionary updates and one decoded record. A million commits take 4 s in batches of one and 1.7 s in
batches of ten; a million different keys take 4 s more.

Offsets of a transaction count from its commit marker on, unless a later commit came before the marker.
Transactions still open at the end of the log stay pending.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from pykafka_broker.coordinator.groups.core.offset_record import OffsetRecord
from pykafka_broker.coordinator.groups.core.record import decode_record
from pykafka_broker.coordinator.groups.core.records import Replay
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.transactional_records import TransactionalRecord
from pykafka_broker.log.partition.transaction_guards import NO_GUARD
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.records.batch import (
    NO_PRODUCER_EPOCH,
    BatchHeader,
    iter_batches,
    read_records,
)
from pykafka_broker.protocol.records.control import decode_marker

#: Offset and value of a key's newest record; a null value deletes.
_Newest = dict[bytes, tuple[int, "bytes | None"]]


class Loader:
    """Takes in the batches of a log from its start, then builds the state, both in steps."""

    def __init__(self) -> None:
        #: In the order of the log, so that a group's record and its offsets keep their order.
        self._newest: _Newest = {}
        self._open_transactions: dict[int, _Newest] = {}
        self._undigested: Iterator[tuple[bytes, tuple[int, bytes | None]]] | None = None
        self._fold = Replay()
        self.end_offset = 0

    def add(self, batches: Buffer) -> int:
        """Take in whole batches; returns how many records there were."""
        count = 0
        for pos, header in iter_batches(batches):
            batch = memoryview(batches)[pos : pos + header.size_in_bytes]
            if header.is_control:
                self._end_transaction(header, batch)
            elif header.is_transactional:
                self._take(batch, self._open_transactions.setdefault(header.producer_id, {}))
            else:
                self._take(batch, self._newest)
            self.end_offset = header.next_offset
            count += header.records_count
        return count

    def _take(self, batch: Buffer, newest: _Newest) -> None:
        for record in read_records(batch):
            if record.key is None:
                continue
            newest.pop(record.key, None)
            newest[record.key] = (record.offset, record.value)
            if record.value is None:
                # A deleted offset does not come back by a marker.
                for pending in self._open_transactions.values():
                    pending.pop(record.key, None)

    def _end_transaction(self, header: BatchHeader, batch: Buffer) -> None:
        pending = self._open_transactions.pop(header.producer_id, {})
        record = next(read_records(batch))
        marker = decode_marker(record.key, record.value)
        if marker is None or not marker.commit:
            return
        for key, (offset, value) in pending.items():
            if self._newest.get(key, (-1, None))[0] < offset:
                self._newest.pop(key, None)
                self._newest[key] = (offset, value)

    def digest(self, count: int) -> bool:
        """Decode the next `count` keys; True once none is left. Nothing may be added after the first call."""
        if self._undigested is None:
            self._undigested = iter(self._newest.items())
        digested = 0
        for key, (_, value) in islice(self._undigested, count):
            digested += 1
            record = decode_record(key, value)
            if record is not None:
                self._fold.apply(record)
        return digested < count

    def state(self) -> Groups:
        """The state that the log leads to."""
        while not self.digest(len(self._newest) + 1):
            pass
        still_open = [
            (offset, producer_id, key, value)
            for producer_id, pending in self._open_transactions.items()
            for key, (offset, value) in pending.items()
        ]
        for offset, producer_id, key, value in sorted(still_open):
            record = decode_record(key, value)
            if record is not None and isinstance(record, OffsetRecord):
                # Records that are in the log already need no guard.
                self._fold.apply(TransactionalRecord(producer_id, NO_PRODUCER_EPOCH, NO_GUARD, record))
                if self._newest.get(key, (-1, None))[0] > offset:
                    self._fold.supersede(record)
        return self._fold.state()

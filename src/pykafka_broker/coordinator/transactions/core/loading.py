"""From the log of a shard to its state.

Only the newest value of each id is decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from pykafka_broker.coordinator.transactions.core.records import Record, decode_record, replay
from pykafka_broker.coordinator.transactions.core.state import Transactions
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.records.batch import iter_batches, read_records


class Loader:
    """Takes in the batches of a log from its start, then builds the state, both in steps."""

    def __init__(self) -> None:
        self._newest: dict[bytes, bytes | None] = {}
        self._undigested: Iterator[tuple[bytes, bytes | None]] | None = None
        self._records: list[Record] = []
        self.end_offset = 0

    def add(self, batches: Buffer) -> int:
        """Take in whole batches; returns how many records there were."""
        count = 0
        for pos, header in iter_batches(batches):
            if not header.is_control:
                for record in read_records(memoryview(batches)[pos : pos + header.size_in_bytes]):
                    if record.key is not None:
                        self._newest[bytes(record.key)] = (
                            None if record.value is None else bytes(record.value)
                        )
            self.end_offset = header.next_offset
            count += header.records_count
        return count

    def digest(self, count: int) -> bool:
        """Decode the next `count` ids; True once none is left. Nothing may be added after the first call."""
        if self._undigested is None:
            self._undigested = iter(self._newest.items())
        digested = 0
        for key, value in islice(self._undigested, count):
            digested += 1
            record = decode_record(key, value)
            if record is not None:
                self._records.append(record)
        return digested < count

    def state(self) -> Transactions:
        """The state that the log leads to."""
        while not self.digest(len(self._newest) + 1):
            pass
        return replay(self._records)

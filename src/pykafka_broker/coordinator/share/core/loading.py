"""From the log of a shard to its state.

An update changes the state before it, so every record is applied, in log order.
"""

from __future__ import annotations

from collections import deque

from pykafka_broker.coordinator.share.core.records import Replay, decode_record
from pykafka_broker.coordinator.share.core.state import Shares
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.records.batch import iter_batches, read_records


class Loader:
    """Takes in the batches of a log from its start, then builds the state, both in steps."""

    def __init__(self, updates_per_snapshot: int) -> None:
        self._replay = Replay(updates_per_snapshot)
        self._undigested: deque[tuple[int, bytes, bytes | None]] = deque()
        self.end_offset = 0

    def add(self, batches: Buffer) -> int:
        """Take in whole batches; returns how many records there were."""
        count = 0
        for pos, header in iter_batches(batches):
            if not header.is_control:
                for record in read_records(memoryview(batches)[pos : pos + header.size_in_bytes]):
                    if record.key is not None:
                        value = None if record.value is None else bytes(record.value)
                        self._undigested.append((record.offset, bytes(record.key), value))
            self.end_offset = header.next_offset
            count += header.records_count
        return count

    def digest(self, count: int) -> bool:
        """Apply the next `count` records; True once none is left. Nothing may be added after that."""
        for _ in range(min(count, len(self._undigested))):
            offset, key, value = self._undigested.popleft()
            record = decode_record(key, value)
            if record is not None:
                self._replay.add(record, offset)
        return not self._undigested

    def state(self) -> Shares:
        """The state that the log leads to."""
        while not self.digest(len(self._undigested)):
            pass
        return self._replay.state()

"""What is known of the log of a partition: what clients were told of it, and what replicas have committed.
Each is held against the other when it comes.

Values are numbers that no two records share; those of one producer ascend.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from pykafka_broker.protocol.records.batch import BatchHeader, read_records
from pykafka_broker.protocol.records.control import decode_marker
from tests.simulation.violation import check

TopicPartition = tuple[str, int]


class Stored(NamedTuple):
    """A record of a log."""

    offset: int
    value: int


class CommittedReads:
    """What a consumer with read_committed has read below `up_to`, in order."""

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.begin_anew()

    def begin_anew(self) -> None:
        """Nothing is read yet."""
        self.up_to = 0
        self.records: list[Stored] = []
        #: So many of the records were held against those that count.
        self._judged = 0

    def judge(self, counting: list[Stored], stable_end: int) -> None:
        """Hold what was read against the records that count below `stable_end`."""
        end = min(self.up_to, stable_end)
        while True:
            read, counts = _next(self.records, self._judged, end), _next(counting, self._judged, end)
            text = f"a consumer of what is committed has read {read} where {counts} is next"
            check(read == counts, f"{self.partition}: {text}")
            if read is None:
                return
            self._judged += 1


def _next(records: list[Stored], index: int, end: int) -> Stored | None:
    return records[index] if index < len(records) and records[index].offset < end else None


class KnownLog:
    """Raises a Violation when something does not fit what is known already."""

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        #: What clients were told that offsets from `committed_end` on hold.
        self.told: dict[int, int] = {}
        #: What they were told is there, at an offset that no broker remembers, and is not committed yet.
        self.somewhere: set[int] = set()
        #: Up to here replicas have shown what is committed.
        self.committed_end = 0
        #: What the offsets before it hold, if it is no marker.
        self._values: dict[int, int] = {}
        #: Whether each of these values counts: not if its transaction was aborted; None: that is open.
        self.counts: dict[int, bool | None] = {}
        #: The records before `stable_end` that count.
        self.counting: list[Stored] = []
        #: All records from there on.
        self._unstable: deque[Stored] = deque()
        #: The values of open transactions, by their producers.
        self._open: dict[int, list[int]] = {}
        #: The last value of each producer.
        self._last: dict[int, int] = {}

    @property
    def end(self) -> int:
        """The offset behind the last record that is committed, or of which a client was told."""
        return max(self.committed_end, max(self.told, default=-1) + 1)

    @property
    def stable_end(self) -> int:
        """The offset of the first record of an open transaction, or `committed_end`."""
        return self._unstable[0].offset if self._unstable else self.committed_end

    def tell(self, offset: int, value: int, how: str) -> None:
        """A client is told of a record."""
        if offset < self.committed_end:
            known = self._values.get(offset)
        else:
            known = self.told.setdefault(offset, value)
        check(
            known == value, f"{self.partition} offset {offset} held {known}, and now {value} is {how} there"
        )

    def tell_somewhere(self, value: int) -> None:
        """A producer is told that a record is there."""
        if value not in self.counts:
            self.somewhere.add(value)

    def commit(self, header: BatchHeader, batch: memoryview) -> Sequence[int]:
        """The next batch is committed; the values of the transaction that it ends."""
        start, self.committed_end = self.committed_end, header.next_offset
        check(
            header.base_offset == start, f"{self.partition} ends at {start}, and not at {header.base_offset}"
        )
        ended: Sequence[int] = ()
        if header.is_control:
            ended = self._end_transaction(header, batch)
        else:
            for record in read_records(batch):
                self._append(header, Stored(record.offset, int(record.value or b"")))
        for offset in range(start, self.committed_end):
            value, told = self._values.get(offset), self.told.pop(offset, None)
            check(
                told in (None, value), f"{self.partition} offset {offset} held {told}, and now holds {value}"
            )
        while self._unstable and (counts := self.counts[self._unstable[0].value]) is not None:
            decided = self._unstable.popleft()
            if counts:
                self.counting.append(decided)
        return ended

    def _append(self, header: BatchHeader, record: Stored) -> None:
        offset, value = record
        check(value not in self.counts, f"{self.partition} has {value} twice, the second time at {offset}")
        if header.has_producer_id:
            before = self._last.get(header.producer_id, -1)
            check(before < value, f"{self.partition}: {value} of a producer comes after {before}")
            self._last[header.producer_id] = value
        self._values[offset] = value
        self.somewhere.discard(value)
        self._unstable.append(record)
        self.counts[value] = None if header.is_transactional else True
        if header.is_transactional:
            self._open.setdefault(header.producer_id, []).append(value)

    def _end_transaction(self, header: BatchHeader, batch: memoryview) -> Sequence[int]:
        [record] = read_records(batch)
        marker = decode_marker(record.key, record.value)
        assert marker is not None
        ended = self._open.pop(header.producer_id, [])
        self.counts |= dict.fromkeys(ended, marker.commit)
        return ended

    def finished(self, end: int) -> None:
        """All is committed that the log has up to its end: nothing is missing."""
        check(end >= self.end, f"{self.partition} ends at {end}, and not at {self.end}: it held {self.told}")
        check(not self.somewhere, f"{self.partition} has lost {sorted(self.somewhere)}")

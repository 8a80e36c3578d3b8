"""The input of a round of cleaning and its results: plain values, which can go to another process."""

from __future__ import annotations

from collections.abc import Sequence

from pykafka_broker.log.segment.aborted_txns import AbortedTxn
from pykafka_broker.system.named_tuple import NamedTuple


class LastRecord(NamedTuple):
    """The last batch of an active producer; `data_offset` is -1 if that was a marker."""

    data_offset: int
    producer_epoch: int


class CleaningAborted(Exception):
    """The log has changed since the round began, or the cleaner is stopping."""


class DamagedSegment(Exception):
    """A batch cannot be read: nothing of the log may be replaced."""

    def __init__(self, base_offset: int, position: int, reason: str) -> None:
        super().__init__(base_offset, position, reason)
        self.base_offset = base_offset

    def __str__(self) -> str:
        return "segment {} is damaged at position {}: {}".format(*self.args)


class SegmentToClean(NamedTuple):
    """A closed segment; its offsets end where the next one begins."""

    base_offset: int
    end_offset: int
    size_bytes: int


class Job(NamedTuple):
    """Everything a round on one log needs."""

    directory: str
    #: As Kafka prints it: "orders-3".
    name: str
    #: The log's first segments, up to the first that may not be cleaned.
    segments: Sequence[SegmentToClean]
    first_dirty_offset: int
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    key_map_bytes: int
    key_map_load: float
    io_buffer_bytes: int
    aborted: Sequence[AbortedTxn]
    last_records: dict[int, LastRecord]


class CleanedSegment(NamedTuple):
    """A finished group: files with the suffix `.cleaned`, durable but for their names."""

    base_offset: int
    replaced: Sequence[int]
    size_bytes: int
    aborted: Sequence[AbortedTxn]

"""Why offsets are not among the records that were read: what the log itself has there. Pure.

An offset without a record is seldom a fault. Transactions end with markers, which take an offset each;
readers of committed records do not see what was aborted; compaction removes records. The log tells these
apart from a record that is there and was not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import cached_property

from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.records.batch import BatchHeader, read_records
from pykafka_broker.spark.audit.offsets import Span
from pykafka_broker.system.named_tuple import NamedTuple


class Why(StrEnum):
    """What is at an offset that was not read."""

    MARKER = "marker"
    ABORTED = "aborted"
    #: No record any more, in a topic that is compacted.
    COMPACTED = "compacted"
    #: A record that a reader should have seen.
    LOST = "lost"
    #: Nothing, and the topic is not compacted.
    UNEXPLAINED = "unexplained"


class LoggedBatch:
    """A batch of the log, whole."""

    def __init__(self, header: BatchHeader, data: Buffer, is_aborted: bool) -> None:
        self.header = header
        self.data = data
        #: Whether readers leave the batch out, because its transaction was aborted.
        self.is_aborted = is_aborted

    @cached_property
    def offsets(self) -> frozenset[int]:
        """Those of its records. Raises KafkaError: the batch is damaged."""
        return frozenset([record.offset for record in read_records(self.data)])


class Stretch(NamedTuple):
    """A part of the log, from an offset that was asked for up to `end`; without batches, none follows."""

    start: int
    end: int
    batches: Sequence[LoggedBatch]


class Explanation:
    """What is at the offsets of a partition that were not read."""

    def __init__(self, examples: int) -> None:
        self._most = examples
        self.counts: dict[Why, int] = {}
        #: The first few of each.
        self.examples: dict[Why, list[Span]] = {}

    def count(self, why: Why) -> int:
        """How many offsets there are of a kind."""
        return self.counts.get(why, 0)

    def note(self, why: Why, span: Span) -> None:
        """Offsets of a kind, which follow those that were noted before."""
        self.counts[why] = self.counts.get(why, 0) + span.length
        kept = self.examples.setdefault(why, [])
        if kept and kept[-1].end == span.start:
            kept[-1] = Span(kept[-1].start, span.end)
        elif len(kept) < self._most:
            kept.append(span)


def explain(
    gaps: Iterable[Span], read: Callable[[int], Stretch], *, is_compacted: bool, examples: int
) -> Explanation:
    """Look up all gaps of a partition in its log.

    Args:
        gaps: In order, and all in the log.
        read: Returns a part of the log from an offset on, of any length; called in the order of offsets.
        is_compacted: Whether compaction may have removed records.
        examples: How many spans of each kind to keep.

    Raises:
        KafkaError: a batch is damaged.
    """
    found = Explanation(examples)
    stretch, place = Stretch(0, 0, ()), 0
    nothing = Why.COMPACTED if is_compacted else Why.UNEXPLAINED
    for gap in gaps:
        offset = gap.start
        while offset < gap.end:
            if not stretch.start <= offset < stretch.end:
                stretch, place = read(offset), 0
                if not stretch.batches:
                    found.note(nothing, Span(offset, gap.end))
                    break
            while stretch.batches[place].header.next_offset <= offset:
                place += 1
            batch = stretch.batches[place]
            if batch.header.base_offset > offset:
                until = min(gap.end, batch.header.base_offset)
                found.note(nothing, Span(offset, until))
            else:
                until = min(gap.end, batch.header.next_offset)
                _note_batch(found, batch, Span(offset, until))
            offset = until
    return found


def _note_batch(found: Explanation, batch: LoggedBatch, span: Span) -> None:
    """Offsets that lie within a batch."""
    header = batch.header
    if header.is_control:
        found.note(Why.MARKER, span)
    elif batch.is_aborted:
        found.note(Why.ABORTED, span)
    elif header.records_count == header.last_offset_delta + 1:
        found.note(Why.LOST, span)
    else:
        for offset in range(*span):
            found.note(Why.LOST if offset in batch.offsets else Why.COMPACTED, Span(offset, offset + 1))

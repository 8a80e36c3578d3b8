"""One topic in a DataFrame, read in blocks, and the findings that every audit has. Runs Spark."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pykafka_broker.spark.audit import aggregates
from pykafka_broker.spark.audit.explaining import Explanation, Why
from pykafka_broker.spark.audit.judging import Judge, newest_by_partition
from pykafka_broker.spark.audit.keys import Keys
from pykafka_broker.spark.audit.offsets import Block, Span, by_partition, gaps
from pykafka_broker.spark.audit.report import AuditReport, Finding, Level, PartitionCounts
from pykafka_broker.spark.audit.times import doubtful, late_at_most_ms
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: How far Kafka lets timestamps be ahead, by default.
AHEAD_MS = 3_600_000


class Questions(NamedTuple):
    """The checks to make besides those of offsets."""

    #: Doubled records and the order of each key, which takes another pass, with a shuffle.
    keys: bool = True
    #: Whether a key that was there before is a finding.
    unique_keys: bool = False
    #: How far a timestamp may be behind the newest one before it in its partition; None: not checked.
    late_ms: int | None = None
    #: How far the newest timestamps of partitions may be apart; None: not checked.
    skew_ms: int | None = None
    #: How far a timestamp may be ahead of the clock.
    ahead_ms: int = AHEAD_MS
    #: How many places of each kind a finding names.
    examples: int = 5


QUESTIONS = Questions()


class Ends(NamedTuple):
    """Where the partitions of a log begin and end; empty where no log was asked."""

    starts: Mapping[int, int] = {}
    ends: Mapping[int, int] = {}


class Reading:
    """The records of one topic, and the blocks that Spark made of them."""

    def __init__(self, records: DataFrame, judge: Judge, questions: Questions) -> None:
        """Read the records once.

        Args:
            records: As `aggregates.records_of` gives them.
            judge: Of the topic.
            questions: What to look at.
        """
        newest_ms = time.time_ns() // 1_000_000 + questions.ahead_ms
        self.records = records
        self.blocks = by_partition(aggregates.blocks(records, newest_ms))
        self._judge = judge
        self._questions = questions

    def of(self, partition: int) -> Sequence[Block]:
        """The blocks of a partition."""
        return self.blocks.get(partition, ())

    def range_of(self, partition: int) -> Span:
        """From the first offset that was read up to the last one."""
        blocks = self.of(partition)
        return Span(blocks[0].first_offset, blocks[-1].last_offset + 1) if blocks else Span(0, 0)

    def findings(self) -> Iterator[Finding]:
        """The findings from blocks, besides gaps."""
        judge, (_, _, late_ms, skew_ms, ahead_ms, _) = self._judge, self._questions
        for partition, blocks in self.blocks.items():
            yield from judge.doubled_offsets(partition, blocks)
            yield from judge.ahead(partition, blocks, ahead_ms)
        if skew_ms is not None:
            yield from judge.skew(newest_by_partition(self.blocks), skew_ms)
        if late_ms is not None:
            places = [place for blocks in self.blocks.values() for place in doubtful(blocks, late_ms)]
            if places:
                found = aggregates.late(self.records, places, late_ms)
                yield from (judge.late(each, late_ms) for each in sorted(found))

    def unknown_gaps(self, partition: int, within: Span, *, has_markers: bool = False) -> Iterator[Finding]:
        """Gaps that no log explains.

        Args:
            partition: Where to look.
            within: The offsets to look at.
            has_markers: Whether the part that the topic still has shows gaps, as markers leave them.
        """
        count, named = 0, list[Span]()
        most = self._questions.examples
        only_single = True
        for gap in gaps(self.of(partition), within):
            count += gap.length
            only_single = only_single and gap.length == 1
            if len(named) < most:
                named.append(gap)
        return self._judge.gaps_without_log(
            partition, named, count, are_like_markers=has_markers and only_single
        )

    def keys(self) -> list[Keys] | None:
        """The counts of the pass over keys, if it is wanted."""
        return sorted(aggregates.keys(self.records)) if self._questions.keys else None

    def report(
        self,
        topic: str,
        findings: Iterable[Finding],
        ends: Ends,
        explained: Mapping[int, Explanation],
    ) -> AuditReport:
        """These findings, with those from blocks and keys.

        Args:
            topic: Its name.
            findings: Those about gaps and comparisons.
            ends: Where the log begins and ends.
            explained: What is at offsets without a record, by partition.
        """
        found = [*findings, *self.findings()]
        keys = self.keys()
        for each in keys or ():
            found += self._judge.keys(each, must_be_unique=self._questions.unique_keys)
        by_number = None if keys is None else {each.partition: each for each in keys}
        counts = [
            self._counts(partition, ends, explained.get(partition), by_number)
            for partition in sorted(self.blocks.keys() | ends.ends.keys())
        ]
        return AuditReport(
            topic,
            sum(each.records for each in counts),
            counts,
            sorted(found, key=lambda finding: finding.level is Level.REMARK),
        )

    def _counts(
        self,
        partition: int,
        ends: Ends,
        explanation: Explanation | None,
        keys: Mapping[int, Keys] | None,
    ) -> PartitionCounts:
        blocks, span = self.of(partition), self.range_of(partition)
        oldest = [block.oldest_ms for block in blocks if block.oldest_ms is not None]
        found = None if keys is None else keys.get(partition)

        def instead(why: Why) -> int | None:
            return None if explanation is None else explanation.count(why)

        return PartitionCounts(
            partition=partition,
            records=sum(block.rows for block in blocks),
            size_bytes=sum(block.size_bytes for block in blocks),
            first_offset=span.start if blocks else None,
            last_offset=span.end - 1 if blocks else None,
            log_start=ends.starts.get(partition),
            log_end=ends.ends.get(partition),
            missing=span.length - sum(block.offsets for block in blocks)
            if explanation is None
            else sum(explanation.counts.values()),
            markers=instead(Why.MARKER),
            aborted=instead(Why.ABORTED),
            compacted=instead(Why.COMPACTED),
            keyed=None if keys is None else 0 if found is None else found.keyed,
            keys=None if keys is None else 0 if found is None else found.keys,
            oldest_timestamp=min(oldest, default=None),
            newest_timestamp=newest_by_partition({partition: blocks}).get(partition),
            late_at_most_ms=late_at_most_ms(blocks),
        )

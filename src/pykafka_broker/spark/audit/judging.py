"""Findings in sentences, from counts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pykafka_broker.spark.audit.comparing import Difference, OrderDifference
from pykafka_broker.spark.audit.explaining import Explanation, Why
from pykafka_broker.spark.audit.keys import Keys
from pykafka_broker.spark.audit.offsets import Block, Span
from pykafka_broker.spark.audit.report import Check, Finding, Level
from pykafka_broker.spark.audit.times import Late
from pykafka_broker.system.wording import counted, duration


def offsets_of(spans: Sequence[Span], count: int) -> str:
    """`count` offsets in words; those of `spans` are named."""
    named = sum(span.length for span in spans)
    text = f"{'offset' if count == 1 else 'offsets'} {', '.join(map(str, spans))}"
    return text if named == count else f"{text} and {count - named:,} more"


#: What tells lost records from those that are not archived yet.
_WHO_KNOWS = "With the checkpoint of the archive job an audit can tell."


class Judge:
    """Makes findings about a topic."""

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def _found(
        self, check: Check, partition: int | None, count: int, message: str, level: Level = Level.FINDING
    ) -> Finding:
        subject = self._topic if partition is None else f"{self._topic}-{partition}"
        return Finding(level, check, subject, count, f"{subject}: {message}")

    # -- offsets
    # ----------

    def gaps(self, partition: int, explanation: Explanation) -> Iterator[Finding]:
        """Offsets that were not read although the log has them."""
        for why, says in (
            (Why.LOST, "the log has a record there"),
            (Why.UNEXPLAINED, "the log has nothing there, and the topic is not compacted"),
        ):
            if count := explanation.count(why):
                where = offsets_of(explanation.examples[why], count)
                message = f"{counted(count, 'record')} not read: {says} ({where})."
                yield self._found(Check.OFFSETS, partition, count, message)

    def gaps_without_log(
        self, partition: int, spans: Sequence[Span], count: int, *, are_like_markers: bool
    ) -> Iterator[Finding]:
        """Offsets that no log can explain any more.

        Args:
            partition: Where they are.
            spans: Some of them, in order.
            count: How many offsets there are.
            are_like_markers: Whether these are single offsets, and the log has such gaps where it can still
                be asked: markers of transactions take one offset each.
        """
        if not count:
            return
        where = offsets_of(spans, count)
        if are_like_markers:
            message = (
                f"{counted(count, 'offset')} without a record before the log begins ({where}): markers of "
                "transactions, as it seems; what was there cannot be known any more."
            )
            yield self._found(Check.OFFSETS, partition, count, message, Level.REMARK)
            return
        message = (
            f"{counted(count, 'offset')} without a record ({where}), and no log says why: lost, compacted, "
            "aborted, or markers of transactions."
        )
        yield self._found(Check.OFFSETS, partition, count, message)

    def doubled_offsets(self, partition: int, blocks: Sequence[Block]) -> Iterator[Finding]:
        """Offsets that were read more than once."""
        wrong = [block for block in blocks if block.rows > block.offsets]
        if count := sum(block.rows - block.offsets for block in wrong):
            where = f"between offsets {wrong[0].first_offset} and {wrong[-1].last_offset}"
            message = f"{counted(count, 'row')} with an offset that another row has ({where})."
            yield self._found(Check.DUPLICATES, partition, count, message)

    # -- keys
    # -------

    def keys(self, found: Keys, *, must_be_unique: bool) -> Iterator[Finding]:
        """Doubled records, order and repetition of keys."""
        partition = found.partition
        if count := found.doubled.number:
            assert found.first_double is not None
            like, offset = found.first_double
            message = (
                f"{counted(count, 'record')} there once more, with the same key, value, headers and "
                f"timestamp ({found.doubled}; the one at offset {found.doubled.first} is that of "
                f"{self._topic}-{like} at offset {offset})."
            )
            yield self._found(Check.DUPLICATES, partition, count, message)
        if count := found.alike - found.doubled.number:
            message = f"{counted(count, 'record')} with the key, value and headers of another one."
            yield self._found(Check.DUPLICATES, partition, count, message, Level.REMARK)
        if count := found.backwards.number:
            message = (
                f"{counted(count, 'record')} with a timestamp before that of the record before it of its "
                f"key, by up to {duration(found.worst_back_ms)} ({found.backwards})."
            )
            yield self._found(Check.ORDER, partition, count, message)
        if found.moved:
            message = (
                f"{counted(found.moved, 'key')} with records in another partition too: there is no order "
                "between these."
            )
            yield self._found(Check.KEYS, partition, found.moved, message, Level.REMARK)
        if must_be_unique and (count := found.repeated.number):
            message = f"{counted(count, 'record')} with a key that was there before ({found.repeated})."
            yield self._found(Check.KEYS, partition, count, message)

    # -- times
    # --------

    def ahead(self, partition: int, blocks: Sequence[Block], most_ms: int) -> Iterator[Finding]:
        """Timestamps ahead of the clock."""
        if count := sum(block.ahead for block in blocks):
            message = f"{counted(count, 'record')} with a timestamp more than {duration(most_ms)} from now."
            yield self._found(Check.TIMES, partition, count, message)

    def skew(self, newest: Mapping[int, int], limit_ms: int) -> Iterator[Finding]:
        """Partitions whose newest record is old beside that of another partition.

        Args:
            newest: The newest timestamp of partitions that have one.
            limit_ms: How far apart they may be.
        """
        latest = max(newest.values(), default=0)
        for partition, at_ms in sorted(newest.items()):
            if latest - at_ms > limit_ms:
                message = (
                    f"its newest record is {duration(latest - at_ms)} older than the newest of the topic: it "
                    "holds watermarks back."
                )
                yield self._found(Check.TIMES, partition, 1, message)

    def late(self, found: Late, limit_ms: int) -> Finding:
        """Records that a watermark leaves out."""
        message = (
            f"{counted(found.records.number, 'record')} more than {duration(limit_ms)} behind the newest one "
            f"before it, up to {duration(found.worst_ms)} ({found.records})."
        )
        return self._found(Check.TIMES, found.partition, found.records.number, message)

    # -- comparisons
    # --------------

    def differences(self, found: Iterable[Difference], here: str, there: str) -> Iterator[Finding]:
        """Records that one side lacks, and records that differ.

        Args:
            found: By partition.
            here: The side that is audited: "the archive".
            there: The side that it is compared with: "the topic".
        """
        for difference in found:
            for seen, says in (
                (difference.lacking, f"in {there} and not in {here}"),
                (difference.extra, f"in {here} and not in {there}"),
                (difference.changed, f"not the same in {here} and in {there}"),
            ):
                if seen.number:
                    message = f"{counted(seen.number, 'record')} {says} ({seen})."
                    yield self._found(Check.COMPARISON, difference.partition, seen.number, message)

    def order(self, found: Iterable[OrderDifference]) -> Iterator[Finding]:
        """Records in another order than in the source."""
        for partition, seen in found:
            count = counted(seen.number, "record")
            message = f"{count} behind another record of the key than in the source ({seen})."
            yield self._found(Check.ORDER, partition, seen.number, message)

    def order_not_compared(self) -> Finding:
        """The order means nothing where records are missing."""
        message = "the order of keys was not compared, for the records differ."
        return self._found(Check.ORDER, None, 0, message, Level.REMARK)

    def only_here(self, partition: int, count: int) -> Iterator[Finding]:
        """Records that the topic does not hold any more."""
        if count:
            message = f"{counted(count, 'record')} from below the topic's log start."
            yield self._found(Check.COMPARISON, partition, count, message, Level.REMARK)

    def not_yet_here(self, partition: int, count: int, *, is_known: bool) -> Iterator[Finding]:
        """Records behind the end of the archive.

        Args:
            partition: Where they are.
            count: How many there are.
            is_known: Whether it is known how far the archive should reach.
        """
        if not count:
            return
        message = f"{counted(count, 'record')} behind the end of the archive"
        if is_known:
            message += ", not archived yet."
        else:
            message += f": not archived yet, or lost from its end. {_WHO_KNOWS}"
        yield self._found(Check.COMPARISON, partition, count, message, Level.REMARK)

    def nothing_here(self, partition: int, count: int) -> Iterator[Finding]:
        """A partition of which the archive has no record."""
        if count:
            message = (
                f"no record is in the archive, and the topic has {count:,}: lost, or not archived yet. "
                f"{_WHO_KNOWS}"
            )
            yield self._found(Check.COMPARISON, partition, count, message)

    def of_other_topics(self, count: int) -> Iterator[Finding]:
        """Records of a topic of the same name that is gone."""
        if count:
            message = f"{counted(count, 'record')} of other topics that had this name, left out."
            yield self._found(Check.COMPARISON, None, count, message, Level.REMARK)


def newest_by_partition(blocks: Mapping[int, Sequence[Block]]) -> dict[int, int]:
    """The newest timestamp of partitions that have one."""
    found = {
        partition: [block.newest_ms for block in some if block.newest_ms is not None]
        for partition, some in blocks.items()
    }
    return {partition: max(times) for partition, times in found.items() if times}

"""The folders and offsets that the filters of a query leave. Pure.

Filters on `topic` and `partition`, and ranges of `offset`, are carried out here, exactly. One on `timestamp`
that has a lower bound moves the start of each partition to the first record at that time or later: later
records may be older again, so Spark applies the filter itself too.

Spark 4.0 does not have the filter classes of 4.1, so they are recognised by name.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pykafka_broker.arrow.core.stored_batches import NO_END, OffsetRange
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.spark.kafka_format import OFFSET, PARTITION, TIMESTAMP, TOPIC
from pykafka_broker.system.named_tuple import NamedTuple

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _is_among(value: object, values: Iterable[object]) -> bool:
    return value in values


_HOLDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "EqualTo": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
    "In": _is_among,
}


class Comparison(NamedTuple):
    """A filter on the topic or the partition."""

    column: str
    kind: str
    value: Any

    def holds(self, name: TopicPartition) -> bool:
        """Whether a partition passes."""
        return _HOLDS[self.kind](name.topic if self.column == TOPIC else name.partition, self.value)


class Narrowing(NamedTuple):
    """The partitions, offsets and times that filters leave."""

    comparisons: tuple[Comparison, ...] = ()
    offsets: OffsetRange = OffsetRange(0, NO_END)
    #: No record is older than these milliseconds.
    least_ms: int | None = None

    def has_partition(self, name: TopicPartition) -> bool:
        """Whether anything of a partition is left."""
        return all(comparison.holds(name) for comparison in self.comparisons)

    def within(self, wanted: OffsetRange) -> OffsetRange:
        """The part of a range of offsets that is left."""
        start = max(wanted.start, self.offsets.start)
        return OffsetRange(start, max(start, min(wanted.end, self.offsets.end)))


_Filter = TypeVar("_Filter")


def narrow(filters: Iterable[_Filter]) -> tuple[Narrowing, list[_Filter]]:
    """Carry out filters; return the narrowing, and the filters that Spark still has to apply."""
    comparisons: list[Comparison] = []
    start, end = 0, NO_END
    least_ms: int | None = None
    rest: list[_Filter] = []
    for each in filters:
        kind, column = type(each).__name__, _column(each)
        value: Any = getattr(each, "value", None)
        if column in (TOPIC, PARTITION) and _fits(kind, value, str if column == TOPIC else int):
            comparisons.append(Comparison(column, kind, value))
        elif column == OFFSET and kind != "In" and _fits(kind, value, int):
            if kind in ("EqualTo", "GreaterThan", "GreaterThanOrEqual"):
                start = max(start, value + (kind == "GreaterThan"))
            if kind in ("EqualTo", "LessThan", "LessThanOrEqual"):
                end = min(end, value + (kind != "LessThan"))
        else:
            if column == TIMESTAMP and kind in ("EqualTo", "GreaterThan", "GreaterThanOrEqual"):
                found = _milliseconds(value)
                least_ms = max(found, least_ms or 0) if found is not None else least_ms
            rest.append(each)
    return Narrowing(tuple(comparisons), OffsetRange(start, end), least_ms), rest


def _column(each: object) -> str | None:
    attribute: Sequence[str] = getattr(each, "attribute", ())
    return str(attribute[0]) if len(attribute) == 1 else None


def _fits(kind: str, value: object, wanted: type) -> bool:
    if kind == "In":
        return isinstance(value, tuple) and all(type(each) is wanted for each in value)
    return kind in _HOLDS and type(value) is wanted


def _milliseconds(time: object) -> int | None:
    """Whole milliseconds at or before a time; None for a time without a zone or before 1970, or for no
    time.
    """
    if not isinstance(time, datetime) or time.tzinfo is None or time < _EPOCH:
        return None
    return (time - _EPOCH) // timedelta(milliseconds=1)

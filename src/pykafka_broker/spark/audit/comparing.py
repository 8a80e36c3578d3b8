"""Where two reads of a topic differ, by counts and digests of their parts. Pure.

Parts that are the same on both sides are not read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pykafka_broker.spark.audit.offsets import BLOCK_OFFSETS, NOTHING, Block, Span
from pykafka_broker.spark.audit.seen import Seen
from pykafka_broker.system.named_tuple import NamedTuple

#: The number of parts into which the records of a partition are divided by their hashes.
BUCKETS = 256


class Bucket(NamedTuple):
    """Records of a partition with the same part of their hashes."""

    partition: int
    number: int
    rows: int
    #: The same for the same records, in whatever order they were read.
    digest: tuple[int, int]


class Place(NamedTuple):
    """A block to look at, and the offsets that both should have of its partition."""

    partition: int
    block: int
    start: int
    end: int


class Difference(NamedTuple):
    """How the records of a partition differ from what they should be."""

    partition: int
    #: Records before the range that both should have, and those of the other side behind it.
    older: int
    pending: int
    #: Records of the other side that are not here, those here that are not there, and those that differ.
    lacking: Seen
    extra: Seen
    changed: Seen
    #: Offsets that both have.
    shared: int


class OrderDifference(NamedTuple):
    """Records whose predecessor of the same key differs between the two sides."""

    partition: int
    records: Seen


class Comparison(NamedTuple):
    """The outcome of comparing blocks."""

    #: Blocks to look at.
    places: list[Place]
    #: By partition: records of blocks outside the range that both should have; these blocks are not read
    #: again.
    older: dict[int, int]
    pending: dict[int, int]


def shared_range(
    mine: Sequence[Block], theirs: Sequence[Block], log_start: int | None, committed: Span = NOTHING
) -> Span:
    """The offsets of a partition that both should have: from the start of the other side to the end of this
    one, or to where it should end.

    Args:
        mine: The blocks of this side, in order.
        theirs: Those of the other side.
        log_start: Where the log of the other side begins now, if that is known.
        committed: The offsets that the writer of this side has committed.
    """
    end = max(mine[-1].last_offset + 1 if mine else 0, committed.end)
    start = log_start
    if start is None:
        start = theirs[0].first_offset if theirs else end
    if not mine:
        start = max(start, committed.start)
    return Span(min(start, end), end)


def compare_blocks(
    mine: Mapping[int, Sequence[Block]],
    theirs: Mapping[int, Sequence[Block]],
    ranges: Mapping[int, Span],
) -> Comparison:
    """Which blocks differ, within the range that both should have of each partition."""
    comparison = Comparison([], {}, {})
    for partition, (start, end) in sorted(ranges.items()):
        here = {block.number: block for block in mine.get(partition, ())}
        there = {block.number: block for block in theirs.get(partition, ())}
        for number in sorted(here.keys() | there.keys()):
            block, other = here.get(number), there.get(number)
            if (number + 1) * BLOCK_OFFSETS <= start:
                _add(comparison.older, partition, block)
            elif number * BLOCK_OFFSETS >= end:
                _add(comparison.pending, partition, other)
            elif block is None or other is None or (block.rows, block.digest) != (other.rows, other.digest):
                comparison.places.append(Place(partition, number, start, end))
    return comparison


def _add(counts: dict[int, int], partition: int, block: Block | None) -> None:
    if block is not None:
        counts[partition] = counts.get(partition, 0) + block.rows


def differing_buckets(mine: Iterable[Bucket], theirs: Iterable[Bucket]) -> list[tuple[int, int]]:
    """Partition and number of the buckets that differ."""
    here = {(bucket.partition, bucket.number): bucket for bucket in mine}
    there = {(bucket.partition, bucket.number): bucket for bucket in theirs}
    return sorted(place for place in here.keys() | there.keys() if here.get(place) != there.get(place))

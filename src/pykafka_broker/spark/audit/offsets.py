"""Which offsets of a partition were read, by Spark's counts for blocks of offsets. Pure.

A block is 32,768 offsets of a partition: as many as a bitmap of Spark's has bits. Its bitmap is sent only if
offsets between the first and the last are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pykafka_broker.system.named_tuple import NamedTuple

BLOCK_OFFSETS = 32_768


class Span(NamedTuple):
    """The offsets from `start` up to, and without, `end`."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """How many offsets these are."""
        return self.end - self.start

    def __str__(self) -> str:
        return str(self.start) if self.length == 1 else f"{self.start} to {self.end - 1}"


NOTHING = Span(0, 0)


class Block(NamedTuple):
    """What was read of a block; times are milliseconds since 1970, None where no record has one."""

    partition: int
    number: int
    rows: int
    #: How many different offsets the rows have.
    offsets: int
    first_offset: int
    last_offset: int
    #: One bit for each offset that was read, the lowest bit of the first byte first; None: all of them
    #: between the first and the last.
    bitmap: bytes | None
    oldest_ms: int | None
    newest_ms: int | None
    #: Rows whose timestamp is further ahead of the clock than is allowed.
    ahead: int
    #: Bytes of keys and values.
    size_bytes: int
    #: The same for the same rows, in whatever order they were read.
    digest: tuple[int, int]


def by_partition(blocks: Iterable[Block]) -> dict[int, list[Block]]:
    """The blocks of each partition, in the order of their offsets."""
    found: dict[int, list[Block]] = {}
    for block in sorted(blocks, key=lambda block: (block.partition, block.number)):
        found.setdefault(block.partition, []).append(block)
    return found


def present(block: Block) -> Iterator[Span]:
    """The offsets of a block that were read."""
    if block.bitmap is None:
        yield Span(block.first_offset, block.last_offset + 1)
        return
    bits, offset = int.from_bytes(block.bitmap, "little"), block.number * BLOCK_OFFSETS
    while bits:
        zeros = (bits & -bits).bit_length() - 1
        bits, offset = bits >> zeros, offset + zeros
        ones = (~bits & (bits + 1)).bit_length() - 1
        yield Span(offset, offset + ones)
        bits, offset = bits >> ones, offset + ones


def gaps(blocks: Sequence[Block], within: Span) -> Iterator[Span]:
    """The offsets of a partition that were not read, in order.

    Args:
        blocks: Those of the partition, in order.
        within: Where offsets are expected.
    """
    position = within.start
    for block in blocks:
        for start, end in present(block):
            if start >= within.end:
                break
            if start > position:
                yield Span(position, start)
            position = max(position, end)
    if position < within.end:
        yield Span(position, within.end)

"""Which blocks of a partition may hold late records. Pure.

A record's lateness is the distance of its timestamp from the newest one before it in its partition: a
watermark has to lag by that much for the record to count. Blocks have only their oldest and newest timestamp;
where these rule out lateness above the limit, no record is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pykafka_broker.spark.audit.offsets import Block
from pykafka_broker.spark.audit.seen import Seen
from pykafka_broker.system.named_tuple import NamedTuple


class Doubtful(NamedTuple):
    """A block that may hold late records, and the newest timestamp before it."""

    partition: int
    block: int
    carried_ms: int | None


class Late(NamedTuple):
    """The late records of a partition, and the greatest lateness."""

    partition: int
    records: Seen
    worst_ms: int


def lateness(blocks: Sequence[Block]) -> Iterator[tuple[Block, int | None, int]]:
    """For each block of a partition, in order: the newest timestamp before it, and the greatest lateness that
    a record in the block can have.
    """
    carried: int | None = None
    for block in blocks:
        if block.oldest_ms is None or block.newest_ms is None:
            continue
        newest = block.newest_ms if carried is None else max(carried, block.newest_ms)
        yield block, carried, newest - block.oldest_ms
        carried = newest


def late_at_most_ms(blocks: Sequence[Block]) -> int:
    """No record of a partition is later than this."""
    return max((bound for _, _, bound in lateness(blocks)), default=0)


def doubtful(blocks: Sequence[Block], limit_ms: int) -> list[Doubtful]:
    """The blocks of a partition that may have records later than the limit."""
    return [
        Doubtful(block.partition, block.number, carried)
        for block, carried, bound in lateness(blocks)
        if bound > limit_ms
    ]

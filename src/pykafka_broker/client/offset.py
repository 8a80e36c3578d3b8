"""What is committed for a group."""

from __future__ import annotations

from pykafka_broker.system.named_tuple import NamedTuple

TopicPartition = tuple[str, int]


class CommittedOffset(NamedTuple):
    """Where a group goes on in a partition, and the text that stands beside it."""

    offset: int
    metadata: str = ""

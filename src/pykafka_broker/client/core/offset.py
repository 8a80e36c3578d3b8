"""The committed offsets of a group."""

from __future__ import annotations

from pykafka_broker.system.named_tuple import NamedTuple


class CommittedOffset(NamedTuple):
    """The committed offset of a group in a partition, and the text committed with it."""

    offset: int
    metadata: str = ""

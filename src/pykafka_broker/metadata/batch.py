"""Consecutive records of the metadata log, decoded."""

from __future__ import annotations

from collections.abc import Sequence

from pykafka_broker.system.named_tuple import NamedTuple


class MetadataBatch(NamedTuple):
    """The records of `[base_offset, next_offset)`, written in leader epoch `epoch`.

    `records` is empty for raft's own control records, which are not cluster metadata.
    """

    base_offset: int
    next_offset: int
    epoch: int
    records: Sequence[object] = ()

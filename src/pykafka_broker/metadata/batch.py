"""Consecutive records of the metadata log, decoded; those that a leader has appended itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from pykafka_broker.system.named_tuple import NamedTuple


class MetadataBatch(NamedTuple):
    """The records of `[base_offset, next_offset)`, written in leader epoch `epoch`.

    `records` is empty for raft's own control records, which are not cluster metadata.
    """

    base_offset: int
    next_offset: int
    epoch: int
    records: Sequence[object] = ()


class AppendedBatches:
    """The batches that a leader has appended and not handed over yet: they need not be read from the log."""

    __slots__ = ("_batches",)

    def __init__(self) -> None:
        self._batches: deque[MetadataBatch] = deque()

    @property
    def base_offset(self) -> int | None:
        """The offset of the first batch; None if there is none."""
        return self._batches[0].base_offset if self._batches else None

    def add(self, batch: MetadataBatch) -> None:
        """A batch has been appended."""
        self._batches.append(batch)

    def take(self, offset: int) -> Iterator[MetadataBatch]:
        """Yield the batches below `offset`, and drop each."""
        while self._batches and self._batches[0].next_offset <= offset:
            yield self._batches.popleft()

    def forget(self) -> None:
        """Drop all: another replica may lead, and the log will show which of them count."""
        self._batches.clear()

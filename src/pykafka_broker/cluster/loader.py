"""Batches of the metadata log in, consistent images out.

Batches are collected until the image is read, so a whole log costs one copy of each table. The
records between BeginTransaction and EndTransaction (KIP-868) become visible at once, aborted ones never.
"""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.cluster.image import ClusterImage, CorruptMetadataError, ImageBuilder
from pykafka_broker.protocol.messages.records import metadata as m


class MetadataLoader:
    """Follows the log: `apply` each batch in order, read `image` at any time."""

    __slots__ = ("_builder", "_epoch", "_image", "_open")

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._builder = ImageBuilder(image)
        self._epoch = image.epoch
        #: Records, and their offsets, of a transaction that has begun and not ended.
        self._open: list[tuple[object, int]] | None = None

    @property
    def in_transaction(self) -> bool:
        """A transaction has begun and not ended: a controller that finds this at the log's end aborts it."""
        return self._open is not None

    @property
    def image(self) -> ClusterImage:
        """Everything applied so far, except an unfinished transaction."""
        self._image = self._builder.build(self._epoch)
        return self._image

    def apply(self, records: Iterable[object], *, offset: int, epoch: int) -> None:
        """Replay the records of one batch, the first of which lies at `offset`."""
        self._epoch = epoch
        for position, record in enumerate(records, offset):
            if isinstance(record, m.BeginTransactionRecord):
                if self._open is not None:
                    raise CorruptMetadataError(f"a transaction begins inside another at offset {position}")
                self._open = []
            elif isinstance(record, (m.EndTransactionRecord, m.AbortTransactionRecord)):
                if self._open is None:
                    raise CorruptMetadataError(f"no transaction to end at offset {position}")
                if isinstance(record, m.EndTransactionRecord):
                    for inner, inner_position in self._open:
                        self._builder.apply(inner, inner_position)
                self._open = None
                self._builder.skip_to(position)
            elif self._open is not None:
                self._open.append((record, position))
            else:
                self._builder.apply(record, position)

    def skip_to(self, offset: int, epoch: int) -> None:
        """Control records, which say nothing about the cluster, take the log up to `offset`."""
        self._epoch = epoch
        if self._open is None:
            self._builder.skip_to(offset)

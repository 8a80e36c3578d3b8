"""Builds consistent images from the batches of the metadata log.

An image is built only when it is read, so a whole log costs one copy of each table. The records between
BeginTransaction and EndTransaction (KIP-868) become visible together; those of aborted transactions never do.
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
        #: The records of an unfinished transaction, with their offsets.
        self._open: list[tuple[object, int]] | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is unfinished; a new controller aborts it."""
        return self._open is not None

    @property
    def image(self) -> ClusterImage:
        """Everything applied so far, except an unfinished transaction."""
        self._image = self._builder.build(self._epoch)
        return self._image

    def apply(self, records: Iterable[object], *, offset: int, epoch: int) -> None:
        """Replay the records of one batch, the first of which is at `offset`."""
        if self._open is None:
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
                self._open, self._epoch = None, epoch
                self._builder.skip_to(position)
            elif self._open is not None:
                self._open.append((record, position))
            else:
                self._builder.apply(record, position)

    def skip_to(self, offset: int, epoch: int) -> None:
        """Skip control records, which are not cluster metadata, up to `offset`."""
        if self._open is None:
            self._epoch = epoch
            self._builder.skip_to(offset)

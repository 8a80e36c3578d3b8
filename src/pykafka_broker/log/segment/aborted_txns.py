"""The aborted transactions of one segment, which a read-committed consumer skips, and their `.txnindex` file.

The file has 34-byte entries (FORMAT.md), in the order of the abort markers. It carries no checksum: entries
that cannot be true are refused, and the caller rebuilds them from the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from struct import Struct

from pykafka_broker.log.disk.files import write_fully
from pykafka_broker.log.disk.names import TXN_INDEX_SUFFIX
from pykafka_broker.log.segment.index import InvalidIndexError
from pykafka_broker.log.segment.segment_files import SegmentFiles
from pykafka_broker.system.named_tuple import NamedTuple

_ABORTED_TXN = Struct(">hqqqq")
ABORTED_TXN_BYTES = _ABORTED_TXN.size
_ABORTED_TXN_VERSION = 0


class AbortedTxn(NamedTuple):
    """One aborted transaction."""

    producer_id: int
    first_offset: int
    #: Offset of the abort marker.
    last_offset: int
    #: The last stable offset when the marker was written; ends a search early.
    last_stable_offset: int

    def to_bytes(self) -> bytes:
        return _ABORTED_TXN.pack(_ABORTED_TXN_VERSION, *self)


def read_aborted_txns(data: bytes) -> list[AbortedTxn]:
    """The entries of a `.txnindex` file; a torn last entry is ignored.

    Raises:
        InvalidIndexError: an entry cannot be true.
    """
    entries: list[AbortedTxn] = []
    for position in range(0, len(data) - ABORTED_TXN_BYTES + 1, ABORTED_TXN_BYTES):
        version, *fields = _ABORTED_TXN.unpack_from(data, position)
        entry = AbortedTxn(*fields)
        if version != _ABORTED_TXN_VERSION or entry.first_offset > entry.last_offset:
            raise InvalidIndexError("aborted transaction entry makes no sense")
        if entries and entries[-1].last_offset >= entry.last_offset:
            raise InvalidIndexError("aborted transactions are not in order")
        entries.append(entry)
    return entries


class AbortedTxns:
    """The aborted transactions of one segment, in memory and in the file."""

    __slots__ = ("_files", "_saved", "entries")

    def __init__(self, files: SegmentFiles) -> None:
        self._files = files
        #: In the order of their markers; the first `_saved` are in the file.
        self.entries: list[AbortedTxn] = []
        self._saved = 0

    def append(self, txn: AbortedTxn) -> None:
        """Add an aborted transaction.

        Raises:
            OSError: the entry is in memory alone until the next one is added, or `sync`.
        """
        self.entries.append(txn)
        self._save()

    def _save(self) -> None:
        """Append the entries that the file does not have yet; those that it has stay as they are."""
        saved = self._saved
        missing = self.entries[saved:]
        if not missing:
            return
        try:
            file = self._files.open(TXN_INDEX_SUFFIX)
        except FileNotFoundError:
            file = self._files.open(TXN_INDEX_SUFFIX, create=True)
        write_fully(file, b"".join([entry.to_bytes() for entry in missing]), saved * ABORTED_TXN_BYTES)
        self._saved = saved + len(missing)

    def sync(self) -> None:
        """Make the entries durable. Worker-safe."""
        if self.entries:
            self._save()
            self._files.sync(TXN_INDEX_SUFFIX)

    def reset(self) -> None:
        """Start with an empty file: the entries are found again while the producer state is rebuilt."""
        if self.entries or self._files.exists(TXN_INDEX_SUFFIX):
            self._files.write(TXN_INDEX_SUFFIX, b"")
        self.entries, self._saved = [], 0

    def load(self) -> None:
        """Read the file.

        Raises:
            InvalidIndexError: an entry cannot be true.
        """
        self.note_saved(read_aborted_txns(self._files.read(TXN_INDEX_SUFFIX)))

    def note_saved(self, entries: Iterable[AbortedTxn]) -> None:
        """The file holds these entries."""
        self.entries = list(entries)
        self._saved = len(self.entries)

    def truncate_to(self, offset: int) -> None:
        """Forget transactions whose marker is at or past `offset`."""
        kept = [txn for txn in self.entries if txn.last_offset < offset]
        if len(kept) != len(self.entries):
            self.entries = kept
            self._saved = min(self._saved, len(kept))
            with suppress(FileNotFoundError):  # none of them could be written
                self._files.open(TXN_INDEX_SUFFIX).truncate(self._saved * ABORTED_TXN_BYTES)

"""The trust in the bytes of one segment: which are verified, and which are damaged.

A process trusts the bytes it has written itself. Those below `unverified_end` were in the file before, and
are verified when they are first read (`verified_spans`), or by the scrubber. Ranges that turned out to be
damaged are fenced off: reads there get CORRUPT_MESSAGE, and the `.damaged` file keeps the ranges over a
restart.
"""

from __future__ import annotations

from threading import Lock

from pykafka_broker.log.disk.names import DAMAGED_SUFFIX
from pykafka_broker.log.segment.damage import Damage, decode_damages, encode_damages
from pykafka_broker.log.segment.segment_files import SegmentFiles

#: Held while the spans verified by several threads are joined.
_spans_lock = Lock()


class Trust:
    """The verified spans, the damaged ranges, and whether the disk has failed to read."""

    __slots__ = ("_files", "damages", "read_failed", "unverified_end", "verified_spans", "was_scanned")

    def __init__(self, files: SegmentFiles) -> None:
        self._files = files
        #: Damaged ranges, in order.
        self.damages: tuple[Damage, ...] = ()
        #: This process has scanned the whole segment.
        self.was_scanned = False
        #: The bytes below were written before this process started; 0 once all of them are verified.
        self.unverified_end = 0
        #: The (start, end) below `unverified_end` that are verified, in order, with gaps between; replaced,
        #: never changed.
        self.verified_spans: tuple[tuple[int, int], ...] = ()
        #: The disk failed to give bytes of an answer that had begun: the next answer reads its bytes first.
        self.read_failed = False

    def is_verified(self, start: int, end: int) -> bool:
        """Whether this process wrote or verified all of the bytes [start, end)."""
        end = min(end, self.unverified_end)
        return start >= end or any(first <= start and end <= last for first, last in self.verified_spans)

    def note_verified(self, start: int, end: int) -> None:
        """The bytes [start, end) are whole, sound batches. Worker-safe."""
        with _spans_lock:
            apart = [span for span in self.verified_spans if span[1] < start or span[0] > end]
            touching = [span for span in self.verified_spans if span[1] >= start and span[0] <= end]
            start = min([start, *[first for first, _ in touching]])
            end = max([end, *[last for _, last in touching]])
            self.verified_spans = tuple(sorted([*apart, (start, end)]))
            if start == 0 and end >= self.unverified_end:
                self.note_all_verified()

    def note_all_verified(self) -> None:
        """Every batch is sound, or is in `damages`. Worker-safe."""
        self.unverified_end = 0
        self.verified_spans = ()

    def note_scanned(self, damages: tuple[Damage, ...]) -> None:
        """A scan of the whole segment has found these damages and no others. Worker-safe."""
        self.damages = damages
        self.was_scanned = True
        self.note_all_verified()

    def truncate_to(self, position: int) -> None:
        """The segment now ends at `position`. May wait for the disk."""
        left = tuple(d for d in self.damages if d.position < position and d.end_position <= position)
        if left != self.damages:
            self.damages = left
            self.save_damages()
        self.unverified_end = min(self.unverified_end, position)

    def save_damages(self) -> None:
        """Write the `.damaged` file, or remove it if nothing is damaged. Worker-safe."""
        if self.damages:
            self._files.replace(DAMAGED_SUFFIX, encode_damages(self.damages))
        else:
            self._files.remove(DAMAGED_SUFFIX)

    def load_damages(self) -> None:
        """Read the `.damaged` file.

        Raises:
            FileNotFoundError: there is none.
            ValueError, TypeError: it is not readable.
        """
        self.damages = decode_damages(self._files.read(DAMAGED_SUFFIX))

"""The sparse indexes of a segment: offset -> file position, and timestamp -> offset.

Pure values with Kafka's bytes on disk (FORMAT.md): `.index` has 8-byte entries (i32 relative offset, i32
position), `.timeindex` 12-byte entries (i64 timestamp, i32 relative offset).
An offset entry names the *last* offset of the batch that starts at its position, so the entry below a
wanted offset is always a safe place to start walking batch headers. The arrays hold machine integers: a
full 1 GiB segment costs 2 MiB of memory.

The files carry no checksum. `from_bytes` refuses bytes that cannot be an index (unordered, or outside the
segment); the caller then rebuilds the index from the log, which is always possible.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import islice
from operator import le, lt
from struct import Struct

#: The greatest offset of a segment, less its base offset: entries have 32 bits for it.
MAX_RELATIVE_OFFSET = (1 << 31) - 1

OFFSET_ENTRY_BYTES = 8
TIME_ENTRY_BYTES = 12

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")

_SWAP = sys.byteorder == "little"
_HIGH, _LOW = (1, 0) if _SWAP else (0, 1)


class InvalidIndexError(Exception):
    """The bytes are not an index of this segment; rebuild it."""


class OffsetIndex:
    """The start positions of batches, one entry per `index.interval.bytes` of log."""

    __slots__ = ("base_offset", "positions", "relative_offsets")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.relative_offsets = array("i")
        self.positions = array("i")

    def __len__(self) -> int:
        return len(self.positions)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return ((self.base_offset + r, p) for r, p in zip(self.relative_offsets, self.positions, strict=True))

    def append(self, last_offset: int, position: int) -> None:
        self.relative_offsets.append(last_offset - self.base_offset)
        self.positions.append(position)

    def position_before(self, offset: int) -> int:
        """Start of a batch at or before the one that holds `offset`."""
        found = bisect_right(self.relative_offsets, offset - self.base_offset)
        return self.positions[found - 1] if found else 0

    def entry_at_or_before(self, position: int) -> tuple[int, int] | None:
        """(last offset, position) of the last entry that does not point behind `position`; None if all do."""
        found = bisect_right(self.positions, position)
        if not found:
            return None
        return self.base_offset + self.relative_offsets[found - 1], self.positions[found - 1]

    def last_start_at_or_before(self, position: int) -> int:
        """The greatest known batch start that is <= `position`; 0 if there is none."""
        found = bisect_right(self.positions, position)
        return self.positions[found - 1] if found else 0

    def offset_at_or_after(self, position: int) -> int | None:
        """The offset of the first entry that points to `position` or behind it; None if there is none."""
        found = bisect_left(self.positions, position)
        return self.base_offset + self.relative_offsets[found] if found < len(self.positions) else None

    def truncate_to(self, offset: int) -> None:
        """Forget entries at or past `offset`."""
        keep = bisect_left(self.relative_offsets, offset - self.base_offset)
        del self.relative_offsets[keep:]
        del self.positions[keep:]

    def to_bytes(self, start: int = 0) -> bytes:
        """Entries from number `start` on, as the file has them."""
        relative, positions = self.relative_offsets[start:], self.positions[start:]
        words = array("i", bytes(OFFSET_ENTRY_BYTES * len(positions)))
        words[0::2] = relative[: len(positions)]
        words[1::2] = positions
        if _SWAP:
            words.byteswap()
        return words.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, base_offset: int, log_bytes: int) -> OffsetIndex:
        """Read a file; the zero entries of a preallocated one are cut off."""
        words = array("i")
        words.frombytes(_without_zero_entries(data, OFFSET_ENTRY_BYTES))
        if _SWAP:
            words.byteswap()
        index = cls(base_offset)
        index.relative_offsets, index.positions = words[0::2], words[1::2]
        while index.positions and index.positions[-1] == 0:
            index.positions.pop()
            index.relative_offsets.pop()
        if not (
            _ascending(index.relative_offsets, strictly=True) and _ascending(index.positions, strictly=True)
        ):
            raise InvalidIndexError("offset index entries are not in order")
        if index.positions and (index.positions[0] <= 0 or index.positions[-1] >= log_bytes):
            raise InvalidIndexError("offset index points outside the segment")
        if index.relative_offsets and index.relative_offsets[0] < 0:
            raise InvalidIndexError("offset index names offsets before the segment")
        return index


class TimeIndex:
    """The greatest timestamp so far and the offset that carried it, one entry whenever the pair grew."""

    __slots__ = ("base_offset", "relative_offsets", "timestamps")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.timestamps = array("q")
        self.relative_offsets = array("i")

    def __len__(self) -> int:
        return len(self.timestamps)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return (
            (t, self.base_offset + r) for t, r in zip(self.timestamps, self.relative_offsets, strict=True)
        )

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add the pair if its timestamp is greater than the last one."""
        if timestamp < 0 or (self.timestamps and timestamp <= self.timestamps[-1]):
            return
        self.timestamps.append(timestamp)
        self.relative_offsets.append(offset - self.base_offset)

    @property
    def last(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) when empty."""
        if not self.timestamps:
            return -1, self.base_offset
        return self.timestamps[-1], self.base_offset + self.relative_offsets[-1]

    def entry_before(self, timestamp: int) -> tuple[int, int] | None:
        """The last (timestamp, offset) of a smaller timestamp: the first record with one >= `timestamp` lies
        behind that offset. None if it may be anywhere.
        """
        found = bisect_left(self.timestamps, timestamp)
        if not found:
            return None
        return self.timestamps[found - 1], self.base_offset + self.relative_offsets[found - 1]

    def truncate_to(self, offset: int) -> None:
        """Forget entries at or past `offset`."""
        keep = bisect_left(self.relative_offsets, offset - self.base_offset)
        del self.relative_offsets[keep:]
        del self.timestamps[keep:]

    def to_bytes(self, start: int = 0) -> bytes:
        """Entries from number `start` on, as the file has them."""
        timestamps, relative = self.timestamps[start:], self.relative_offsets[start:]
        halves = array("I", timestamps.tobytes())
        words = array("I", bytes(TIME_ENTRY_BYTES * len(timestamps)))
        words[0::3] = halves[_HIGH::2]
        words[1::3] = halves[_LOW::2]
        words[2::3] = array("I", relative[: len(timestamps)].tobytes())
        if _SWAP:
            words.byteswap()
        return words.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, base_offset: int) -> TimeIndex:
        """Read a file; the zero entries of a preallocated one are cut off."""
        words = array("I")
        words.frombytes(_without_zero_entries(data, TIME_ENTRY_BYTES))
        if _SWAP:
            words.byteswap()
        count = len(words) // 3
        halves = array("I", bytes(8 * count))
        halves[_HIGH::2] = words[0::3]
        halves[_LOW::2] = words[1::3]
        index = cls(base_offset)
        index.timestamps = array("q", halves.tobytes())
        index.relative_offsets = array("i", words[2::3].tobytes())
        while index.timestamps and index.timestamps[-1] == 0:
            index.timestamps.pop()
            index.relative_offsets.pop()
        # Kafka repeats the last pair at roll when nothing grew since, and an unlucky clock repeats an offset.
        if not (
            _ascending(index.timestamps, strictly=False)
            and _ascending(index.relative_offsets, strictly=False)
        ):
            raise InvalidIndexError("time index entries are not in order")
        if index.relative_offsets and index.relative_offsets[0] < 0:
            raise InvalidIndexError("time index names offsets before the segment")
        return index


def last_time_entry(entry: bytes, base_offset: int) -> tuple[int, int] | None:
    """(timestamp, offset) of the last entry of a `.timeindex` that was trimmed; None if it was not."""
    if len(entry) != TIME_ENTRY_BYTES:
        return None
    timestamp, relative_offset = _TIME_ENTRY.unpack(entry)
    return (timestamp, base_offset + relative_offset) if timestamp > 0 and relative_offset >= 0 else None


def last_offset_entry(entry: bytes, base_offset: int) -> tuple[int, int] | None:
    """(offset, position) of the last entry of an `.index` that was trimmed; None if it was not."""
    if len(entry) != OFFSET_ENTRY_BYTES:
        return None
    relative_offset, position = _OFFSET_ENTRY.unpack(entry)
    return (base_offset + relative_offset, position) if position > 0 and relative_offset >= 0 else None


def _without_zero_entries(data: bytes, entry_bytes: int) -> bytes:
    """Whole entries, without those at the end of which all bytes are 0: Kafka preallocates 10 MiB of them."""
    size = len(data) - len(data) % entry_bytes
    used = len(data[:size].rstrip(b"\0"))
    return data[: used + -used % entry_bytes]


def _ascending(values: array[int], *, strictly: bool) -> bool:
    return all(map(lt if strictly else le, values, islice(values, 1, None)))

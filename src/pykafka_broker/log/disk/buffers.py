"""Buffers for large reads, reused as soon as they are free.

A fresh buffer of a megabyte is mapped, faulted in page by page and zeroed before a byte is read into it: on a
2-core VM that was 0.4 of the 0.7 CPU seconds a consumed gigabyte cost. A reused buffer costs none of that.
The buffer's reference count tells when it is free: every view of it (an answer that waits in a socket's
queue, say) holds the buffer behind it. Where there are no reference counts, every buffer is fresh.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

#: Smaller reads are cheaper than looking for a buffer.
MIN_BYTES = 32 * 1024
#: Answers are sent in pieces of this size (stored_records.py); larger reads are rare.
MAX_BYTES = 256 * 1024
#: Buffers kept: one if all peers read as fast as we send, one more for each peer that is slower.
MAX_KEPT = 8

_references: Callable[[Any], int] | None = getattr(sys, "getrefcount", None)


class ReadBuffers:
    """A handful of buffers; one thread only."""

    __slots__ = ("_kept", "_unreferenced")

    def __init__(self) -> None:
        self._kept: list[bytearray] = []
        probe = [bytearray()]
        #: The reference count of a buffer that only the list and the loop over it hold.
        self._unreferenced = min(_references(buffer) for buffer in probe) if _references is not None else -1

    def take(self, size: int) -> memoryview | bytearray:
        """A writable buffer of `size` bytes, whose content is arbitrary."""
        if size < MIN_BYTES or size > MAX_BYTES or _references is None:
            return bytearray(size)
        kept = self._kept
        for buffer in kept:
            if _references(buffer) == self._unreferenced:
                return memoryview(buffer)[:size]
        buffer = bytearray(MAX_BYTES)
        if len(kept) < MAX_KEPT:
            kept.append(buffer)
        return memoryview(buffer)[:size]

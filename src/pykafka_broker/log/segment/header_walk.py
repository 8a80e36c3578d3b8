"""Reading batch headers and trusting them: after a clean stop, below the recovery point, or once verified.

Pure: bytes come from a `read(size, position)` callable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pykafka_broker.protocol.records.batch import (
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    SMALLEST_BATCH_LENGTH,
    BatchHeader,
)

_WALK_BYTES = 4096


def walk_headers(
    read: Callable[[int, int], bytes], position: int, end: int
) -> Iterator[tuple[int, BatchHeader]]:
    """Headers of the batches in [position, end); ends early at something that cannot be a header.

    Small batches are read many at a time, large ones by their header alone.
    """
    window, window_start = b"", position
    while position + HEADER_BYTES <= end:
        at = position - window_start
        if at + HEADER_BYTES > len(window):
            window, window_start, at = read(min(_WALK_BYTES, end - position), position), position, 0
            if len(window) < HEADER_BYTES:
                return
        header = BatchHeader._make(HEADER.unpack_from(window, at))
        size = header.batch_length + LOG_OVERHEAD_BYTES
        if header.magic != MAGIC or header.batch_length < SMALLEST_BATCH_LENGTH or position + size > end:
            return
        yield position, header
        position += size

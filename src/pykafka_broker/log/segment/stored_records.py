"""Records that stay in their file until their turn to be sent has come.

A fetch answers with megabytes. Were they all read first, the reader would wait for the last of them before it
gets the first, and a reader that is slow, or stops, would keep them in memory. So an answer names the bytes
of the file, and who sends them takes a piece at a time, as fast as the peer reads. A piece is small enough
that the processor's cache still has it when the socket copies it.

Its length is told at once and cannot change, so a disk that fails on the way can only end the connection.
That is why what the page cache seems not to have is read through before it is answered (`read_through`): the
reader then gets the error, and the pieces come from the page cache. The file is held open: retention,
compaction and deletion change nothing for who reads it.
"""

from __future__ import annotations

from pykafka_broker.log.disk.files import File
from pykafka_broker.log.segment.segment import Segment
from pykafka_broker.machine.threads import RunBlocking
from pykafka_broker.protocol.buffers import Buffer

#: What is read and sent at a time: 64 KiB cost an eighth more processor time, 1 MiB as much of the speed.
PIECE_BYTES = 256 * 1024
#: Less than this is read at once; a piece more costs some microseconds.
LEAST_BYTES = 32 * 1024


class StoredRecords:
    """The bytes of a segment's file that an answer carries; its length is what has not been taken yet."""

    __slots__ = ("_end", "_file", "_position", "_read_cold", "_segment")

    def __init__(self, segment: Segment, file: File, start: int, end: int, read_cold: RunBlocking) -> None:
        self._segment = segment
        self._file = file
        self._position = start
        self._end = end
        self._read_cold = read_cold

    def __len__(self) -> int:
        return self._end - self._position

    def take_cached(self) -> Buffer | None:
        """The next piece if the page cache has it, else None; never waits."""
        size = min(PIECE_BYTES, self._end - self._position)
        piece = self._file.pread_cached(size, self._position)
        if piece is not None:
            self._position += size
        return piece

    async def take(self) -> Buffer:
        """The next piece, from the disk if need be.

        Raises:
            OSError: the disk does not give it. Reads of the segment come from a thread from then on, which
                tells the next reader.
        """
        size = min(PIECE_BYTES, self._end - self._position)
        file, position = self._file, self._position
        try:
            piece: Buffer = await self._read_cold(lambda: file.pread(size, position))
            if len(piece) < size:
                raise OSError(f"The file ends {size - len(piece)} bytes before it should")
        except OSError:
            self._segment.trust.read_failed = True
            raise
        self._position += size
        return piece


def read_through(segment: Segment, file: File, start: int, end: int) -> None:
    """Bring the bytes into the page cache and see that the disk gives them all. Worker-safe; may wait.

    Raises:
        OSError: it does not.
    """
    for position in range(start, end, PIECE_BYTES):
        size = min(PIECE_BYTES, end - position)
        if len(file.pread(size, position)) < size:
            raise OSError(f"The file ends before its byte {position + size}")
    segment.trust.read_failed = False

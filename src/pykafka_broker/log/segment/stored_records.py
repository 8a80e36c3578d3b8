"""Records that stay in their file until they are sent.

The answer to a fetch may have megabytes. If all of them were read first, the consumer would wait for the last
byte before it gets the first, and a consumer that is slow, or stops, would keep them in memory. So an answer
names the bytes of the file, and the connection takes a piece at a time, as fast as the peer reads. A piece is
small enough that the processor's cache still has it when the socket copies it.

The length of an answer is sent first and cannot change, so a disk that fails on the way can only end the
connection. That is why bytes that the page cache does not seem to have are read before the answer begins
(`read_through`): the consumer then gets the error, and the pieces come from the page cache. The file is held
open: retention, compaction and deletion do not affect an answer that has begun.
"""

from __future__ import annotations

from pykafka_broker.log.disk.files import File
from pykafka_broker.log.segment.segment import Segment
from pykafka_broker.machine.threads import RunBlocking
from pykafka_broker.protocol.buffers import Buffer

#: Read and sent at a time: pieces of 64 KiB cost an eighth more processor time, those of 1 MiB an eighth of
#: the speed.
PIECE_BYTES = 256 * 1024
#: Shorter answers are read at once; each piece costs some microseconds.
LEAST_BYTES = 32 * 1024


class StoredRecords:
    """The bytes of a segment's file that an answer carries; its length is the bytes not yet taken."""

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
            OSError: the disk fails. From then on the segment is read in a thread, so that the next consumer
                gets the error.
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
        OSError: the disk does not.
    """
    for position in range(start, end, PIECE_BYTES):
        size = min(PIECE_BYTES, end - position)
        if len(file.pread(size, position)) < size:
            raise OSError(f"The file ends before its byte {position + size}")
    segment.trust.read_failed = False

"""Reading batches without trusting the bytes: is each one sound, and if not, is it damaged or torn?

Pure: bytes come from a `read(size, position)` callable. Every batch must have the right magic, length and
CRC-32C, and also agree in the fields that the CRC does not cover. Base offsets must ascend, and where they
jump, as after compaction, the next batch must agree. Leader epochs must be those of the
leader-epoch-checkpoint, which is written before the first batch of an epoch (or must not go back, where the
checkpoint is lost).

* `verified_end` is for batches that are most likely sound: it is fast, and stops at the first that is odd.
* `BatchScan` is for a file that may be damaged: it finds where.

A bad batch with a good one after it is *damage*: its range is reported, to be fenced off (CORRUPT_MESSAGE),
and the batches behind it are kept. A bad batch with nothing good after it is a *torn tail*, to be cut off.
Kafka cuts in both cases and loses every acknowledged record after a flipped bit.

When the bad batch's length still makes sense, a good batch is looked for exactly behind it, which is cheap
and cannot mistake a batch inside a record's value for one of the log's; only when the header itself is
damaged are all later positions tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pykafka_broker.log.segment.damage import Damage
from pykafka_broker.log.segment.index import MAX_RELATIVE_OFFSET
from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    CRC_OFFSET,
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_OFFSET,
    SMALLEST_BATCH_LENGTH,
    BatchHeader,
)
from pykafka_broker.protocol.records.crc import crc32c

Read = Callable[[int, int], bytes]

_CHUNK_BYTES = 1 << 20


def verified_end(
    read: Callable[[int, int], Buffer],
    start: int,
    end: int,
    size: int,
    *,
    next_offset: int,
    max_offset: int,
    epoch_of: Callable[[int], int],
    following_offset: int | None = None,
) -> int | None:
    """The end of the sound batches from `start` on, at `end` or past it; None if a batch is odd.

    Offsets may jump if the next batch agrees, or `following_offset`, the first offset after the file. 1 to 2
    us a batch (`BatchScan`: 8), and the checksum (0.1 s a GB).
    """
    position = start
    epoch = newest = -1
    jumps = False
    chunk_bytes = _CHUNK_BYTES
    while position < end or (jumps and position < size):
        chunk = read(min(chunk_bytes, size - position), position)
        view, at = memoryview(chunk), 0
        while (position + at < end or jumps) and at + HEADER_BYTES <= len(chunk):
            header = HEADER.unpack_from(chunk, at)
            base_offset, batch_length, batch_epoch, magic, crc, _, last_offset_delta = header[:7]
            batch_end = at + batch_length + LOG_OVERHEAD_BYTES
            if magic != MAGIC or batch_length < SMALLEST_BATCH_LENGTH or position + batch_end > size:
                return None
            if batch_end > len(chunk):
                break
            last_offset = base_offset + last_offset_delta
            if not next_offset <= base_offset <= last_offset <= max_offset:
                return None
            jumps = base_offset > next_offset
            if batch_epoch != epoch:
                if batch_epoch < epoch or epoch_of(base_offset) not in (batch_epoch, -1):
                    return None
                if epoch >= 0 and epoch_of(newest) not in (epoch, -1):
                    return None
                epoch = batch_epoch
            if crc32c(view[at + ATTRIBUTES_OFFSET : batch_end]) != crc:
                return None
            newest = base_offset
            next_offset = last_offset + 1
            at = batch_end
        if at == 0:
            if chunk_bytes > _CHUNK_BYTES or len(chunk) < HEADER_BYTES:
                return None
            chunk_bytes = int.from_bytes(chunk[8:12], "big") + LOG_OVERHEAD_BYTES
        else:
            chunk_bytes = _CHUNK_BYTES
        position += at
    if jumps and position >= size and (following_offset is None or next_offset > following_offset):
        return None
    # Epochs never go back: where the first and the last batch under one are right, so are those between.
    return position if epoch_of(newest) in (epoch, -1) else None


class BatchScan:
    """One pass over a segment: iterate over the good batches, then read `valid_end` and `damages`."""

    def __init__(
        self,
        read: Read,
        size: int,
        base_offset: int,
        *,
        epoch_of: Callable[[int], int] | None = None,
        gaps_allowed: bool = False,
        following_offset: int | None = None,
        start_position: int = 0,
        start_offset: int | None = None,
    ) -> None:
        self._read = read
        self._size = size
        self._base_offset = base_offset
        #: The epoch under which an offset was appended, as far as the leader-epoch-checkpoint knows; else -1.
        self._epoch_of = epoch_of or no_epoch_known
        #: Whether a jump to the very last batch is believed if the following offset is not known.
        self._gaps_allowed = gaps_allowed
        #: The first offset behind the file, if it is known.
        self._following_offset = following_offset
        self._is_searching = False
        #: End of the last good batch: bytes after it are a torn tail.
        self.valid_end = start_position
        self.next_offset = base_offset if start_offset is None else start_offset
        self.damages: list[Damage] = []
        self._epoch = -1
        self._chunk = b""
        self._chunk_start = 0

    def __iter__(self) -> Iterator[tuple[int, BatchHeader]]:
        position = self.valid_end
        while (header := self._good_batch(position)) or (found := self._next_good(position)):
            if header is None:
                assert found is not None
                after, header = found
                self.damages.append(Damage(position, after, self.next_offset, header.base_offset))
                position = after
            yield position, header
            position += header.batch_length + LOG_OVERHEAD_BYTES
            self.valid_end = position
            self.next_offset = header.base_offset + header.last_offset_delta + 1
            self._epoch = max(self._epoch, header.partition_leader_epoch)

    def tail_damage(self, next_base_offset: int) -> Damage:
        """The bytes after the last good batch of a segment that another one follows: damaged, not torn."""
        return Damage(self.valid_end, self._size, self.next_offset, next_base_offset)

    def _bytes(self, position: int, size: int) -> memoryview:
        at = position - self._chunk_start
        if at < 0 or at + size > len(self._chunk):
            self._chunk = self._read(max(_CHUNK_BYTES, size), position)
            self._chunk_start, at = position, 0
        return memoryview(self._chunk)[at : at + size]

    def _header(self, position: int) -> BatchHeader | None:
        """The header at `position` if it could start a batch of this segment that ends within the file."""
        if position + HEADER_BYTES > self._size:
            return None
        raw = self._bytes(position, HEADER_BYTES)
        if len(raw) < HEADER_BYTES:
            return None
        header = BatchHeader._make(HEADER.unpack(raw))
        end = position + header.batch_length + LOG_OVERHEAD_BYTES
        if header.magic != MAGIC or header.batch_length < SMALLEST_BATCH_LENGTH or end > self._size:
            return None
        return header

    def _good_batch(self, position: int) -> BatchHeader | None:
        header = self._header(position)
        if header is None or not self._plausible(header):
            return None
        batch = self._bytes(position, header.batch_length + LOG_OVERHEAD_BYTES)
        if crc32c(batch[ATTRIBUTES_OFFSET:]) != header.crc:
            return None
        if not self._fits_what_is_behind(position, header):
            return None
        return header

    def _plausible(self, header: BatchHeader) -> bool:
        last_offset = header.base_offset + header.last_offset_delta
        if (
            not self.next_offset
            <= header.base_offset
            <= last_offset
            <= self._base_offset + MAX_RELATIVE_OFFSET
        ):
            return False
        epoch = self._epoch_of(header.base_offset)
        if epoch >= 0:
            return header.partition_leader_epoch == epoch
        return header.partition_leader_epoch >= self._epoch

    def _fits_what_is_behind(self, position: int, header: BatchHeader) -> bool:
        """Whether the next batch agrees, where an offset jumps or the checkpoint does not know the epoch.

        Offsets jump in a log that once was compacted, whatever its policy is now. If a flipped bit made the
        jump, the next batch begins inside it.
        """
        jumps = header.base_offset > self.next_offset and not self._is_searching
        unknown_epoch = header.partition_leader_epoch > self._epoch and self._epoch_of(header.base_offset) < 0
        if not jumps and not unknown_epoch:
            return True
        behind = self._header(position + header.batch_length + LOG_OVERHEAD_BYTES)
        last_offset = header.base_offset + header.last_offset_delta
        if behind is None:
            if jumps and self._following_offset is not None:
                return last_offset < self._following_offset
            return not jumps or self._gaps_allowed
        if jumps and self.next_offset + header.last_offset_delta < behind.base_offset <= last_offset:
            return False
        return not self._epoch <= behind.partition_leader_epoch < header.partition_leader_epoch

    def _next_good(self, position: int) -> tuple[int, BatchHeader] | None:
        """The first good batch behind the bad one at `position`."""
        header = self._header(position)
        if header is not None:
            behind = position + header.batch_length + LOG_OVERHEAD_BYTES
            found = self._good_behind(behind)
            if found is not None:
                return behind, found
        raw = bytes(self._bytes(position, HEADER_BYTES)) if position < self._size else b""
        if len(raw) < HEADER_BYTES:
            return None
        base_offset, batch_length = (
            int.from_bytes(raw[:8], "big"),
            int.from_bytes(raw[8:12], "big", signed=True),
        )
        if (
            base_offset == self.next_offset
            and raw[MAGIC_OFFSET] == MAGIC
            and position + batch_length + LOG_OVERHEAD_BYTES >= self._size
        ):
            # Either the last batch, torn, or one whose length is damaged. In the latter case its checksum
            # still tells where it ends; a batch found elsewhere is one inside a record's value.
            return self._search(position, int.from_bytes(raw[CRC_OFFSET:ATTRIBUTES_OFFSET], "big"))
        return self._search(position, None)

    def _search(self, damaged: int, crc: int | None) -> tuple[int, BatchHeader] | None:
        """Try every place behind `damaged` whose bytes could be a header: the offset's upper half as
        expected, magic 2.

        With `crc`, the damaged batch must end there by its checksum.
        """
        upper = re.escape((self.next_offset >> 32).to_bytes(4, "big"))
        pattern = re.compile(b"(?=" + upper + b"[\\x00-\\xff]{12}\\x02)", re.DOTALL)
        position = damaged + 1
        while position + HEADER_BYTES <= self._size:
            chunk = self._read(_CHUNK_BYTES, position)
            for match in pattern.finditer(chunk):
                at = position + match.start()
                header = self._good_behind(at)
                if header is not None and (crc is None or crc == self._crc_up_to(damaged, at)):
                    return at, header
            if len(chunk) <= HEADER_BYTES:
                return None
            position += len(chunk) - HEADER_BYTES
        return None

    def _crc_up_to(self, position: int, end: int) -> int:
        """The checksum of the batch at `position` if it ended at `end`."""
        start = position + ATTRIBUTES_OFFSET
        return crc32c(self._read(end - start, start)) if end >= position + HEADER_BYTES else -1

    def _good_behind(self, position: int) -> BatchHeader | None:
        """As `_good_batch`, after damage, where a gap in the offsets is to be expected."""
        self._is_searching = True
        try:
            return self._good_batch(position)
        finally:
            self._is_searching = False


def no_epoch_known(offset: int) -> int:
    """For a log without a usable leader-epoch-checkpoint: no epoch is known."""
    return -1

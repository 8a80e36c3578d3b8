"""The five codecs of record batches: `compress`, and `decompress` within a budget.

The sender controls the decompressed size (measured: zstd 32,696 times the input, gzip 1,028, lz4 242, snappy
21), so nothing is decompressed without a bound. gzip, lz4 and zstd are read in pieces up to a budget; snappy,
which cannot stream inside a block, has its declared size checked against the budget and against the largest
possible expansion of its bytes. Declared sizes of other codecs are ignored.

Lessons from other clients:

* snappy comes in two framings: raw (librdkafka) and xerial's blocks (Java). Both are read; xerial is written.
* lz4 is written with independent 64 KiB blocks, because Java clients refuse linked ones. Reading ends with
  the first frame, as in Java.
* zstd frames of streaming writers carry no content size. Frames may follow one another; gzip members too.
* A cut zstd stream looks like a complete one here: its content is returned, and the record count of the batch
  shows what is missing.

Codec libraries are imported at first use. The (de)compressors are made per call: they must not be shared by
threads, and making one costs little compared with a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.errors import CorruptRecord

#: No batch may decompress to more than the largest request that could have carried it
#: (socket.request.max.bytes).
DEFAULT_LIMIT_BYTES = 104_857_600

#: Output is read in pieces that grow from the first to the second size.
FIRST_PIECE_BYTES = 32 * 1024
LARGEST_PIECE_BYTES = 1024 * 1024

#: Kafka's default levels: zlib's own choice for gzip; for lz4 the number of its fast compressor.
GZIP_DEFAULT_LEVEL = -1
LZ4_DEFAULT_LEVEL = 9
LZ4_HC_LEVELS = (3, 12)
ZSTD_DEFAULT_LEVEL = 3

GZIP_MAGIC = b"\x1f\x8b"
#: The most input per call: zlib copies its unused input, which would add up with many small members.
GZIP_INPUT_BYTES = 64 * 1024

XERIAL_MAGIC = b"\x82SNAPPY\0"
XERIAL_HEADER = XERIAL_MAGIC + b"\0\0\0\1\0\0\0\1"
XERIAL_BLOCK_BYTES = 32 * 1024
#: Snappy's densest element takes 3 bytes and copies 64.
SNAPPY_LARGEST_RATIO = 22


class Codec(IntEnum):
    """Compression types by their number in the batch attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """`data` compressed as Kafka's Java client does it; `level` None is Kafka's default for the codec."""
    return _COMPRESSORS[codec](data, level)


def decompress(codec: Codec, data: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
    """Decompress `data`; raises CorruptRecord if it is not the codec's, MESSAGE_TOO_LARGE above the limit."""
    return _DECOMPRESSORS[codec](data, limit_bytes)


# --- compress -------------------------------------------------------------------------------------


def _compress_none(data: Buffer, level: int | None) -> bytes:
    return bytes(data)


def _compress_gzip(data: Buffer, level: int | None) -> bytes:
    import zlib

    compressor = zlib.compressobj(GZIP_DEFAULT_LEVEL if level is None else level, zlib.DEFLATED, 31)
    return compressor.compress(data) + compressor.flush()


def _compress_snappy(data: Buffer, level: int | None) -> bytes:
    """Xerial framing: a 16-byte header, then blocks of (i32 length, raw snappy)."""
    import snappy

    parts = [XERIAL_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), XERIAL_BLOCK_BYTES):
        block = snappy.compress(view[start : start + XERIAL_BLOCK_BYTES])
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    import lz4.frame

    if level is None or level == LZ4_DEFAULT_LEVEL:
        level = 0
    else:
        level = min(max(level, LZ4_HC_LEVELS[0]), LZ4_HC_LEVELS[1])
    compressed: bytes = lz4.frame.compress(
        data,
        compression_level=level,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        content_checksum=False,
        store_size=False,
    )
    return compressed


def _compress_zstd(data: Buffer, level: int | None) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=ZSTD_DEFAULT_LEVEL if level is None else level).compress(data)


# --- decompress -----------------------------------------------------------------------------------


def _too_large(limit_bytes: int) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE, f"The batch decompresses to more than the {limit_bytes} bytes allowed"
    )


def _drain(read: Callable[[int], bytes], limit_bytes: int) -> bytes:
    """All bytes of `read(size)` until it returns none; never holds more than one byte above the limit."""
    pieces = []
    room = limit_bytes + 1
    size = FIRST_PIECE_BYTES
    while piece := read(min(size, room)):
        pieces.append(piece)
        room -= len(piece)
        if room <= 0:
            raise _too_large(limit_bytes)
        size = min(size * 2, LARGEST_PIECE_BYTES)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _decompress_none(data: Buffer, limit_bytes: int) -> bytes:
    if len(data) > limit_bytes:
        raise _too_large(limit_bytes)
    return bytes(data)


def _decompress_gzip(data: Buffer, limit_bytes: int) -> bytes:
    import zlib

    view = memoryview(data)
    pos = 0  # of the first byte that no stream has read
    pending: Buffer = b""
    stream = zlib.decompressobj(31)

    def read(size: int) -> bytes:
        nonlocal pos, pending, stream
        while True:
            if stream.eof:
                # Several members may follow; other bytes after the last one are ignored, as in Java.
                pos -= len(stream.unused_data)
                if view[pos : pos + 2] != GZIP_MAGIC:
                    return b""
                pending, stream = b"", zlib.decompressobj(31)
            if not pending:
                pending = view[pos : pos + GZIP_INPUT_BYTES]
                pos += len(pending)
            piece = stream.decompress(pending, size)
            pending = stream.unconsumed_tail
            if piece:
                return piece
            if not stream.eof and not pending and pos == len(view):
                raise CorruptRecord("The gzip data of the batch is cut short")

    try:
        return _drain(read, limit_bytes)
    except zlib.error as error:
        raise CorruptRecord(f"The batch does not hold valid gzip data: {error}") from None


def _decompress_snappy(data: Buffer, limit_bytes: int) -> bytes:
    view = memoryview(data)
    if view[:8] != XERIAL_MAGIC:
        return _snappy_block(view, limit_bytes, limit_bytes)
    blocks = []
    room = limit_bytes
    pos, end = 16, len(view)
    while pos < end:
        if view[pos : pos + 8] == XERIAL_MAGIC:
            pos += 16  # streams may follow one another
            continue
        block_start = pos + 4
        pos = block_start + int.from_bytes(view[pos:block_start], "big")
        if pos > end or block_start > end:
            raise CorruptRecord("The snappy data of the batch is cut short")
        block = _snappy_block(view[block_start:pos], room, limit_bytes)
        room -= len(block)
        blocks.append(block)
    return b"".join(blocks)


def _snappy_block(block: memoryview, room: int, limit_bytes: int) -> bytes:
    """Decompress one raw snappy block, which begins with its decompressed size as a varint."""
    import snappy

    declared = shift = 0
    for byte in block[:5]:
        declared |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if declared > SNAPPY_LARGEST_RATIO * len(block):
        raise CorruptRecord(f"A snappy block of {len(block)} bytes cannot hold the {declared} it declares")
    if declared > room:
        raise _too_large(limit_bytes)
    try:
        plain: bytes = snappy.decompress(block)
    except snappy.UncompressError as error:
        raise CorruptRecord(f"The batch does not hold valid snappy data: {error.__cause__}") from None
    return plain


def _decompress_lz4(data: Buffer, limit_bytes: int) -> bytes:
    import lz4.frame

    stream = lz4.frame.LZ4FrameDecompressor()
    pending: Buffer = data

    def read(size: int) -> bytes:
        nonlocal pending
        if stream.eof:
            return b""
        piece: bytes = stream.decompress(pending, max_length=size)
        pending = b""
        if not piece and not stream.eof:
            raise CorruptRecord("The lz4 data of the batch is cut short")
        return piece

    try:
        return _drain(read, limit_bytes)
    except RuntimeError as error:  # the library's only error for bad frames
        raise CorruptRecord(f"The batch does not hold valid lz4 data: {error}") from None


def _decompress_zstd(data: Buffer, limit_bytes: int) -> bytes:
    import zstandard

    reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
    try:
        return _drain(reader.read, limit_bytes)
    except zstandard.ZstdError as error:
        raise CorruptRecord(f"The batch does not hold valid zstd data: {error}") from None


_COMPRESSORS: dict[Codec, Callable[[Buffer, int | None], bytes]] = {
    Codec.NONE: _compress_none,
    Codec.GZIP: _compress_gzip,
    Codec.SNAPPY: _compress_snappy,
    Codec.LZ4: _compress_lz4,
    Codec.ZSTD: _compress_zstd,
}

_DECOMPRESSORS: dict[Codec, Callable[[Buffer, int], bytes]] = {
    Codec.NONE: _decompress_none,
    Codec.GZIP: _decompress_gzip,
    Codec.SNAPPY: _decompress_snappy,
    Codec.LZ4: _decompress_lz4,
    Codec.ZSTD: _decompress_zstd,
}

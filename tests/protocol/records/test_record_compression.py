"""The five codecs: every framing that clients are known to write, and bombs that stay within the budget."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from contextlib import suppress

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.compression import Codec, compress, decompress
from pykafka_broker.protocol.records.errors import CorruptRecord

MIB = 1024 * 1024
TEXT = b"The quick brown fox jumps over the lazy dog. " * 5000
COMPRESSING = [codec for codec in Codec if codec is not Codec.NONE]


@pytest.mark.parametrize("codec", Codec)
@given(data=st.binary(max_size=500), repeat=st.sampled_from([1, 2, 70, 4000]))
def test_what_is_compressed_is_decompressed(codec: Codec, data: bytes, repeat: int) -> None:
    data *= repeat
    assert decompress(codec, memoryview(bytearray(compress(codec, data))), len(data)) == data


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(Codec.GZIP, (-1, 1, 9)), (Codec.LZ4, (1, 3, 9, 12, 17)), (Codec.ZSTD, (-131072, -5, 3, 19, 22))],
)
def test_every_level_that_kafka_allows_works(codec: Codec, levels: tuple[int, ...]) -> None:
    for level in levels:
        assert decompress(codec, compress(codec, TEXT, level)) == TEXT


def test_higher_levels_compress_more() -> None:
    data = bytes(zlib.crc32(n.to_bytes(4, "big")) % 7 for n in range(50_000))
    assert len(compress(Codec.GZIP, data, 9)) < len(compress(Codec.GZIP, data, 1))
    assert len(compress(Codec.LZ4, data, 12)) < len(compress(Codec.LZ4, data))
    assert len(compress(Codec.ZSTD, data, 19)) < len(compress(Codec.ZSTD, data, 1))


# --- framings ---------------------------------------------------------------------------------------


def xerial(*blocks: bytes) -> bytes:
    header = bytes.fromhex("82534e41505059000000000100000001")
    return header + b"".join(len(block).to_bytes(4, "big") + block for block in blocks)


def test_snappy_is_read_in_both_framings() -> None:
    assert decompress(Codec.SNAPPY, snappy.compress(TEXT)) == TEXT
    assert decompress(Codec.SNAPPY, xerial(snappy.compress(TEXT[:99]), snappy.compress(TEXT[99:]))) == TEXT
    assert decompress(Codec.SNAPPY, xerial()) == b""


def test_snappy_streams_may_follow_one_another() -> None:
    streams = xerial(snappy.compress(b"one ")) + xerial(snappy.compress(b"two"))
    assert decompress(Codec.SNAPPY, streams) == b"one two"


def test_snappy_is_written_in_javas_framing_in_blocks_of_32_kib() -> None:
    blocks = [snappy.compress(TEXT[start : start + 32 * 1024]) for start in range(0, len(TEXT), 32 * 1024)]
    assert compress(Codec.SNAPPY, TEXT) == xerial(*blocks)


@pytest.mark.parametrize("block_size", [lz4.frame.BLOCKSIZE_MAX64KB, lz4.frame.BLOCKSIZE_MAX4MB])
@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("checksums", [False, True])
@pytest.mark.parametrize("store_size", [False, True])
def test_lz4_is_read_in_every_shape_of_frame(
    block_size: int, linked: bool, checksums: bool, store_size: bool
) -> None:
    frame = lz4.frame.compress(
        TEXT,
        block_size=block_size,
        block_linked=linked,
        block_checksum=checksums,
        content_checksum=checksums,
        store_size=store_size,
    )
    assert decompress(Codec.LZ4, frame) == TEXT


def test_lz4_is_written_as_java_clients_need_it() -> None:
    """Version 1, independent blocks, no sizes or checksums; blocks of at most 64 KiB."""
    assert compress(Codec.LZ4, TEXT).startswith(b"\x04\x22\x4d\x18\x60\x40")


def test_what_follows_an_lz4_frame_or_gzip_member_is_ignored() -> None:
    """Java reads these so: what a broker took in once must stay readable."""
    assert decompress(Codec.LZ4, compress(Codec.LZ4, TEXT) + b"junk") == TEXT
    assert decompress(Codec.GZIP, compress(Codec.GZIP, TEXT) + b"junk") == TEXT


def test_gzip_members_and_zstd_frames_may_follow_one_another() -> None:
    assert decompress(Codec.GZIP, gzip.compress(TEXT) + gzip.compress(b"end")) == TEXT + b"end"
    many = b"".join(gzip.compress(b"%d," % n) + gzip.compress(b"") for n in range(5000))
    assert decompress(Codec.GZIP, many) == b"".join(b"%d," % n for n in range(5000))
    frame = zstandard.ZstdCompressor().compress(TEXT)
    empty = zstandard.ZstdCompressor().compress(b"")
    assert decompress(Codec.ZSTD, empty + frame + empty * 5000 + frame) == TEXT + TEXT


def test_zstd_frames_need_not_declare_their_size() -> None:
    stream = zstandard.ZstdCompressor().compressobj()
    frame = stream.compress(TEXT) + stream.flush()
    assert zstandard.frame_content_size(frame) == -1
    assert decompress(Codec.ZSTD, frame) == TEXT


# --- budgets ----------------------------------------------------------------------------------------


def lz4_bomb(blocks: int) -> bytes:
    """One frame of `blocks` blocks of 4 MiB of zeros each."""
    frame: bytes = lz4.frame.compress(
        bytes(4 * MIB), block_size=lz4.frame.BLOCKSIZE_MAX4MB, block_linked=False, store_size=False
    )
    return frame[:7] + frame[7:-4] * blocks + frame[-4:]


def lying_zstd() -> bytes:
    """A frame that declares 64 GiB and holds 4 zeros: magic, descriptor, size, one RLE block."""
    return b"\x28\xb5\x2f\xfd\xe0" + (64 << 30).to_bytes(8, "little") + b"\x23\0\0\0"


BOMBS = {
    "gzip": (Codec.GZIP, gzip.compress(bytes(16 * MIB)) * 64),
    "zstd": (Codec.ZSTD, zstandard.ZstdCompressor().compress(bytes(64 * MIB)) * 16),
    "zstd, one frame that says so": (Codec.ZSTD, zstandard.ZstdCompressor().compress(bytes(256 * MIB))),
    "lz4": (Codec.LZ4, lz4_bomb(256)),
    "snappy, xerial": (Codec.SNAPPY, xerial(*[snappy.compress(bytes(MIB // 2))] * 2048)),
    "snappy, raw": (Codec.SNAPPY, snappy.compress(bytes(64 * MIB))),
    "no codec": (Codec.NONE, bytes(2 * MIB)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_with_little_more_memory_than_the_budget(name: str) -> None:
    codec, bomb = BOMBS[name]
    decompress(codec, compress(codec, b"load the library"))
    tracemalloc.start()
    try:
        with pytest.raises(KafkaError) as refused:
            decompress(codec, bomb, MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert peak < 3 * MIB + 2 * len(bomb)


@pytest.mark.parametrize("declared", [10_000, MIB, (1 << 32) - 1])
def test_a_snappy_block_cannot_declare_more_than_its_bytes_could_hold(declared: int) -> None:
    size = bytearray()
    while declared > 127:
        size.append(declared & 127 | 128)
        declared >>= 7
    size.append(declared)
    with pytest.raises(CorruptRecord, match="cannot hold"):
        decompress(Codec.SNAPPY, bytes(size) + b"\0a")


def test_a_declared_zstd_size_is_not_believed() -> None:
    with pytest.raises(CorruptRecord):
        decompress(Codec.ZSTD, lying_zstd(), MIB)


@pytest.mark.parametrize("codec", Codec)
def test_the_budget_is_exact(codec: Codec) -> None:
    data = compress(codec, TEXT)
    assert decompress(codec, data, len(TEXT)) == TEXT
    with pytest.raises(KafkaError) as refused:
        decompress(codec, data, len(TEXT) - 1)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


# --- damage -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", COMPRESSING)
@given(junk=st.binary(max_size=100))
def test_any_bytes_give_nothing_but_kafka_errors(codec: Codec, junk: bytes) -> None:
    for data in (junk, compress(codec, b"x" * 300)[:20] + junk):
        with suppress(KafkaError):
            decompress(codec, data, MIB)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_cut_data_is_corrupt(codec: Codec) -> None:
    data = compress(codec, TEXT)
    for end in range(20, len(data), max(1, len(data) // 200)):
        with pytest.raises(CorruptRecord):
            decompress(codec, data[:end])


def test_a_cut_zstd_stream_gives_what_it_holds_and_no_more() -> None:
    data = zstandard.ZstdCompressor(level=1).compress(TEXT * 20)
    for end in range(0, len(data), 7):
        assert TEXT.startswith(decompress(Codec.ZSTD, data[:end])[: len(TEXT)])

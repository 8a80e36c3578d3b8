"""The small text files of a log directory: bytes to values and back."""

from __future__ import annotations

import pytest

from pykafka_broker.log.disk.checkpoints import (
    MalformedFile,
    MetaProperties,
    decode_clean_shutdown,
    decode_meta_properties,
    decode_offsets,
    decode_partition_metadata,
    encode_clean_shutdown,
    encode_meta_properties,
    encode_offsets,
    encode_partition_metadata,
    find_offset,
    uuid_bytes,
)
from pykafka_broker.protocol.fields import uuid_text


def test_an_offset_checkpoint_reads_as_it_was_written() -> None:
    offsets = {("orders", 0): 12, ("a.b_c-d", 7): 0}
    data = encode_offsets(offsets.items())
    assert data == b"0\n2\norders 0 12\na.b_c-d 7 0\n"
    assert decode_offsets(data) == offsets
    assert decode_offsets(b"") == {}
    assert {key: find_offset(data, key) for key in offsets} == offsets
    assert (
        find_offset(data, ("rders", 0))
        is find_offset(data, ("orders", 1))
        is find_offset(b"", ("a", 0))
        is None
    )


@pytest.mark.parametrize(
    "data", [b"1\n0\n", b"0\n", b"0\nx\n", b"0\n2\na 1 2\n", b"0\n1\na 1\n", b"\xff", b"0\n1\na 1 x\n"]
)
def test_a_garbled_checkpoint_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedFile):
        decode_offsets(data)


def test_an_id_is_22_characters_and_comes_back() -> None:
    assert uuid_text(bytes(range(16))) == "AAECAwQFBgcICQoLDA0ODw"
    assert uuid_bytes("AAECAwQFBgcICQoLDA0ODw") == bytes(range(16))
    for text in ("", "short", "AAECAwQFBgcICQoLDA0ODwAA", "!" * 22):
        with pytest.raises(MalformedFile):
            uuid_bytes(text)


def test_partition_metadata_is_43_bytes_without_a_final_newline() -> None:
    data = encode_partition_metadata(bytes(range(16)))
    assert len(data) == 43
    assert decode_partition_metadata(data) == bytes(range(16))
    for bad in (b"", b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", b"version: 0\n", b"\xff\xff"):
        with pytest.raises(MalformedFile):
            decode_partition_metadata(bad)


def test_meta_properties_of_this_and_older_versions() -> None:
    meta = MetaProperties("c1", 3, bytes(range(16)))
    assert decode_meta_properties(encode_meta_properties(meta)) == meta
    old = b"#Fri Nov 21\nversion=0\nbroker.id=7\ncluster.id=x\n"
    assert decode_meta_properties(old) == MetaProperties("x", 7, None)
    for bad in (
        b"",
        b"version=9\n",
        b"version=1\nnode.id=one\n",
        b"version=1\ncluster.id=x\nnode.id=--1\n",
        b"version=1\nnode.id=1\n",
        b"version=1\ncluster.id=x\n",
    ):
        with pytest.raises(MalformedFile):
            decode_meta_properties(bad)


def test_the_clean_shutdown_marker() -> None:
    assert encode_clean_shutdown(9) == b'{"version":0,"brokerEpoch":9}'
    assert decode_clean_shutdown(b'{"version":0,"brokerEpoch":9}') == 9
    assert decode_clean_shutdown(b"") == -1

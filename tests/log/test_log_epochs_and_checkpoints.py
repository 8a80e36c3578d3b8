"""Leader epochs, file names, and the small text files of a log directory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.log.disk.checkpoints import (
    EpochEntry,
    MalformedFile,
    MetaProperties,
    decode_clean_shutdown,
    decode_epochs,
    decode_meta_properties,
    decode_offsets,
    decode_partition_metadata,
    encode_clean_shutdown,
    encode_epochs,
    encode_meta_properties,
    encode_offsets,
    encode_partition_metadata,
    uuid_bytes,
    uuid_text,
)
from pykafka_broker.log.disk.names import (
    FolderName,
    offset_file,
    parse_offset_file,
    parse_partition_folder,
    set_aside_folder,
)
from pykafka_broker.log.partition.leader_epochs import LeaderEpochs


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs([EpochEntry(*entry) for entry in entries])


# --- leader epochs --------------------------------------------------------------------------------


def test_an_epoch_ends_where_the_next_known_one_starts():
    cache = epochs((2, 10), (4, 20), (7, 30))

    assert cache.end_offset_for(2, 99) == (2, 20)
    assert cache.end_offset_for(3, 99) == (2, 20)
    assert cache.end_offset_for(4, 99) == (4, 30)
    assert cache.end_offset_for(7, 99) == (7, 99)


def test_epochs_outside_of_what_is_known():
    cache = epochs((2, 10), (4, 20))

    assert cache.end_offset_for(1, 99) == (1, 10)
    assert cache.end_offset_for(5, 99) == (-1, -1)
    assert cache.end_offset_for(-1, 99) == (-1, -1)
    assert epochs().end_offset_for(0, 99) == (-1, -1)


def test_the_epoch_of_an_offset():
    cache = epochs((2, 10), (4, 20))
    assert [cache.epoch_for_offset(offset) for offset in (9, 10, 19, 20, 500)] == [-1, 2, 2, 4, 4]


def test_assigning_the_latest_epoch_again_changes_nothing():
    cache = epochs((2, 10))
    assert cache.assign(2, 15) is False
    assert cache.entries == ((2, 10),)


def test_an_assignment_removes_what_contradicts_it():
    cache = epochs((2, 10), (4, 20), (7, 30))
    assert cache.assign(5, 25) is True
    assert cache.entries == ((2, 10), (4, 20), (5, 25))
    cache.assign(6, 15)
    assert cache.entries == ((2, 10), (6, 15))


def test_negative_epochs_are_not_noted():
    assert epochs().assign(-1, 0) is False


def test_truncation_from_the_end_and_from_the_start():
    cache = epochs((2, 10), (4, 20), (7, 30))

    assert cache.truncate_from_end(30) is True
    assert cache.truncate_from_end(30) is False
    assert cache.truncate_from_start(15) is True
    assert cache.entries == ((2, 15), (4, 20))
    assert cache.truncate_from_start(15) is False
    assert cache.truncate_from_start(50) is True
    assert cache.entries == ((4, 50),)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99)), max_size=12))
def test_the_cache_always_ascends_in_both_columns(assignments: list[tuple[int, int]]):
    cache = LeaderEpochs()
    for epoch, start_offset in assignments:
        cache.assign(epoch, start_offset)

    assert list(cache.entries) == sorted(set(cache.entries))
    assert [e.start_offset for e in cache.entries] == sorted({e.start_offset for e in cache.entries})
    assert decode_epochs(encode_epochs(cache.entries)) == list(cache.entries)


# --- checkpoints ----------------------------------------------------------------------------------


def test_an_offset_checkpoint_reads_as_it_was_written():
    offsets = {("orders", 0): 12, ("a.b_c-d", 7): 0}
    data = encode_offsets(offsets.items())
    assert data == b"0\n2\norders 0 12\na.b_c-d 7 0\n"
    assert decode_offsets(data) == offsets
    assert decode_offsets(b"") == {}


@pytest.mark.parametrize(
    "data", [b"1\n0\n", b"0\n", b"0\nx\n", b"0\n2\na 1 2\n", b"0\n1\na 1\n", b"\xff", b"0\n1\na 1 x\n"]
)
def test_a_garbled_checkpoint_is_malformed(data: bytes):
    with pytest.raises(MalformedFile):
        decode_offsets(data)


def test_an_id_is_22_characters_and_comes_back():
    assert uuid_text(bytes(range(16))) == "AAECAwQFBgcICQoLDA0ODw"
    assert uuid_bytes("AAECAwQFBgcICQoLDA0ODw") == bytes(range(16))
    for text in ("", "short", "AAECAwQFBgcICQoLDA0ODwAA", "!" * 22):
        with pytest.raises(MalformedFile):
            uuid_bytes(text)


def test_partition_metadata_is_43_bytes_without_a_final_newline():
    data = encode_partition_metadata(bytes(range(16)))
    assert len(data) == 43
    assert decode_partition_metadata(data) == bytes(range(16))
    for bad in (b"", b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", b"version: 0\n", b"\xff\xff"):
        with pytest.raises(MalformedFile):
            decode_partition_metadata(bad)


def test_meta_properties_of_this_and_older_versions():
    meta = MetaProperties("c1", 3, bytes(range(16)))
    assert decode_meta_properties(encode_meta_properties(meta)) == meta
    old = b"#Fri Nov 21\nversion=0\nbroker.id=7\ncluster.id=x\n"
    assert decode_meta_properties(old) == MetaProperties("x", 7, None)
    for bad in (
        b"",
        b"version=9\n",
        b"version=1\nnode.id=one\n",
        b"version=1\nnode.id=1\n",
        b"version=1\ncluster.id=x\n",
    ):
        with pytest.raises(MalformedFile):
            decode_meta_properties(bad)


def test_the_clean_shutdown_marker():
    assert encode_clean_shutdown(9) == b'{"version":0,"brokerEpoch":9}'
    assert decode_clean_shutdown(b'{"version":0,"brokerEpoch":9}') == 9
    assert decode_clean_shutdown(b"") == -1


# --- names ----------------------------------------------------------------------------------------


def test_files_are_named_by_offset_with_twenty_digits():
    assert offset_file(42, ".log") == "00000000000000000042.log"
    assert parse_offset_file("00000000000000000042.timeindex") == (42, ".timeindex")
    for name in ("42.log", "leader-epoch-checkpoint", "00000000000000000042", "x.log"):
        assert parse_offset_file(name) is None


@pytest.mark.parametrize(
    "name, folder",
    [
        ("orders-3", FolderName("orders", 3, "")),
        ("a-b-0", FolderName("a-b", 0, "")),
        ("__consumer_offsets-49", FolderName("__consumer_offsets", 49, "")),
        ("orders-3.0123456789abcdef0123456789abcdef-delete", FolderName("orders", 3, "delete")),
        ("orders-3.0123456789abcdef0123456789abcdef-future", FolderName("orders", 3, "future")),
        ("a.b-3.0123456789abcdef0123456789abcdef-stray", FolderName("a.b", 3, "stray")),
        ("lost+found", None),
        ("orders", None),
        ("-1", None),
    ],
)
def test_folders_tell_topic_partition_and_state(name: str, folder: FolderName | None):
    assert parse_partition_folder(name) == folder


def test_a_set_aside_folder_fits_a_file_system_however_long_the_topic_is():
    name = set_aside_folder("t" * 249, 12, "0123456789abcdef0123456789abcdef", "delete")
    assert len(name) == 255
    folder = parse_partition_folder(name)
    assert folder is not None and (folder.partition, folder.state) == (12, "delete")

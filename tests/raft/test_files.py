"""The files of a replica: the same bytes as Apache Kafka 4.3.1's, and nothing garbled is believed."""

from __future__ import annotations

import errno

import pytest

from pykafka_broker.cluster.records import decode_record, encode_record
from pykafka_broker.log.disk.checkpoints import MalformedFile, decode_meta_properties, uuid_bytes
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.messages.records import control as c
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.raft.core.log_view import BOOTSTRAP_SNAPSHOT, SnapshotId
from pykafka_broker.raft.core.quorum import Endpoints, ReplicaKey, Voter, VoterSet
from pykafka_broker.raft.core.state import ElectionState
from pykafka_broker.raft.format import (
    METADATA_FOLDER,
    Formatted,
    NewNode,
    StorageFormatError,
    format_storage,
    random_uuid,
)
from pykafka_broker.raft.quorum_state import decode_quorum_state, encode_quorum_state
from pykafka_broker.raft.snapshots import (
    control_batch,
    decode_snapshot,
    encode_snapshot,
    metadata_batch,
    parse_snapshot_name,
)
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.raft import apache_bytes as apache

FEATURES = {
    "metadata.version": 30,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}
LEVELS = [m.FeatureLevelRecord(name=name, feature_level=level) for name, level in FEATURES.items()]
VALUES = tuple(encode_record(record, 30) for record in LEVELS)
VOTERS = VoterSet({1: Voter(ReplicaKey(1, uuid_bytes(apache.DIRECTORY_ID)), apache.CONTROLLER)})
FOOTER = c.SnapshotFooterRecord(version=0)


# -- the bytes -------------------------------------------------------------------------------------------


def test_a_bootstrap_checkpoint_has_the_bytes_of_apaches() -> None:
    header = c.SnapshotHeaderRecord(version=0, last_contained_log_timestamp=0)
    first, second, third = apache.BOOTSTRAP_TIMES
    ours = (
        control_batch([header], base_offset=0, epoch=0, now_ms=first)
        + metadata_batch(VALUES, base_offset=1, epoch=0, now_ms=second)
        + control_batch([FOOTER], base_offset=7, epoch=0, now_ms=third)
    )
    assert ours == apache.BOOTSTRAP_CHECKPOINT


def test_the_snapshot_of_the_first_voters_has_the_bytes_of_apaches() -> None:
    header = c.SnapshotHeaderRecord(
        version=0, last_contained_log_timestamp=apache.FIRST_SNAPSHOT_LAST_TIMESTAMP_MS
    )
    version = c.KRaftVersionRecord(version=0, kraft_version=1)
    first, second = apache.FIRST_SNAPSHOT_TIMES
    ours = control_batch(
        [header, version, VOTERS.to_record()], base_offset=0, epoch=0, now_ms=first
    ) + control_batch([FOOTER], base_offset=3, epoch=0, now_ms=second)
    assert ours == apache.FIRST_SNAPSHOT


def test_the_first_batches_of_the_log_have_the_bytes_of_apaches() -> None:
    voter = [c.LeaderChangeMessageVoter(voter_id=1)]
    leader = c.LeaderChangeMessage(version=0, leader_id=1, voters=voter, granting_voters=voter)
    version = c.KRaftVersionRecord(version=0, kraft_version=1)
    records = [
        m.BeginTransactionRecord(name="Bootstrap records"),
        *LEVELS,
        m.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
        m.EndTransactionRecord(),
    ]
    first, second = apache.LOG_TIMES
    ours = control_batch([leader, version, VOTERS.to_record()], base_offset=0, epoch=1, now_ms=first)
    values = [encode_record(record, 30) for record in records]
    ours += metadata_batch(values, base_offset=3, epoch=1, now_ms=second)
    assert ours == apache.LOG


# -- snapshots -------------------------------------------------------------------------------------------


def test_apaches_snapshots_are_read() -> None:
    bootstrap = decode_snapshot(apache.BOOTSTRAP_CHECKPOINT)
    assert [decode_record(value) for value in bootstrap.values] == LEVELS
    assert bootstrap.voters is None
    first = decode_snapshot(apache.FIRST_SNAPSHOT)
    assert (first.values, first.voters) == ((), VOTERS)
    assert first.last_timestamp_ms == apache.FIRST_SNAPSHOT_LAST_TIMESTAMP_MS


def test_a_large_snapshot_is_many_batches_and_comes_back_whole() -> None:
    values = [encode_record(m.NoOpRecord(), 30)] * 25_000
    data = encode_snapshot(values, VOTERS, last_timestamp_ms=5, now_ms=6, epoch=3)
    assert decode_snapshot(data) == (tuple(values), VOTERS, 5)


def test_a_snapshot_cut_anywhere_is_not_believed() -> None:
    for size in range(len(apache.FIRST_SNAPSHOT)):
        with pytest.raises(MalformedFile):
            decode_snapshot(apache.FIRST_SNAPSHOT[:size])


def test_a_snapshot_with_a_flipped_bit_is_not_believed() -> None:
    damaged = bytearray(apache.BOOTSTRAP_CHECKPOINT)
    damaged[200] ^= 1
    with pytest.raises(MalformedFile):
        decode_snapshot(damaged)


def test_snapshots_are_named_by_end_offset_and_epoch() -> None:
    name = "00000000000000000042-0000000003.checkpoint"
    assert SnapshotId(42, 3).file_name == name
    assert parse_snapshot_name(name) == SnapshotId(42, 3)
    for other in (name + ".part", name + ".deleted", "bootstrap.checkpoint", "00000000000000000000.log"):
        assert parse_snapshot_name(other) is None


# -- quorum-state ----------------------------------------------------------------------------------------


def test_quorum_state_is_written_as_apache_writes_it() -> None:
    state = ElectionState(leader_epoch=1, leader_id=1)
    assert encode_quorum_state(state) == apache.QUORUM_STATE
    assert decode_quorum_state(apache.QUORUM_STATE) == state
    voted = ElectionState(7, voted_id=2, voted_directory_id=b"d" * 16)
    assert decode_quorum_state(encode_quorum_state(voted)) == voted


def test_quorum_state_of_static_voters_is_written_as_apache_writes_it() -> None:
    state = ElectionState(leader_epoch=1, leader_id=1)
    assert encode_quorum_state(state, (1,)) == (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    assert decode_quorum_state(encode_quorum_state(state, (1,))) == state


def test_quorum_state_of_static_voters_is_read() -> None:
    data = (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":3,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    assert decode_quorum_state(data) == ElectionState(leader_epoch=3, leader_id=1)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"null", b'{"data_version":2}', b'{"data_version":1}'])
def test_a_garbled_quorum_state_stops_the_node_rather_than_let_it_vote_twice(data: bytes) -> None:
    with pytest.raises(MalformedFile):
        decode_quorum_state(data)


# -- formatting ------------------------------------------------------------------------------------------


def formatted(
    files: MemoryFiles,
    *directories: str,
    node_id: int = 1,
    controller_endpoints: Endpoints | None = apache.CONTROLLER,
    cluster_id: str | None = None,
    ignore_formatted: bool = False,
) -> Formatted:
    node = NewNode(node_id, VALUES, controller_endpoints, cluster_id)
    return format_storage(files, directories, node, now_ms=7, ignore_formatted=ignore_formatted)


def test_formatting_makes_the_directories_a_node_of_a_new_cluster() -> None:
    files = MemoryFiles()
    result = formatted(files, "/a", "/b", cluster_id=apache.CLUSTER_ID)

    assert result.cluster_id == apache.CLUSTER_ID
    for directory, directory_id in result.directory_ids.items():
        meta = decode_meta_properties(files.read_file(f"{directory}/meta.properties"))
        assert meta == (apache.CLUSTER_ID, 1, directory_id)
    assert len(set(result.directory_ids.values())) == 2
    bootstrap = decode_snapshot(files.read_file("/a/bootstrap.checkpoint"))
    assert [decode_record(value) for value in bootstrap.values] == LEVELS
    first = decode_snapshot(files.read_file(f"/a/{METADATA_FOLDER}/{BOOTSTRAP_SNAPSHOT.file_name}"))
    assert first.voters == VoterSet({1: Voter(ReplicaKey(1, result.directory_ids["/a"]), apache.CONTROLLER)})
    assert not files.exists(f"/b/{METADATA_FOLDER}")
    assert files.read_file("/b/bootstrap.checkpoint") == files.read_file("/a/bootstrap.checkpoint")


def test_voters_that_stand_in_the_configuration_are_not_written() -> None:
    files = MemoryFiles()
    formatted(files, "/a", "/b", controller_endpoints=None)
    assert sorted(files.inodes) == [
        "/a/bootstrap.checkpoint",
        "/a/meta.properties",
        "/b/bootstrap.checkpoint",
        "/b/meta.properties",
    ]


def test_the_first_voters_of_a_quorum_are_written_and_name_this_nodes_directory() -> None:
    files = MemoryFiles()
    voters = VoterSet({n: Voter(ReplicaKey(n, bytes([n] * 16)), apache.CONTROLLER) for n in (1, 2)})
    own, other = (
        format_storage(
            files,
            [f"/{node_id}", f"/{node_id}-data"],
            NewNode(node_id, VALUES, None, apache.CLUSTER_ID, voters),
            now_ms=7,
        )
        for node_id in (1, 3)
    )

    assert own.directory_ids["/1"] == bytes([1] * 16)
    assert own.kinds == {"/1": "dynamic metadata voter directory", "/1-data": "data directory"}
    assert other.kinds == {"/3": "dynamic metadata directory", "/3-data": "data directory"}
    for directory in ("/1", "/3"):
        first = files.read_file(f"{directory}/{METADATA_FOLDER}/{BOOTSTRAP_SNAPSHOT.file_name}")
        assert decode_snapshot(first).voters == voters


def test_a_cluster_id_is_drawn_when_none_is_given() -> None:
    cluster_id = formatted(MemoryFiles(), "/a").cluster_id
    assert len(uuid_bytes(cluster_id)) == 16


@pytest.mark.parametrize("operation", ["write_file", "sync", "rename", "sync_directory"])
def test_a_format_cut_short_by_a_power_cut_can_be_done_again(operation: str) -> None:
    survived = 0
    while True:
        files = MemoryFiles()
        files.fail(operation, errno.EIO, skip=survived)
        try:
            formatted(files, "/a", "/b")
        except OSError:
            after = files.power_cut()
            again = formatted(after, "/a", "/b", ignore_formatted=True)
            for directory in ("/a", "/b"):
                meta = decode_meta_properties(after.read_file(f"{directory}/meta.properties"))
                assert meta.cluster_id == again.cluster_id
            survived += 1
        else:
            break
    assert survived == 5, "the first voters, and two files of both directories"


def test_a_formatted_directory_is_refused_or_left_alone() -> None:
    files = MemoryFiles()
    first = formatted(files, "/a")
    with pytest.raises(StorageFormatError, match="Log directory /a is already formatted"):
        formatted(files, "/a")
    again = formatted(files, "/a", "/b", ignore_formatted=True)
    assert (again.cluster_id, list(again.directory_ids)) == (first.cluster_id, ["/b"])


def test_a_directory_of_another_cluster_or_node_is_refused() -> None:
    files = MemoryFiles()
    formatted(files, "/a", cluster_id=apache.CLUSTER_ID)
    with pytest.raises(StorageFormatError, match="belongs to cluster 4L6g3nShT-eMCtK--X86sw, not to other"):
        formatted(files, "/a", cluster_id="other", ignore_formatted=True)
    with pytest.raises(StorageFormatError, match="belongs to node 1, not to 2"):
        formatted(files, "/a", node_id=2, ignore_formatted=True)


def test_apaches_meta_properties_is_read() -> None:
    meta = decode_meta_properties(apache.META_PROPERTIES)
    assert meta == (apache.CLUSTER_ID, apache.NODE_ID, uuid_bytes(apache.DIRECTORY_ID))


@pytest.mark.parametrize(
    ("cluster_id", "line"),
    [
        ("mycluster", b"cluster.id=mycluster"),
        ("4L6g3nShT-eMCtK--X86sw==", b"cluster.id=4L6g3nShT-eMCtK--X86sw\\=\\="),
        ("a b: #1!", b"cluster.id=a b\\: \\#1\\!"),
        ("  back\\slash\n", b"cluster.id=\\  back\\\\slash\\n"),
        ("Köln", b"cluster.id=K\\u00f6ln"),
    ],
)
def test_any_text_is_the_id_of_a_cluster_and_is_written_as_java_writes_it(
    cluster_id: str, line: bytes
) -> None:
    """Apache's tool and broker take any, too."""
    files = MemoryFiles()
    formatted(files, "/a", cluster_id=cluster_id)
    data = files.read_file("/a/meta.properties")
    assert data.splitlines()[1] == line
    assert decode_meta_properties(data).cluster_id == cluster_id


def test_ids_never_start_with_a_dash_and_are_not_reserved() -> None:
    ids = [random_uuid() for _ in range(2_000)]
    assert len(set(ids)) == len(ids)
    assert not any(uuid_text(value).startswith("-") for value in ids)

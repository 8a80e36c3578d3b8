"""What a start makes of files that a crash has left: nothing is promised that may still be lost."""

from __future__ import annotations

import errno

import pytest

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.checkpoints import MalformedFile
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import join
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.load_partition import open_log
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.protocol.topic_partition import METADATA_TOPIC_ID
from pykafka_broker.raft.core.log_view import BOOTSTRAP_SNAPSHOT, EpochStart, Membership, SnapshotId
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter, VoterSet
from pykafka_broker.raft.core.state import ElectionState
from pykafka_broker.raft.snapshots import encode_snapshot
from pykafka_broker.raft.storage import RaftStorage
from pykafka_broker.testing.memory_files import MemoryFiles

FOLDER = "/data/__cluster_metadata-0"
LOG = LogConfig(segment_bytes=150, cleanup_policy=frozenset())
IDENTITY = LogIdentity(FOLDER, "__cluster_metadata", 0, METADATA_TOPIC_ID)


def voters(*node_ids: int) -> VoterSet:
    return VoterSet({n: Voter(ReplicaKey(n, bytes([n]) * 16), {"CONTROLLER": ("host", n)}) for n in node_ids})


def formatted(*node_ids: int) -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory(FOLDER)
    first = encode_snapshot((), voters(*node_ids), last_timestamp_ms=0, now_ms=0)
    files.replace_file(join(FOLDER, BOOTSTRAP_SNAPSHOT.file_name), first, sync=True)
    files.sync_directory("/data")
    return files


def created(files: MemoryFiles, records: int) -> RaftStorage:
    """A log in epoch 1, with two batches of one record to a segment."""
    storage = RaftStorage(files, create_log(Environment(files), IDENTITY, LOG))
    for number in range(records):
        storage.append_metadata([b"%d" % number], epoch=1, now_ms=0)
    storage.flush()
    return storage


def reopened(files: MemoryFiles) -> RaftStorage:
    return RaftStorage(files, open_log(Environment(files), IDENTITY, LOG, clean=False, now_ms=0))


def values(storage: RaftStorage) -> list[bytes]:
    batches = storage.read(storage.log.state.log_start_offset, storage.end_offset)
    return [value for batch in batches for value in batch.values or ()]


def damage(files: MemoryFiles, offset: int) -> None:
    """Lose the first batch of the segment that begins at an offset."""
    data = files.inodes[join(FOLDER, f"{offset:020d}.log")].data
    data[: len(data) // 2] = bytes(len(data) // 2)


def test_a_vote_that_a_killed_process_had_not_synced_is_synced_at_the_start() -> None:
    files = formatted(1, 2, 3)
    storage = created(files, 1)
    vote = ElectionState(7, -1, 2, bytes([2]) * 16)
    files.fail("sync_directory", errno.EIO, path=FOLDER)
    with pytest.raises(OSError, match="Input/output"):
        storage.write_election_state(vote, Membership(voters(1, 2, 3)))

    assert reopened(files).load().election == vote, "it was renamed, and goes by its new name"

    assert reopened(files.power_cut()).load().election == vote


def test_a_segment_that_a_killed_process_had_not_synced_is_durable_with_the_next_flush() -> None:
    files = formatted(1, 2, 3)
    storage = created(files, 4)
    storage.append_metadata([b"4"], epoch=1, now_ms=0)  # in a segment whose name is not synced

    again = reopened(files)
    assert values(again) == [b"0", b"1", b"2", b"3", b"4"]
    again.flush()

    assert values(reopened(files.power_cut())) == values(again)


def test_a_log_that_is_damaged_is_cut_there_and_the_leader_has_the_rest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = formatted(1, 2, 3)
    created(files, 8)
    damage(files, 4)

    storage = reopened(files)
    loaded = storage.load()

    assert (loaded.view.end_offset, loaded.view.epochs) == (4, (EpochStart(1, 0),))
    assert "It is cut there, at 4" in caplog.text
    storage.append_metadata([b"other"], epoch=2, now_ms=0)
    assert values(storage) == [b"0", b"1", b"2", b"3", b"other"]


def test_the_only_voter_does_not_start_with_a_damaged_log() -> None:
    files = formatted(1)
    created(files, 8)
    damage(files, 4)

    with pytest.raises(MalformedFile, match="damaged from offset 4"):
        reopened(files).load()


def test_a_damage_that_a_snapshot_stands_for_is_not_served() -> None:
    files = formatted(1, 2, 3)
    storage = created(files, 8)
    storage.write_snapshot(
        SnapshotId(6, 1), [b"all"], Membership(voters(1, 2, 3)), last_timestamp_ms=0, now_ms=0
    )
    damage(files, 2)

    loaded = reopened(files).load()

    assert (loaded.view.start_offset, loaded.view.end_offset) == (6, 8)


def test_the_log_starts_where_it_was_trimmed_although_its_first_segment_begins_before() -> None:
    files = formatted(1, 2, 3)
    storage = created(files, 5)
    for end_offset in (1, 5):
        storage.write_snapshot(
            SnapshotId(end_offset, 1), [b"all"], Membership(voters(1, 2, 3)), last_timestamp_ms=0, now_ms=0
        )
    storage.log.state.advance_high_watermark(5)
    storage.trim(now_ms=0)

    view = reopened(files).load().view

    assert (view.start_offset, view.end_offset, view.epochs) == (1, 5, (EpochStart(1, 1),))


def test_a_damage_behind_a_snapshot_costs_what_is_behind_the_snapshot() -> None:
    files = formatted(1, 2, 3)
    storage = created(files, 8)
    storage.write_snapshot(
        SnapshotId(4, 1), [b"all"], Membership(voters(1, 2, 3)), last_timestamp_ms=0, now_ms=0
    )
    damage(files, 4)

    loaded = reopened(files).load()

    assert (loaded.view.start_offset, loaded.view.end_offset) == (0, 4)


def test_a_snapshot_for_which_a_disk_has_no_room_takes_none() -> None:
    files = formatted(1)
    storage = created(files, 1)
    files.free_bytes = 1_000
    records = [bytes(2_000)]
    with pytest.raises(OSError, match="No space"):
        storage.write_snapshot(
            SnapshotId(1, 1), records, Membership(voters(1)), last_timestamp_ms=0, now_ms=0
        )

    assert storage.append_metadata([b"small"], epoch=1, now_ms=0) == 1
    assert not [entry for entry in files.entries(FOLDER) if entry.name.endswith(".tmp")]

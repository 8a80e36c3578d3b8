"""The driver over files in memory: what is on disk before what, group commit, restarts, a broken disk."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import TypeVar

import pytest

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import join
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.load_partition import open_log
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.topic_partition import METADATA_TOPIC_ID
from pykafka_broker.raft.core.log_view import BOOTSTRAP_SNAPSHOT, Membership, SnapshotId
from pykafka_broker.raft.core.messages import Fetch
from pykafka_broker.raft.core.quorum import NO_VOTERS, ReplicaKey, Voter, VoterSet
from pykafka_broker.raft.core.state import ElectionState
from pykafka_broker.raft.driver import FLUSH_RETRY_MS, DriverPorts, OtherVotersError, RaftDriver
from pykafka_broker.raft.quorum_state import decode_quorum_state
from pykafka_broker.raft.snapshots import decode_snapshot, encode_snapshot
from pykafka_broker.raft.storage import Loaded, RaftStorage, StoredSnapshot
from pykafka_broker.testing.clock import VirtualClock, settle
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.raft import apache_bytes as apache

T = TypeVar("T")

FOLDER = "/data/__cluster_metadata-0"
LOCAL = Voter(ReplicaKey(1, b"d" * 16), {"CONTROLLER": ("localhost", 9093)})
NOW_MS = 1_700_000_000_000


class Worker:
    """Runs blocking jobs; while `held`, only when told to."""

    def __init__(self) -> None:
        self.held = False
        self.error: Exception | None = None
        self.waiting: asyncio.Queue[asyncio.Future[None]] = asyncio.Queue()
        self.runs = 0

    async def run(self, job: Callable[[], T]) -> T:
        if self.held:
            gate = asyncio.get_running_loop().create_future()
            self.waiting.put_nowait(gate)
            await gate
        if self.error is not None:
            raise self.error
        self.runs += 1
        return job()

    async def let_one_go(self) -> None:
        gate = await self.waiting.get()
        gate.set_result(None)
        await settle()


class Records:
    """What a replica has read from its files."""

    def __init__(self) -> None:
        self.snapshot: tuple[SnapshotId, list[bytes]] | None = None
        self.batches: list[tuple[int, int, list[bytes]]] = []
        self.control: list[tuple[int, int]] = []

    def take(self, storage: RaftStorage, loaded: Loaded) -> None:
        if loaded.snapshot is not None:
            snapshot_id, values = loaded.snapshot
            self.snapshot = (snapshot_id, list(values))
        for batch in storage.read(loaded.start_offset, storage.end_offset):
            if batch.values is None:
                self.control.append((batch.next_offset - 1, batch.epoch))
            else:
                self.batches.append((batch.base_offset, batch.epoch, list(batch.values)))


class Replica:
    """A driver, what it committed, and what stopped it."""

    def __init__(
        self, files: MemoryFiles, local: Voter = LOCAL, configured_voters: VoterSet = NO_VOTERS
    ) -> None:
        self.files = files
        self.committed: list[int] = []
        self.failures: list[Exception] = []
        self.roles: list[object] = []
        self.worker = Worker()
        self.clock = VirtualClock(NOW_MS)
        self.listener = Records()
        environment = Environment(files)
        if files.exists(join(FOLDER, "00000000000000000000.log")):
            log = open_log(
                environment,
                LogIdentity(FOLDER, "__cluster_metadata", 0, METADATA_TOPIC_ID),
                LogConfig(),
                clean=False,
                now_ms=NOW_MS,
            )
        else:
            log = create_log(
                environment, LogIdentity(FOLDER, "__cluster_metadata", 0, METADATA_TOPIC_ID), LogConfig()
            )
        self.driver = RaftDriver(
            RaftStorage(files, log, configured_voters),
            local,
            self,
            DriverPorts(self.clock, self.worker.run, lambda: 0.0),
        )

    def on_commit(self, offset: int) -> None:
        self.committed.append(offset)

    def on_snapshot(self, snapshot: StoredSnapshot) -> None:
        raise AssertionError("the only voter fetches no snapshot")

    def on_failure(self, error: Exception) -> None:
        self.failures.append(error)

    def on_role(self) -> None:
        self.roles.append(self.driver.state.role)

    def on_led(self) -> None: ...

    def boot(self) -> Replica:
        loaded = self.driver.storage.load()
        self.listener.take(self.driver.storage, loaded)
        self.driver.boot(loaded)
        return self


def formatted() -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory(FOLDER)
    first = encode_snapshot((), VoterSet({1: LOCAL}), last_timestamp_ms=0, now_ms=0)
    files.replace_file(join(FOLDER, BOOTSTRAP_SNAPSHOT.file_name), first, sync=True)
    files.sync_directory("/data")
    return files


def election_state(files: MemoryFiles) -> ElectionState:
    return decode_quorum_state(files.read_file(join(FOLDER, "quorum-state")))


async def test_the_election_is_on_disk_before_the_epochs_first_record() -> None:
    files = formatted()
    Replica(files).boot()
    renamed = files.calls.index(("sync_directory", FOLDER))
    written = next(i for i, (op, path) in enumerate(files.calls) if op == "pwrite" and path.endswith(".log"))
    assert renamed < written
    assert election_state(files.power_cut()) == ElectionState(leader_epoch=1, leader_id=1)


async def test_nothing_is_committed_before_it_is_on_disk() -> None:
    replica = Replica(formatted())
    replica.worker.held = True
    replica.boot()
    assert replica.driver.append([b"one"]) == 4
    assert (replica.committed, replica.driver.high_watermark) == ([], None)

    await replica.worker.let_one_go()

    assert (replica.committed, replica.driver.high_watermark) == ([4], 4)
    survivor = Replica(replica.files.power_cut()).boot()
    assert survivor.listener.batches == [(3, 1, [b"one"])]


async def test_writers_that_come_during_a_sync_share_the_next_one() -> None:
    replica = Replica(formatted())
    replica.worker.held = True
    replica.boot()
    await settle()
    for number in range(100):
        replica.driver.append([b"%d" % number])

    await replica.worker.let_one_go()
    await replica.worker.let_one_go()

    assert replica.committed == [3, 103]
    assert replica.worker.runs == 2


async def test_a_restart_leads_the_next_epoch_and_reads_everything_again() -> None:
    replica = Replica(formatted()).boot()
    replica.driver.append([b"one", b"two"])
    await replica.driver.close()

    replica = Replica(replica.files.killed()).boot()
    await replica.driver.close()

    assert replica.driver.epoch == 2
    assert replica.listener.batches == [(3, 1, [b"one", b"two"])]
    assert replica.listener.control == [(2, 1)]
    assert replica.driver.high_watermark == 6, "three control records, two of metadata, one control record"


async def test_a_closed_replica_refuses_requests_also_those_that_have_waited() -> None:
    replica = Replica(formatted()).boot()
    driver = replica.driver
    fetch = Fetch(driver.epoch, ReplicaKey(7), driver.storage.end_offset, driver.epoch, max_wait_ms=500)
    waiting = driver.request(fetch)
    await settle()
    assert not waiting.done()
    await driver.close()
    for answer in (waiting, driver.request(fetch)):
        with pytest.raises(KafkaError) as refused:
            await answer
        assert refused.value.code is ErrorCode.BROKER_NOT_AVAILABLE


async def test_a_torn_batch_at_the_end_is_as_if_it_had_never_been() -> None:
    replica = Replica(formatted()).boot()
    replica.driver.append([b"one"])
    await replica.driver.close()
    path = join(FOLDER, "00000000000000000000.log")
    for cut in (1, 30, 60):
        files = replica.files.killed()
        del files.inodes[path].data[-cut:]
        again = Replica(files).boot()
        assert again.listener.batches == []
        await again.driver.close()


async def test_a_log_that_apache_wrote_is_taken_over() -> None:
    files = MemoryFiles()
    files.make_directory(FOLDER)
    files.write_file(join(FOLDER, "00000000000000000000.log"), apache.LOG, sync=True)
    files.write_file(join(FOLDER, BOOTSTRAP_SNAPSHOT.file_name), apache.FIRST_SNAPSHOT, sync=True)
    files.write_file(join(FOLDER, "quorum-state"), apache.QUORUM_STATE, sync=True)
    directory_id = bytes.fromhex("3949be615835404295c128402e210bd4")
    replica = Replica(files, Voter(ReplicaKey(1, directory_id), apache.CONTROLLER)).boot()
    await replica.driver.close()
    [(offset, epoch, values)] = replica.listener.batches
    assert (offset, epoch, len(values)) == (3, 1, 9)
    assert (replica.driver.epoch, replica.driver.high_watermark) == (2, 13)


async def test_the_newest_snapshot_stands_for_the_log_before_it() -> None:
    replica = Replica(formatted()).boot()
    for value in (b"one", b"two", b"three"):
        replica.driver.append([value])
    await replica.driver.close()
    storage = replica.driver.storage
    for snapshot_id, values in ((SnapshotId(4, 1), [b"old"]), (SnapshotId(5, 1), [b"one, two"])):
        storage.write_snapshot(
            snapshot_id, values, Membership(VoterSet({1: LOCAL})), last_timestamp_ms=NOW_MS, now_ms=NOW_MS
        )

    again = Replica(replica.files.killed()).boot()

    assert again.listener.snapshot == (SnapshotId(5, 1), [b"one, two"])
    assert again.listener.batches == [(5, 1, [b"three"])]
    await again.driver.close()


async def with_a_snapshot_and_a_later_record(epoch: int) -> MemoryFiles:
    """The files of a replica whose log goes on, in epoch 1, behind a snapshot of this epoch."""
    replica = Replica(formatted()).boot()
    for value in (b"one", b"two", b"three"):
        replica.driver.append([value])
    await replica.driver.close()
    replica.driver.storage.write_snapshot(
        SnapshotId(5, epoch),
        [b"one, two"],
        Membership(VoterSet({1: LOCAL})),
        last_timestamp_ms=NOW_MS,
        now_ms=NOW_MS,
    )
    return replica.files.killed()


async def test_a_damaged_file_of_leader_epochs_costs_no_record_behind_the_snapshot() -> None:
    files = await with_a_snapshot_and_a_later_record(epoch=1)
    files.write_file(join(FOLDER, "leader-epoch-checkpoint"), b"0\n1\n1 70\n", sync=True)
    again = Replica(files).boot()
    assert again.listener.snapshot == (SnapshotId(5, 1), [b"one, two"])
    assert again.listener.batches == [(5, 1, [b"three"])]
    await again.driver.close()


async def test_a_received_snapshot_stands_for_older_records_that_the_stop_left_in_the_log() -> None:
    """It was killed between the two steps: the snapshot had its name, and the log was still the old one."""
    files = await with_a_snapshot_and_a_later_record(epoch=4)
    again = Replica(files).boot()
    assert again.listener.snapshot == (SnapshotId(5, 4), [b"one, two"])
    assert again.listener.batches == []
    assert again.driver.epoch == 5
    await again.driver.close()


async def test_a_log_that_names_no_voters_goes_by_those_of_the_configuration() -> None:
    files = MemoryFiles()
    files.make_directory(FOLDER)
    alone = VoterSet({1: Voter(ReplicaKey(1), {"CONTROLLER": ("localhost", 9093)})})
    for epoch in (1, 2):
        replica = Replica(files, configured_voters=alone).boot()
        await replica.driver.close()
        assert replica.driver.epoch == epoch
        assert b'"data_version":0' in files.read_file(join(FOLDER, "quorum-state"))
    storage = replica.driver.storage
    storage.write_snapshot(
        SnapshotId(1, 1), [], Membership(alone, kraft_version=0), last_timestamp_ms=0, now_ms=0
    )
    assert decode_snapshot(files.read_file(join(FOLDER, SnapshotId(1, 1).file_name))).voters is None

    with pytest.raises(OtherVotersError, match="no voters"):
        Replica(files).boot()


async def test_a_replica_that_is_not_the_only_voter_does_not_start() -> None:
    files = formatted()
    both = VoterSet({1: LOCAL, 2: Voter(ReplicaKey(2, b"e" * 16), {})})
    first = encode_snapshot((), both, last_timestamp_ms=0, now_ms=0)
    files.replace_file(join(FOLDER, BOOTSTRAP_SNAPSHOT.file_name), first, sync=True)
    with pytest.raises(OtherVotersError, match=r"node 1 finds the voters \[1, 2\]"):
        Replica(files).boot()
    assert not files.exists(join(FOLDER, "quorum-state")), "it must not have voted"


async def test_a_disk_that_loses_a_sync_stops_the_replica_and_commits_nothing() -> None:
    replica = Replica(formatted()).boot()
    await replica.driver.close()
    replica.files.fail("sync", errno.EIO, path=".log")

    replica.driver.append([b"one"])
    await replica.driver.close()

    assert replica.committed == [3]
    assert len(replica.failures) == 1
    with pytest.raises(KafkaError) as refused:
        replica.driver.append([b"two"])
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_sync_that_fails_in_any_way_stops_the_replica() -> None:
    replica = Replica(formatted()).boot()
    await replica.driver.close()
    replica = Replica(replica.files).boot()
    replica.worker.error = RuntimeError("can't start new thread")

    replica.driver.append([b"one"])
    await settle()

    assert replica.failures == [replica.worker.error]


async def test_a_full_disk_refuses_the_record_and_takes_the_next_when_there_is_room() -> None:
    replica = Replica(formatted()).boot()
    await settle()
    replica.files.free_bytes = 10
    with pytest.raises(KafkaError):
        replica.driver.append([b"x" * 100])
    replica.files.heal()

    assert replica.driver.append([b"two"]) == 4
    await replica.driver.close()

    assert replica.committed == [3, 4]
    assert replica.failures == []


async def test_a_disk_without_room_for_an_index_holds_back_commits_until_there_is_room() -> None:
    replica = Replica(formatted()).boot()
    await settle()
    replica.files.fail("write_file", errno.ENOSPC, path="00000.index", times=3)
    replica.driver.storage.log.roller.roll()

    replica.driver.append([b"one"])
    await settle()
    assert (replica.committed, replica.failures) == ([3], [])
    await replica.clock.pass_time(2 * FLUSH_RETRY_MS)
    await settle()

    assert (replica.committed, replica.failures) == ([3, 4], [])
    await replica.driver.close()


async def test_a_replica_that_closes_does_not_wait_for_room() -> None:
    replica = Replica(formatted()).boot()
    await settle()
    replica.files.fail("write_file", errno.ENOSPC, path="00000.index", times=1_000)
    replica.driver.storage.log.roller.roll()
    replica.driver.append([b"one"])
    await settle()

    closing = asyncio.ensure_future(replica.driver.close())
    await settle()
    await replica.clock.pass_time(FLUSH_RETRY_MS)
    await settle()

    assert closing.done()
    assert len(replica.failures) == 1

"""Several drivers over files in memory and a network of core messages: the shell of a real quorum.

The machine's own rules are the business of `test_transitions.py` and of the simulation. Here is what the
shell adds: the order of disk and network, records and snapshots that travel, restarts, and a clean stop.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Sequence
from functools import partial
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
from pykafka_broker.raft.core.log_view import BOOTSTRAP_SNAPSHOT, SnapshotId
from pykafka_broker.raft.core.messages import (
    Answer,
    Fetch,
    FetchAnswer,
    FetchSnapshotAnswer,
    Vote,
    VoteAnswer,
)
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter, VoterSet
from pykafka_broker.raft.core.roles import Follower, Leader, Role, Unattached
from pykafka_broker.raft.core.settings import Settings
from pykafka_broker.raft.core.state import Send
from pykafka_broker.raft.driver import DriverPorts, RaftDriver
from pykafka_broker.raft.snapshots import encode_snapshot
from pykafka_broker.raft.storage import RaftStorage, StoredSnapshot
from pykafka_broker.raft.wire.fetched import fetched_batches
from pykafka_broker.testing.clock import VirtualClock, settle
from pykafka_broker.testing.memory_files import MemoryFiles

T = TypeVar("T")

FOLDER = "/data/__cluster_metadata-0"


def voter(node_id: int) -> Voter:
    return Voter(ReplicaKey(node_id, bytes([node_id]) * 16), {"CONTROLLER": ("localhost", 9000 + node_id)})


def formatted(*voters: int) -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory(FOLDER)
    first = encode_snapshot((), VoterSet({n: voter(n) for n in voters}), last_timestamp_ms=0, now_ms=0)
    files.replace_file(join(FOLDER, BOOTSTRAP_SNAPSHOT.file_name), first, sync=True)
    files.sync_directory("/data")
    return files


class Network:
    """Carries requests, and what the leader's shell adds to answers; nodes that are `cut` hear nothing."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.cut: set[int] = set()
        self.damage_snapshots = False

    async def ask(self, sender_id: int, send: Send) -> Answer | None:
        await asyncio.sleep(0)
        _, port = send.to.address
        node = self.nodes.get(port - 9000)
        if node is None or {sender_id, node.node_id} & self.cut:
            return None
        answer = await node.driver.request(send.request)
        await asyncio.sleep(0)
        if {sender_id, node.node_id} & self.cut:
            return None
        storage = node.driver.storage
        if isinstance(answer, FetchAnswer) and answer.read_from is not None:
            records = storage.read_for_replica(answer.read_from, 1 << 20)
            answer = answer._replace(batches=fetched_batches(records), read_from=None)
        if isinstance(answer, FetchSnapshotAnswer) and answer.snapshot_id is not None:
            data = storage.read_snapshot_part(answer.snapshot_id, answer.position, 100)
            if self.damage_snapshots:
                data = bytes(len(data))
            answer = answer._replace(data=data)
        return answer


class Peers:
    """The way of one node into the network."""

    def __init__(self, network: Network, node_id: int) -> None:
        self.network = network
        self.node_id = node_id
        self.tasks: set[asyncio.Future[None]] = set()
        self.is_closed = False

    def send(self, send: Send, answered: Callable[[Answer | None], None]) -> None:
        assert not self.is_closed, send
        task = asyncio.ensure_future(self._ask(send, answered))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _ask(self, send: Send, answered: Callable[[Answer | None], None]) -> None:
        try:
            answer = await self.network.ask(self.node_id, send)
        except KafkaError:
            answer = None
        answered(answer)

    async def close(self) -> None:
        self.is_closed = True
        for task in tuple(self.tasks):
            task.cancel()


class Node:
    """A replica of the quorum, and what the part above it was told."""

    def __init__(self, cluster: Cluster, node_id: int, files: MemoryFiles) -> None:
        self.node_id = node_id
        self.files = files
        self.network = cluster.network
        self.committed = 0
        self.snapshots: list[StoredSnapshot] = []
        self.roles: list[Role] = []
        self.failures: list[Exception] = []
        self.syncs = 0
        self.free = asyncio.Event()
        self.free.set()
        environment = Environment(files)
        identity = LogIdentity(FOLDER, "__cluster_metadata", 0, METADATA_TOPIC_ID)
        if any(entry.name.endswith(".log") for entry in files.entries(FOLDER)):
            log = open_log(environment, identity, LogConfig(), clean=False, now_ms=0)
        else:
            log = create_log(environment, identity, LogConfig())
        self.peers = Peers(self.network, node_id)
        self.driver = RaftDriver(
            RaftStorage(files, log),
            voter(node_id),
            self,
            DriverPorts(cluster.clock, self.run, partial(cluster.chances.__getitem__, node_id), self.peers),
            Settings(bootstrap=tuple(("localhost", 9000 + n) for n in cluster.voters)),
        )
        self.network.nodes[node_id] = self
        self.driver.boot(self.driver.storage.load())

    async def run(self, job: Callable[[], T]) -> T:
        await self.free.wait()
        self.syncs += 1
        return job()

    def on_commit(self, offset: int) -> None:
        self.committed = offset

    def on_snapshot(self, snapshot: StoredSnapshot) -> None:
        self.snapshots.append(snapshot)

    def on_role(self) -> None:
        self.roles.append(self.driver.state.role)

    def on_led(self) -> None: ...

    def on_failure(self, error: Exception) -> None:
        self.failures.append(error)

    @property
    def role(self) -> Role:
        return self.driver.state.role

    @property
    def values(self) -> dict[int, tuple[bytes, ...]]:
        """The metadata values of the log, by offset."""
        storage = self.driver.storage
        start_offset = storage.log.state.log_start_offset
        batches = storage.read(start_offset, storage.end_offset)
        return {batch.base_offset: batch.values for batch in batches if batch.values is not None}


class Cluster:
    """Voters on one network, with one clock. Node 1 is the first whose election timer runs out."""

    def __init__(self, voters: Sequence[int]) -> None:
        self.clock = VirtualClock()
        self.network = Network()
        self.voters = voters
        self.chances = {node_id: 0.1 * node_id for node_id in range(1, 9)}
        for node_id in voters:
            self.start(node_id, formatted(*voters))

    def start(self, node_id: int, files: MemoryFiles) -> Node:
        return Node(self, node_id, files)

    def kill(self, node_id: int) -> MemoryFiles:
        """End a process; what it has written is still there."""
        node = self.network.nodes.pop(node_id)
        node.peers.network = Network()
        return node.files.killed()

    async def pass_time(self, duration_ms: int) -> None:
        for _ in range(duration_ms // 10):
            await self.clock.pass_time(10)
            await settle(50)

    async def elect(self) -> Node:
        """Return the leader, once there is one that all nodes follow."""
        for _ in range(100):
            await self.pass_time(100)
            leaders = [node for node in self.network.nodes.values() if isinstance(node.role, Leader)]
            if len(leaders) == 1 and all(
                node.role.epoch == leaders[0].role.epoch for node in self.network.nodes.values()
            ):
                return leaders[0]
        raise AssertionError("no leader within ten seconds")


async def test_three_voters_elect_a_leader_and_have_its_records() -> None:
    cluster = Cluster((1, 2, 3))
    leader = await cluster.elect()
    end_offset = leader.driver.append([b"one", b"two"])
    await cluster.pass_time(100)
    assert [node.committed for node in cluster.network.nodes.values()] == [end_offset] * 3
    assert [node.values for node in cluster.network.nodes.values()] == [{3: (b"one", b"two")}] * 3


async def test_what_a_majority_has_not_on_its_disks_is_not_committed() -> None:
    cluster = Cluster((1, 2, 3))
    leader = await cluster.elect()
    await cluster.pass_time(100)
    before = leader.committed
    followers = [node for node in cluster.network.nodes.values() if node is not leader]
    for node in followers:
        node.free.clear()

    end_offset = leader.driver.append([b"one"])
    await cluster.pass_time(200)
    assert all(node.values == {3: (b"one",)} for node in followers), "they have it, but not on their disks"
    assert leader.committed == before

    followers[0].free.set()
    await cluster.pass_time(200)
    assert leader.committed == end_offset


async def test_a_leader_that_is_killed_is_replaced_and_its_committed_records_stay() -> None:
    cluster = Cluster((1, 2, 3))
    first = await cluster.elect()
    first.driver.append([b"committed"])
    await cluster.pass_time(100)
    cluster.network.cut.add(first.node_id)
    first.driver.append([b"nobody else has this"])
    await cluster.pass_time(50)
    files = cluster.kill(first.node_id)

    second = await cluster.elect()
    assert second.driver.epoch > first.driver.epoch
    second.driver.append([b"instead"])
    await cluster.pass_time(100)
    cluster.network.cut.clear()
    again = cluster.start(first.node_id, files)
    assert (b"nobody else has this",) in again.values.values()
    await cluster.pass_time(3_000)

    assert isinstance(again.role, Follower)
    assert again.values == second.values
    assert list(second.values.values()) == [(b"committed",), (b"instead",)]
    assert again.committed == second.committed


async def test_a_leader_whose_disk_is_full_lets_another_voter_lead() -> None:
    cluster = Cluster((1, 2, 3))
    first = await cluster.elect()
    before = first.driver.append([b"before"])
    await cluster.pass_time(100)
    first.files.free_bytes = 10
    with pytest.raises(KafkaError) as refused:
        first.driver.append([b"x" * 100])
    first.files.heal()

    assert refused.value.code is ErrorCode.NOT_CONTROLLER, "the next leader may be asked"
    second = await cluster.elect()
    assert second is not first
    assert second.driver.append([b"after"]) > before
    await cluster.pass_time(1_000)
    assert [list(node.values.values()) for node in cluster.network.nodes.values()] == [
        [(b"before",), (b"after",)]
    ] * 3
    assert first.failures == []


async def test_a_vote_is_on_disk_before_it_is_given() -> None:
    cluster = Cluster((1, 2, 3))
    node = cluster.network.nodes[3]
    request = Vote(7, voter(2).key, voter(3).key, last_epoch=6, end_offset=100)
    answer = await node.driver.request(request)
    assert isinstance(answer, VoteAnswer)
    assert answer.granted
    files = node.files.power_cut()
    cluster.kill(3)
    again = cluster.start(3, files)
    assert isinstance(again.role, Unattached)
    assert again.role == Unattached(
        7, voted=voter(2).key, election_deadline_ms=again.role.election_deadline_ms
    )
    other = await again.driver.request(request._replace(candidate=voter(1).key))
    assert isinstance(other, VoteAnswer)
    assert not other.granted, "one vote in an epoch, also over a restart"


async def test_a_follower_that_is_far_behind_starts_with_a_snapshot() -> None:
    cluster = Cluster((1, 2, 3))
    leader = await cluster.elect()
    behind = next(node for node in cluster.network.nodes.values() if node is not leader)
    files = cluster.kill(behind.node_id)
    for number in range(20):
        leader.driver.append([b"%d" % number])
    await cluster.pass_time(100)
    snapshot_id = write_snapshots(leader)

    again = cluster.start(behind.node_id, files)
    await cluster.pass_time(1_000)

    assert [(found.snapshot_id, found.values) for found in again.snapshots] == [
        (snapshot_id, (b"all of it",))
    ]
    assert again.driver.storage.log.state.log_start_offset == snapshot_id.end_offset
    assert again.committed == leader.committed
    assert not [entry.name for entry in again.files.entries(FOLDER) if entry.name.endswith(".part")]

    files = cluster.kill(behind.node_id)
    restarted = cluster.start(behind.node_id, files)
    assert restarted.driver.state.log.last_epoch == snapshot_id.epoch
    leader.driver.append([b"later"])
    await cluster.pass_time(3_000)
    assert restarted.snapshots == [], "it has its own by now"
    assert list(restarted.values.values())[-1] == (b"later",)


def write_snapshots(leader: Node) -> SnapshotId:
    """Write two snapshots at the end of the leader's log, and trim it: a new replica needs the last one."""
    storage = leader.driver.storage
    membership = leader.driver.state.log.membership
    end_offset = storage.end_offset
    for snapshot_id in (
        SnapshotId(end_offset - 1, leader.driver.epoch),
        SnapshotId(end_offset, leader.driver.epoch),
    ):
        storage.write_snapshot(snapshot_id, [b"all of it"], membership, last_timestamp_ms=0, now_ms=0)
    storage.log.trimmer.delete_records(end_offset - 1)
    leader.driver.snapshots_changed()
    return snapshot_id


async def test_a_snapshot_that_arrives_damaged_is_fetched_again(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster((1, 2, 3))
    leader = await cluster.elect()
    behind = next(node for node in cluster.network.nodes.values() if node is not leader)
    files = cluster.kill(behind.node_id)
    for number in range(5):
        leader.driver.append([b"%d" % number])
    await cluster.pass_time(100)
    write_snapshots(leader)
    cluster.network.damage_snapshots = True

    again = cluster.start(behind.node_id, files)
    await cluster.pass_time(300)
    assert again.snapshots == []
    assert again.failures == []
    assert "damaged snapshot" in caplog.text

    cluster.network.damage_snapshots = False
    await cluster.pass_time(2_000)
    assert len(again.snapshots) == 1
    assert again.committed == leader.committed


async def test_a_leader_of_the_past_asks_for_records_when_its_own_are_on_its_disk() -> None:
    cluster = Cluster((1, 2, 3))
    first = await cluster.elect()
    await cluster.pass_time(100)
    cluster.network.cut.add(first.node_id)
    first.free.clear()
    for number in range(10):
        first.driver.append([b"lost %d" % number])
    second = await new_leader(cluster, first)
    second.driver.append([b"one"])
    cluster.network.cut.clear()
    await cluster.pass_time(1_000)
    assert isinstance(first.role, Follower)
    assert len(first.values) == 10, "its Fetch would tell the leader that all of these are on its disk"

    first.free.set()
    await cluster.pass_time(1_000)
    assert first.values == second.values
    assert first.driver.state.log.flushed_offset == second.driver.storage.end_offset


async def new_leader(cluster: Cluster, old: Node) -> Node:
    """Return the leader that the other nodes elect."""
    for _ in range(100):
        await cluster.pass_time(100)
        for node in cluster.network.nodes.values():
            if node is not old and isinstance(node.role, Leader):
                return node
    raise AssertionError("no leader within ten seconds")


async def test_a_leader_that_stops_hands_over_at_once() -> None:
    cluster = Cluster((1, 2, 3))
    leader = await cluster.elect()
    await cluster.pass_time(1_000)
    began_ms = cluster.clock.monotonic_ms()
    stopping = asyncio.ensure_future(leader.driver.hand_over(5_000))
    while not stopping.done():
        await cluster.pass_time(10)
    await stopping
    assert cluster.clock.monotonic_ms() - began_ms <= 100
    assert isinstance(leader.role, Follower)
    assert isinstance(cluster.network.nodes[leader.role.leader_id].role, Leader)
    await leader.driver.close()


async def test_a_replica_that_closes_syncs_what_it_has_and_asks_no_other_any_more() -> None:
    cluster = Cluster((1, 2, 3))
    leader = await cluster.elect()
    follower = next(node for node in cluster.network.nodes.values() if node is not leader)
    follower.free.clear()
    leader.driver.append([b"record"])
    await cluster.pass_time(100)
    syncs = follower.syncs
    closing = asyncio.ensure_future(follower.driver.close())
    await settle()

    follower.free.set()
    await closing

    assert (follower.syncs, follower.failures) == (syncs + 1, [])


async def test_a_leader_whose_disk_fails_answers_its_followers_and_another_leads() -> None:
    cluster = Cluster((1, 2, 3))
    leader = await cluster.elect()
    await cluster.pass_time(100)
    leader.files.fail("sync", errno.EIO, path=".log")
    leader.driver.append([b"one"])
    fetch = leader.driver.request(
        Fetch(leader.driver.epoch, ReplicaKey(-1), leader.driver.storage.end_offset, leader.driver.epoch, 500)
    )
    await settle(50)
    assert [type(error) for error in leader.failures] == [OSError] or len(leader.failures) == 1
    with pytest.raises(KafkaError) as refused:
        await fetch
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (await new_leader(cluster, leader)).driver.epoch > leader.driver.epoch


def test_batches_behind_a_damaged_one_are_fetched_again() -> None:
    first = encode_snapshot([b"a"], VoterSet({1: voter(1)}), last_timestamp_ms=0, now_ms=0)
    whole = fetched_batches(first)
    assert [len(batch.control) for batch in whole] == [3, 0, 1]
    parts = [batch.data for batch in whole if isinstance(batch.data, bytes)]
    assert b"".join(parts) == first
    assert fetched_batches(first[:-1]) == whole[:2], "the last one is cut"
    damaged = bytearray(first)
    damaged[len(parts[0]) + 65] ^= 1
    assert fetched_batches(damaged) == whole[:1]
    assert fetched_batches(None) == fetched_batches(b"") == ()


class HastyClock(VirtualClock):
    """Wakes its callers a millisecond early, by their next look at it, as an event loop may."""

    is_early = False

    def monotonic_ms(self) -> int:
        early, self.is_early = self.is_early, False
        return super().monotonic_ms() - early


async def test_a_deadline_that_passes_while_a_step_is_taken_is_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster([])
    cluster.clock = HastyClock()
    cluster.voters = [2, 3]
    observer = cluster.start(1, formatted())
    asked = []

    async def ask(sender_id: int, send: Send) -> None:
        asked.append(send)

    monkeypatch.setattr(cluster.network, "ask", ask)
    for _ in range(10):
        await settle()
        cluster.clock.is_early = True
        await cluster.clock.pass_time(Settings().retry_backoff_ms)
    assert isinstance(observer.role, Unattached)
    assert len(asked) >= 5

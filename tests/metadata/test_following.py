"""A node that only follows the metadata log: raft host, publisher and snapshotter, and never a controller.

Another node leads and writes; a test copies its batches, as a fetch will, and tells the high watermark.
"""

from __future__ import annotations

import asyncio

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.cluster.records import encode_record
from pykafka_broker.controller.core.events import DeleteTopics, NewTopic
from pykafka_broker.log.partition.producers import AppendOrigin
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.metadata.publisher import MetadataPublisher
from pykafka_broker.metadata.raft_host import RaftHost
from pykafka_broker.metadata.snapshotter import SnapshotSettings, Snapshotter
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.raft.core.log_view import SnapshotId
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter
from pykafka_broker.raft.driver import DriverPorts
from pykafka_broker.raft.storage import RaftStorage, StoredSnapshot
from pykafka_broker.testing.clock import VirtualClock, settle
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.support.metadata import FOLDER, VERSION, Node, Worker, open_metadata_log

OWN = Voter(ReplicaKey(2, b"2" * 16), {})


class Follower:
    """A replica on a node that is no voter."""

    def __init__(self, files: MemoryFiles | None = None, *, bytes_between_snapshots: int = 1 << 20) -> None:
        if files is None:
            files = MemoryFiles()
            files.make_directory(FOLDER)
        self.files = files
        self.failures: list[Exception] = []
        self.worker = Worker()
        self.log = open_metadata_log(files, segment_bytes=2_048)
        self.storage = RaftStorage(files, self.log)
        self.publisher = MetadataPublisher("cluster")
        clock = VirtualClock()
        timers = WallTimers(clock)
        self.host = RaftHost(
            self.storage,
            OWN,
            self.publisher,
            None,
            DriverPorts(clock, self.worker.run, lambda: 0.0),
            on_failure=self.failures.append,
        )
        self.snapshotter = Snapshotter(
            self.storage,
            lambda _offset: self.storage.load().view.membership,
            timers,
            on_change=lambda: None,
            run_blocking=self.worker.run,
            settings=SnapshotSettings(bytes_between_snapshots=bytes_between_snapshots),
        )
        self.publisher.watch(self.snapshotter.on_published)
        self.host.load()

    @property
    def image(self) -> ClusterImage:
        return self.publisher.image

    def fetch(self, leader: Node) -> None:
        """Copy what the leader's log has and this one has not."""
        while self.log.state.log_end_offset < leader.log.state.log_end_offset:
            data = leader.log.reader.plan_read(self.log.state.log_end_offset, 1 << 20, limit="log_end").read()
            self.log.writer.append(data, leader_epoch=1, now_ms=0, origin=AppendOrigin.REPLICATION)
            self.storage.bytes_since_snapshot += len(data)

    def commit(self, offset: int) -> None:
        """Learn from the leader that everything below `offset` is committed."""
        self.log.state.advance_high_watermark(min(offset, self.log.state.log_end_offset))
        self.host.on_commit(offset)


def same_cluster(image: ClusterImage) -> ClusterImage:
    """An image without the id of the cluster, which is not in the log."""
    return image._replace(cluster_id="")


async def a_leader() -> Node:
    leader = Node()
    controller = await leader.start()
    for number in range(5):
        await leader.create_topics(NewTopic(f"t{number}", configs=(("retention.ms", "5"),)))
    await controller.ask(DeleteTopics((("t3", bytes(16)),)))
    return leader


async def test_a_follower_shows_what_another_node_has_led_and_committed() -> None:
    leader = await a_leader()
    follower = Follower()
    seen = []
    follower.publisher.subscribe(lambda old, new: seen.append((old.offset, new.offset)))

    follower.fetch(leader)
    follower.commit(leader.log.state.log_end_offset)

    assert same_cluster(follower.image) == same_cluster(leader.image)
    assert sorted(follower.image.topics) == ["t0", "t1", "t2", "t4"]
    offsets = [new for _, new in seen]
    assert offsets == sorted(offsets), "in the order of the log"
    assert [old for old, _ in seen] == [-1, *offsets[:-1]], "each after the one before it"


async def test_a_follower_has_caught_up_without_what_is_not_committed_yet() -> None:
    leader = await a_leader()
    committed = leader.log.state.log_end_offset
    await leader.create_topics(NewTopic("later"))
    follower = Follower()
    follower.fetch(leader)
    caught_up = asyncio.ensure_future(follower.publisher.caught_up())
    await settle()
    assert not caught_up.done(), "no leader has said how far the quorum has committed"

    follower.commit(committed)
    await caught_up

    assert follower.publisher.published_offset == committed < follower.log.state.log_end_offset


async def test_what_is_not_committed_is_not_shown() -> None:
    leader = await a_leader()
    committed, image = leader.log.state.log_end_offset, leader.image
    await leader.create_topics(NewTopic("later"))
    follower = Follower()
    follower.fetch(leader)
    assert follower.image.topics == {}

    follower.commit(committed)
    assert same_cluster(follower.image) == same_cluster(image)

    follower.commit(leader.log.state.log_end_offset)
    assert same_cluster(follower.image) == same_cluster(leader.image)


async def test_the_high_watermark_moves_batch_by_batch_or_by_many_and_the_image_is_the_same() -> None:
    leader = await a_leader()
    at_once, step_by_step = Follower(), Follower()
    for follower in (at_once, step_by_step):
        follower.fetch(leader)
    at_once.commit(leader.log.state.log_end_offset)
    for offset in range(leader.log.state.log_end_offset + 1):
        step_by_step.commit(offset)
    assert step_by_step.image == at_once.image


async def test_a_metadata_transaction_of_the_leader_shows_all_at_once() -> None:
    leader = await a_leader()
    topic = m.TopicRecord(name="atomic", topic_id=b"a" * 16)
    follower = Follower()
    for records in ([m.BeginTransactionRecord(name="both")], [topic], [m.EndTransactionRecord()]):
        leader.replica.host.append(records, VERSION)
        await settle()
        follower.fetch(leader)
        follower.commit(leader.log.state.log_end_offset)
        is_over = isinstance(records[0], m.EndTransactionRecord)
        assert ("atomic" in follower.image.topics) == is_over


async def test_what_takes_long_to_prepare_for_holds_newer_images_back() -> None:
    leader = await a_leader()
    follower = Follower()
    follower.fetch(leader)
    follower.commit(leader.log.state.log_end_offset)
    gate = asyncio.Event()

    async def prepare() -> None:
        await gate.wait()

    follower.publisher.prepare_with(lambda image: prepare() if "slow" in image.topics else None)

    offsets = []
    for name in ("slow", "quick"):
        await leader.create_topics(NewTopic(name))
        follower.fetch(leader)
        follower.commit(leader.log.state.log_end_offset)
        offsets.append(leader.log.state.log_end_offset)
    shown = asyncio.ensure_future(follower.publisher.published(offsets[1]))
    await settle()
    assert "slow" not in follower.image.topics
    assert "quick" not in follower.image.topics
    assert not shown.done()

    gate.set()
    await shown
    assert {"slow", "quick"} <= follower.image.topics.keys()


async def test_a_follower_writes_snapshots_of_its_own_and_starts_from_them() -> None:
    leader = Node()
    await leader.start()
    follower = Follower(bytes_between_snapshots=4_000)
    for number in range(60):
        await leader.create_topics(NewTopic(f"t{number}"))
        follower.fetch(leader)
        follower.commit(leader.log.state.log_end_offset)
        await settle()
    await follower.snapshotter.close(follower.image)
    newest = max(follower.storage.snapshots())
    assert newest.end_offset > 0
    assert follower.log.state.log_start_offset > 0, "the log before the last snapshot but one is gone"

    after = Follower(follower.files.killed())

    assert after.image == ClusterImage("cluster"), "what is committed is not known yet"
    assert after.publisher.replayed_image.offset == newest.end_offset - 1
    after.fetch(leader)
    after.commit(leader.log.state.log_end_offset)
    assert after.image.topics == leader.image.topics


async def test_a_committed_record_that_contradicts_the_others_stops_the_node() -> None:
    leader = await a_leader()
    again = m.TopicRecord(name="t0", topic_id=b"x" * 16)
    leader.storage.append_metadata([encode_record(again, VERSION)], epoch=1, now_ms=0)
    follower = Follower()
    follower.fetch(leader)
    follower.commit(leader.log.state.log_end_offset)
    assert [str(error) for error in follower.failures] == ["topic t0 is created a second time"]
    assert same_cluster(follower.image) == same_cluster(leader.image), "what came before is shown"

    shown = follower.image
    await leader.create_topics(NewTopic("later"))
    follower.fetch(leader)
    follower.commit(leader.log.state.log_end_offset)
    assert follower.image is shown, (
        "an image that lacks a record may lack a topic, whose logs would be deleted"
    )


async def test_a_received_snapshot_that_is_not_understood_stops_the_node_and_shows_nothing() -> None:
    leader = await a_leader()
    follower = Follower()
    follower.fetch(leader)
    follower.commit(leader.log.state.log_end_offset)
    shown = follower.image
    end_offset = leader.log.state.log_end_offset
    unknown = StoredSnapshot(SnapshotId(end_offset, 1), (b"\x01\x63\x00\x00",))

    follower.host.on_snapshot(unknown)
    await leader.create_topics(NewTopic("later"))
    follower.fetch(leader)
    follower.commit(leader.log.state.log_end_offset)

    assert [str(error) for error in follower.failures] == ["metadata record type 99 is unknown"]
    assert follower.image is shown


async def test_a_record_of_a_later_version_stops_the_node() -> None:
    leader = await a_leader()
    leader.storage.append_metadata([b"\x01\x63\x00\x00"], epoch=1, now_ms=0)
    follower = Follower()
    follower.fetch(leader)
    follower.commit(leader.log.state.log_end_offset)
    assert [str(error) for error in follower.failures] == ["metadata record type 99 is unknown"]

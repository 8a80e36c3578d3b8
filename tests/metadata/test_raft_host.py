"""The raft host: what it hands over, decoded or as it was given, and when it tells of leadership."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from pykafka_broker.cluster.records import encode_record
from pykafka_broker.metadata.batch import MetadataBatch
from pykafka_broker.metadata.log_leadership import LeaderLog
from pykafka_broker.metadata.raft_host import RaftHost
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.raft.core.log_view import BOOTSTRAP_SNAPSHOT, Membership, SnapshotId
from pykafka_broker.raft.core.messages import Answer, Current, Vote, VoteAnswer
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter, VoterSet
from pykafka_broker.raft.core.roles import Follower
from pykafka_broker.raft.core.settings import DEFAULTS
from pykafka_broker.raft.core.state import Send
from pykafka_broker.raft.driver import DriverPorts, OtherVotersError, Peers
from pykafka_broker.raft.snapshots import encode_snapshot
from pykafka_broker.raft.storage import RaftStorage
from pykafka_broker.testing.clock import VirtualClock, settle
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.support.metadata import ENDPOINTS, FOLDER, VERSION, Worker, open_metadata_log

LOCAL = Voter(ReplicaKey(1, b"d" * 16), ENDPOINTS)
TOPICS = [m.TopicRecord(name=f"t{number}", topic_id=bytes([number]) * 16) for number in range(9)]


class Story:
    """The listener of a host and its leadership: keeps what it is told, in order."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        #: Each with what was told before it.
        self.high_watermarks: list[tuple[int, object]] = []

    def start_over(self, snapshot_id: SnapshotId, records: Iterable[object]) -> None:
        self.told.append(("snapshot", snapshot_id, list(records)))

    def replay(self, batch: MetadataBatch) -> None:
        self.told.append(("replay", batch))

    def commit(self, batch: MetadataBatch) -> None:
        self.told.append(("commit", batch))

    def high_watermark_moved(self, high_watermark: int) -> None:
        self.high_watermarks.append((high_watermark, self.told[-1]))

    def prepare(self) -> None:
        self.told.append("prepare")

    def begin(self, log: LeaderLog) -> None:
        self.told.append(("begin", log.epoch, log.end_offset))

    def end(self, error: KafkaError) -> None:
        self.told.append(("end", error.code))


class Hosted:
    """A host over files in memory, which its `story` listens to."""

    def __init__(
        self, files: MemoryFiles, clock: VirtualClock | None = None, peers: Peers | None = None
    ) -> None:
        self.files = files
        self.failures: list[Exception] = []
        self.worker = Worker()
        self.story = Story()
        self.log = open_metadata_log(files)
        self.storage = RaftStorage(files, self.log)
        self.host = RaftHost(
            self.storage,
            LOCAL,
            self.story,
            self.story,
            DriverPorts(clock or VirtualClock(), self.worker.run, lambda: 0.0, peers),
            on_failure=self.failures.append,
        )

    async def start(self) -> Hosted:
        self.host.load()
        self.host.boot()
        await settle()
        return self


class Voters:
    """The other voters: they give their votes, and answer nothing else."""

    def send(self, send: Send, answered: Callable[[Answer | None], None]) -> None:
        if isinstance(send.request, Vote):
            answer = VoteAnswer(ErrorCode.NONE, Current(send.request.epoch), granted=True)
            asyncio.get_running_loop().call_soon(answered, answer)

    async def close(self) -> None:
        """Nothing is on its way."""


class PausedClock(VirtualClock):
    """The clock of a process that is stopped for a while: time has passed, and no timer has run yet."""

    paused_ms = 0

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self.paused_ms


OTHERS = tuple(Voter(ReplicaKey(n, bytes([n]) * 16), ENDPOINTS) for n in (2, 3))


async def leading_others() -> tuple[Hosted, PausedClock]:
    """The leader of three voters, and its clock."""
    clock = PausedClock()
    hosted = await Hosted(formatted(*OTHERS), clock, Voters()).start()
    await clock.pass_time(DEFAULTS.election_timeout_ms)
    assert hosted.story.told == ["prepare", ("begin", 1, 3)]
    return hosted, clock


def formatted(*others: Voter) -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory(FOLDER)
    voters = VoterSet({voter.key.node_id: voter for voter in (LOCAL, *others)})
    first = encode_snapshot((), voters, last_timestamp_ms=0, now_ms=0)
    files.replace_file(f"{FOLDER}/{BOOTSTRAP_SNAPSHOT.file_name}", first, sync=True)
    files.sync_directory("/data")
    return files


async def test_a_quorum_of_one_hands_over_its_log_leads_and_then_commits() -> None:
    first = await Hosted(formatted()).start()
    first.host.append(TOPICS[:2], VERSION)
    await first.host.close()

    again = await Hosted(first.files.killed()).start()

    assert again.story.told == [
        ("replay", MetadataBatch(0, 3, 1)),
        ("replay", MetadataBatch(3, 5, 1, tuple(TOPICS[:2]))),
        "prepare",
        ("begin", 2, 6),
        ("commit", MetadataBatch(5, 6, 2)),
    ]


async def test_a_host_that_has_not_booted_knows_nothing_when_clients_ask_already() -> None:
    hosted = Hosted(formatted())
    assert hosted.host.kraft_version == 0
    assert hosted.host.current == Current(0)
    with pytest.raises(KafkaError) as refused:
        hosted.host.describe_quorum()
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_what_this_node_leads_is_handed_over_as_it_was_given_and_only_after_the_commit() -> None:
    hosted = await Hosted(formatted()).start()
    hosted.worker.free.clear()
    records = (TOPICS[0], TOPICS[1])
    assert hosted.host.append(records, VERSION) == 5
    await settle()
    assert hosted.story.told[-1] == ("commit", MetadataBatch(0, 3, 1)), "not committed yet"

    hosted.worker.free.set()
    await hosted.host.close()

    what, batch = hosted.story.told[-1]
    assert (what, batch) == ("commit", MetadataBatch(3, 5, 1, records))
    assert batch.records is records, "not decoded again"


async def test_the_high_watermark_is_told_after_the_batches_below_it() -> None:
    hosted = await Hosted(formatted()).start()
    hosted.host.append(TOPICS[:1], VERSION)
    await hosted.host.close()
    assert hosted.story.high_watermarks == [
        (3, ("commit", MetadataBatch(0, 3, 1))),
        (4, ("commit", MetadataBatch(3, 4, 1, TOPICS[:1]))),
    ]


async def test_what_was_not_given_to_this_host_is_read_from_the_log_in_its_place() -> None:
    hosted = await Hosted(formatted()).start()
    hosted.worker.free.clear()
    hosted.host.append((TOPICS[0],), VERSION)
    hosted.storage.append_metadata([encode_record(TOPICS[1], VERSION)], epoch=1, now_ms=0)
    hosted.host.append((TOPICS[2],), VERSION)
    hosted.worker.free.set()
    await hosted.host.close()
    assert [(b.base_offset, *b.records) for _, b in hosted.story.told[-3:]] == [
        (3, TOPICS[0]),
        (4, TOPICS[1]),
        (5, TOPICS[2]),
    ]


async def test_a_decision_of_many_batches_is_handed_over_as_one() -> None:
    hosted = await Hosted(formatted()).start()
    records = tuple(m.NoOpRecord() for _ in range(25_000))
    assert hosted.host.append(records, VERSION) == 25_003
    await hosted.host.close()
    assert hosted.story.told[-1] == ("commit", MetadataBatch(3, 25_003, 1, records))
    in_log = [batch.next_offset - batch.base_offset for batch in hosted.storage.read(3, 25_003)]
    assert in_log == [10_000, 10_000, 5_000]


@pytest.mark.parametrize("records", [TOPICS[:1], TOPICS[:1] * 25_000], ids=["a batch", "many batches"])
async def test_records_that_a_leader_appends_after_its_time_are_not_handed_over(
    records: list[object],
) -> None:
    """They were once, in the place of those of the next leader, where the process had been stopped."""
    hosted, clock = await leading_others()
    clock.paused_ms = DEFAULTS.check_quorum_timeout_ms
    assert hosted.host.append(records, VERSION) == 3 + len(records)
    assert hosted.story.told[-1] == ("begin", 1, 3), "who appends has not been told the end meanwhile"
    await settle()
    assert hosted.story.told[-1] == ("end", ErrorCode.NOT_CONTROLLER)
    assert hosted.failures == []

    hosted.storage.truncate(3)
    hosted.storage.append_metadata([encode_record(TOPICS[1], VERSION)], epoch=2, now_ms=0)
    hosted.host.on_commit(4)
    assert hosted.story.told[-1] == ("commit", MetadataBatch(3, 4, 2, (TOPICS[1],)))
    await hosted.host.close()


async def test_records_of_a_leader_that_stops_are_not_handed_over_in_the_place_of_its_successors() -> None:
    hosted, _ = await leading_others()
    assert hosted.host.append(TOPICS[:1], VERSION) == 4
    hosted.host.resign(KafkaError(ErrorCode.NOT_CONTROLLER))
    await hosted.host.hand_over(timeout_ms=0)

    hosted.storage.truncate(3)
    hosted.storage.append_metadata([encode_record(TOPICS[1], VERSION)], epoch=2, now_ms=0)
    hosted.host.on_commit(4)
    assert hosted.story.told[-1] == ("commit", MetadataBatch(3, 4, 2, (TOPICS[1],)))
    await hosted.host.close()


async def test_half_of_a_decision_in_the_log_stops_the_node() -> None:
    hosted = await Hosted(formatted()).start()
    hosted.files.free_bytes = 150_000
    with pytest.raises(KafkaError):
        hosted.host.append([m.NoOpRecord()] * 25_000, VERSION)
    assert len(hosted.failures) == 1
    assert hosted.story.told[-1] == ("end", ErrorCode.KAFKA_STORAGE_ERROR)


async def test_nothing_but_the_snapshot_is_handed_over_while_the_commit_is_not_known() -> None:
    alone = await Hosted(formatted()).start()
    alone.host.append(TOPICS[:3], VERSION)
    await alone.host.close()
    voters = VoterSet({1: LOCAL, 2: Voter(ReplicaKey(2, b"e" * 16), ENDPOINTS)})
    values = [encode_record(record, VERSION) for record in TOPICS[:2]]
    alone.storage.write_snapshot(SnapshotId(6, 1), values, Membership(voters), last_timestamp_ms=0, now_ms=0)
    alone.host.append(TOPICS[3:5], VERSION)
    await alone.host.close()

    one_of_two = Hosted(alone.files.killed())
    one_of_two.host.load()

    assert one_of_two.story.told == [("snapshot", SnapshotId(6, 1), TOPICS[:2])]
    with pytest.raises(OtherVotersError):
        one_of_two.host.boot()


async def test_a_host_that_resigns_still_hands_over_what_is_committed() -> None:
    hosted = await Hosted(formatted()).start()
    hosted.worker.free.clear()
    hosted.host.append((TOPICS[0],), VERSION)
    hosted.host.resign(KafkaError(ErrorCode.NOT_CONTROLLER))
    hosted.worker.free.set()
    await hosted.host.close()
    assert hosted.story.told[-2:] == [
        ("end", ErrorCode.NOT_CONTROLLER),
        ("commit", MetadataBatch(3, 4, 1, (TOPICS[0],))),
    ]


async def test_a_disk_that_loses_a_sync_ends_the_leadership_and_commits_nothing() -> None:
    hosted = await Hosted(formatted()).start()
    before = list(hosted.story.told)
    hosted.files.fail("sync", errno.EIO, path=".log")
    hosted.host.append((TOPICS[0],), VERSION)
    await hosted.host.close()
    assert hosted.story.told == [*before, ("end", ErrorCode.KAFKA_STORAGE_ERROR)]
    assert len(hosted.failures) == 1


async def test_a_node_that_has_lost_the_leadership_is_told_so_and_goes_on_from_what_the_log_says() -> None:
    hosted = await Hosted(formatted()).start()
    hosted.worker.free.clear()
    hosted.host.append((TOPICS[0],), VERSION)
    # Elections among several voters are not served yet, so no event of raft's core takes the lead away.
    state = hosted.host._driver.state
    hosted.host._driver._state = state._replace(role=Follower(2, leader_id=2, endpoints={}))

    hosted.host.on_commit(4)

    commit, end = hosted.story.told[-2:]
    assert commit == ("commit", MetadataBatch(3, 4, 1, (TOPICS[0],)))
    assert end == ("end", ErrorCode.NOT_CONTROLLER)
    hosted.storage.append_metadata([encode_record(TOPICS[1], VERSION)], epoch=2, now_ms=0)
    hosted.host.on_commit(5)
    assert hosted.story.told[-1] == ("commit", MetadataBatch(4, 5, 2, (TOPICS[1],)))
    with pytest.raises(KafkaError) as refused:
        hosted.host.append((TOPICS[2],), VERSION)
    assert refused.value.code is ErrorCode.NOT_CONTROLLER
    hosted.worker.free.set()
    await hosted.host.close()

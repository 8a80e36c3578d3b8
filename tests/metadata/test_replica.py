"""The parts of a metadata replica together: start, stop, a broken disk."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from functools import partial
from itertools import cycle

import pytest

from pykafka_broker.cluster.records import encode_record
from pykafka_broker.controller.core.events import (
    CreateTopicResult,
    NewTopic,
)
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.metadata.publisher import MetadataPublisher
from pykafka_broker.metadata.replica import (
    WAIT_LOGGED_AFTER_MS,
    WAIT_LOGGED_EVERY_MS,
    MetadataReplica,
    ReplicaPorts,
)
from pykafka_broker.metadata.snapshotter import SnapshotSettings
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records.metadata import NoOpRecord
from pykafka_broker.raft.core.log_view import Batch
from pykafka_broker.raft.core.messages import Answer, Current, Fetch, FetchAnswer, Refused, Vote, VoteAnswer
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter, VoterSet
from pykafka_broker.raft.core.settings import Settings
from pykafka_broker.raft.core.state import Send
from pykafka_broker.raft.driver import DriverPorts
from pykafka_broker.raft.format import NewNode, format_storage
from pykafka_broker.raft.quorum_lines import MEANWHILE, REMEDY
from pykafka_broker.raft.storage import RaftStorage
from pykafka_broker.testing.clock import VirtualClock, VirtualTimer
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.support.metadata import DATA, FOLDER, VERSION, Node, Worker, open_metadata_log

VOTERS = {
    node_id: Voter(ReplicaKey(node_id, bytes([node_id]) * 16), {"CONTROLLER": ("here", 9000 + node_id)})
    for node_id in (1, 2, 3)
}


def first_batch() -> Batch:
    """What the leader of epoch 1 has appended."""
    files = MemoryFiles()
    files.make_directory(FOLDER)
    log = open_metadata_log(files)
    RaftStorage(files, log).append_metadata([encode_record(NoOpRecord(), VERSION)], epoch=1, now_ms=0)
    data = log.reader.plan_read(0, 1 << 20, limit="log_end").read()
    return Batch(0, log.state.log_end_offset, 1, data=data)


class Others:
    """The other nodes: one may lead, some answer, some refuse, and the rest is silent."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.answering: set[int] = set()
        self.refusing: set[int] = set()
        self.current = Current(0)
        self.batch = first_batch()
        self.parked: list[VirtualTimer] = []

    def elect(self, leader_id: int | None) -> None:
        """Let another node lead the next epoch; None: the leader resigns."""
        epoch = self.current.epoch + (leader_id is not None)
        self.current = Current(epoch, leader_id, VOTERS[leader_id].endpoints if leader_id else {})

    def send(self, send: Send, answered: Callable[[Answer | None], None]) -> None:
        port = send.to.address[1]
        answer: Answer
        if port in self.refusing:
            answer = Refused()
        elif port not in self.answering:
            return
        elif isinstance(send.request, Vote):
            answer = VoteAnswer(ErrorCode.NONE, self.current, granted=False)
        else:
            assert isinstance(send.request, Fetch)
            if self.current.leader_id == port - 9000:
                at_ms = self.clock.monotonic_ms() + send.request.max_wait_ms
                self.parked.append(self.clock.call_at(at_ms, partial(self.unpark, send, answered)))
                return
            answer = FetchAnswer(ErrorCode.NOT_LEADER_OR_FOLLOWER, self.current)
        asyncio.get_running_loop().call_soon(answered, answer)

    def unpark(self, send: Send, answered: Callable[[Answer | None], None]) -> None:
        """Answer a fetch: all that the leader has is committed."""
        port = send.to.address[1]
        if port in self.refusing or self.current.leader_id != port - 9000:
            answered(None)
        else:
            assert isinstance(send.request, Fetch)
            new = (self.batch,) if send.request.offset == 0 else ()
            answered(FetchAnswer(ErrorCode.NONE, self.current, high_watermark=1, batches=new))

    async def close(self) -> None:
        for timer in self.parked:
            timer.cancel()


@pytest.fixture
def others(clock: VirtualClock) -> Others:
    return Others(clock)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def waiting(
    others: Others, clock: VirtualClock, node_id: int, *, knows_voters: bool = True
) -> MetadataReplica:
    """A replica of a quorum of three that has not started yet; node 4 votes in none."""
    files = MemoryFiles()
    new = NewNode(node_id, (), None, "cluster", VoterSet(VOTERS) if knows_voters else None)
    format_storage(files, [DATA], new, now_ms=0)
    own = VOTERS.get(node_id, Voter(ReplicaKey(node_id, b"4" * 16), {}))
    chances = cycle((0.0, 0.4, 0.8))
    bootstrap = tuple(voter.endpoints["CONTROLLER"] for voter in VOTERS.values())
    return MetadataReplica(
        RaftStorage(files, open_metadata_log(files)),
        own,
        MetadataPublisher("cluster"),
        ReplicaPorts(
            WallTimers(clock),
            DriverPorts(clock, Worker().run, partial(next, chances), others),
            lambda error: None,
        ),
        leadership=None,
        snapshots=SnapshotSettings(),
        settings=Settings(bootstrap=bootstrap, may_vote=node_id in VOTERS),
    )


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines about waits; those about a leader that does not answer from the time on."""
    loggers = ("org.apache.kafka.image.loader.MetadataLoader", "org.apache.kafka.raft.KafkaRaftClient")
    told = [one.getMessage() for one in caplog.records if one.name in loggers]
    caplog.clear()
    return [text.partition("No controller that leads has answered for ")[2] or text for text in told]


def leaderless(seconds: int, known: str, silent: str) -> str:
    return f"{seconds} s. Of the others ({known}) these do not answer: {silent}. {REMEDY}"


def all_answered(known: str) -> str:
    return f"All others ({known}) answered when they were last asked, and none of them leads. {REMEDY}"


@pytest.mark.parametrize(
    ("node_id", "known", "second", "third"),
    [
        (1, "2@here:9002, 3@here:9003", "2@here:9002", "3@here:9003"),
        (4, "here:9001, here:9002, here:9003", "here:9002", "here:9001, here:9003"),
    ],
    ids=["a voter", "a broker with an empty log"],
)
async def test_a_node_that_waits_for_a_leader_says_who_does_not_answer(
    others: Others,
    clock: VirtualClock,
    caplog: pytest.LogCaptureFixture,
    node_id: int,
    known: str,
    second: str,
    third: str,
) -> None:
    others.refusing = {9001, 9002}
    replica = waiting(others, clock, node_id, knows_voters=node_id in VOTERS)
    starting = asyncio.ensure_future(replica.start())
    await clock.pass_time(WAIT_LOGGED_AFTER_MS - 1)
    assert lines(caplog) == []
    await clock.pass_time(1)
    assert lines(caplog) == [leaderless(5, known, known)]

    others.answering, others.refusing = {9002}, {9001}
    await clock.pass_time(WAIT_LOGGED_EVERY_MS)
    assert lines(caplog) == [leaderless(65, known, third)]
    others.answering, others.refusing = {9001, 9003}, {9002}
    await clock.pass_time(WAIT_LOGGED_EVERY_MS)
    assert lines(caplog) == [leaderless(125, known, second)]
    others.answering = {9001, 9002, 9003}
    others.refusing.clear()
    await clock.pass_time(WAIT_LOGGED_EVERY_MS)
    assert lines(caplog) == [f"185 s. {all_answered(known)}"]
    await clock.pass_time(WAIT_LOGGED_EVERY_MS - 3_000)
    others.answering, others.refusing = {9002}, {9001, 9003}
    await clock.pass_time(3_000)
    assert lines(caplog) == [leaderless(245, known, third)], "they answered less than 5 s ago"
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    await replica.close()
    assert clock.pending_timers == 0


@pytest.mark.parametrize(
    ("node_id", "known"),
    [(1, "2@here:9002, 3@here:9003"), (4, "1@here:9001, 2@here:9002, 3@here:9003")],
    ids=["a voter", "a broker"],
)
async def test_a_node_whose_leader_is_gone_says_so_until_one_leads_again(
    others: Others, clock: VirtualClock, caplog: pytest.LogCaptureFixture, node_id: int, known: str
) -> None:
    caplog.set_level("INFO")
    others.answering = {9001, 9002, 9003}
    others.elect(2)
    replica = waiting(others, clock, node_id)
    starting = asyncio.ensure_future(replica.start())
    await clock.pass_time(2_000)
    await starting
    for leader_id in (3, 2):  # elections, however often, are no news here
        others.elect(None)
        await clock.pass_time(3_000)
        others.elect(leader_id)
        await clock.pass_time(2_000)
    assert lines(caplog) == []

    # The quorum is lost. A voter goes from role to role from now on.
    others.answering.discard(9002)
    others.refusing = {9002}
    others.elect(None)
    await clock.pass_time(WAIT_LOGGED_AFTER_MS)
    assert lines(caplog) == []
    await clock.pass_time(1_000)
    assert lines(caplog) == [f"{leaderless(5, known, '2@here:9002')} {MEANWHILE}"]
    await clock.pass_time(WAIT_LOGGED_EVERY_MS - 1_000)
    assert lines(caplog) == []
    await clock.pass_time(1_000)
    assert lines(caplog) == [f"{leaderless(65, known, '2@here:9002')} {MEANWHILE}"]

    others.elect(3)
    await clock.pass_time(WAIT_LOGGED_EVERY_MS)
    told = f"[RaftManager id={node_id}] The wait is over: node 3 leads the quorum in epoch 4."
    assert lines(caplog) == [told]
    await replica.close()
    assert clock.pending_timers == 0


async def test_after_close_nothing_is_begun() -> None:
    node = Node()
    await node.start()
    await node.close()
    assert await node.create_topics(NewTopic("orders")) == (
        CreateTopicResult("orders", ErrorCode.NOT_CONTROLLER, "The controller is shutting down."),
    )


async def test_a_disk_that_fails_answers_all_who_wait_and_tells_the_node() -> None:
    node = Node()
    await node.start()
    node.files.fail("sync", errno.EIO, path=".log")

    [result] = await node.create_topics(NewTopic("orders"))

    assert result.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert len(node.failures) == 1
    assert not node.image.topics


async def test_a_disk_that_fails_at_the_start_stops_the_start() -> None:
    node = Node()
    node.files.fail("sync", errno.EIO, path=".log")
    with pytest.raises(KafkaError):
        await node.replica.start()

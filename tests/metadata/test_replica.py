"""The parts of a metadata replica together: start, stop, a broken disk."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from functools import partial
from itertools import cycle

import pytest

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
from pykafka_broker.raft.core.messages import Answer, Current, FetchAnswer, Refused, Vote, VoteAnswer
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter, VoterSet
from pykafka_broker.raft.core.settings import Settings
from pykafka_broker.raft.core.state import Send
from pykafka_broker.raft.driver import DriverPorts
from pykafka_broker.raft.format import NewNode, format_storage
from pykafka_broker.raft.storage import RaftStorage
from pykafka_broker.testing.clock import VirtualClock
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.support.metadata import DATA, Node, Worker, open_metadata_log

VOTERS = {
    node_id: Voter(ReplicaKey(node_id, bytes([node_id]) * 16), {"CONTROLLER": ("here", 9000 + node_id)})
    for node_id in (1, 2, 3)
}


class Others:
    """The other nodes: some answer that none leads, some refuse, and the rest is silent."""

    def __init__(self) -> None:
        self.answering: set[int] = set()
        self.refusing: set[int] = set()

    def send(self, send: Send, answered: Callable[[Answer | None], None]) -> None:
        port = send.to.address[1]
        answer: Answer
        if port in self.refusing:
            answer = Refused()
        elif port not in self.answering:
            return
        elif isinstance(send.request, Vote):
            answer = VoteAnswer(ErrorCode.NONE, Current(0), granted=False)
        else:
            answer = FetchAnswer(ErrorCode.NOT_LEADER_OR_FOLLOWER, Current(0))
        asyncio.get_running_loop().call_soon(answered, answer)

    async def close(self) -> None: ...


@pytest.fixture
def others() -> Others:
    return Others()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def waiting(others: Others, clock: VirtualClock, node_id: int) -> MetadataReplica:
    """A replica of a quorum of three that has not started yet; node 4 votes in none."""
    files = MemoryFiles()
    new = NewNode(node_id, (), None, "cluster", VoterSet(VOTERS) if node_id in VOTERS else None)
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
    """The lines about the wait, without their common beginning."""
    told = [one for one in caplog.records if one.name == "org.apache.kafka.image.loader.MetadataLoader"]
    caplog.clear()
    return [one.getMessage().partition("No controller leads: ")[2] for one in told]


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
    replica = waiting(others, clock, node_id)
    starting = asyncio.ensure_future(replica.start())
    await clock.pass_time(WAIT_LOGGED_AFTER_MS - 1)
    assert lines(caplog) == []
    await clock.pass_time(1)
    way = "More than half of the voters must run, and reach each other."
    silent = f"of the others ({known}) these have not answered for 5 s: "
    assert lines(caplog) == [f"{silent}{known}. {way}"]

    others.answering, others.refusing = {9002}, {9001}
    await clock.pass_time(WAIT_LOGGED_EVERY_MS)
    assert lines(caplog) == [f"{silent}{third}. {way}"]
    others.answering, others.refusing = {9001, 9003}, {9002}
    await clock.pass_time(WAIT_LOGGED_EVERY_MS)
    assert lines(caplog) == [f"{silent}{second}. {way}"]
    others.answering = {9001, 9002, 9003}
    others.refusing.clear()
    await clock.pass_time(WAIT_LOGGED_EVERY_MS)
    assert lines(caplog) == [f"all others ({known}) answer, and none of them leads. {way}"]
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
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

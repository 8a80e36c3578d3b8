"""The connections of a replica to the others, against a node's listener of controllers and against worse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pykafka_broker.machine.clock import Clock, SystemClock
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.messages import (
    Answer,
    AskVersions,
    Destination,
    Refused,
    Request,
    Versions,
    Vote,
    VoteAnswer,
)
from pykafka_broker.raft.core.quorum import ReplicaKey
from pykafka_broker.raft.core.state import Send
from pykafka_broker.raft.quorum_peers import PeerSettings, QuorumPeers
from pykafka_broker.raft.wire.common import Scope
from pykafka_broker.testing.clock import VirtualClock
from pykafka_broker.testing.home import until
from tests.support.controllers import combined_home, controller_address

CANDIDATE = ReplicaKey(7, b"7" * 16)
TIMEOUT_MS = 60_000
VOTE = Vote(0, CANDIDATE, None, 0, 0)


@asynccontextmanager
async def peers_of(cluster_id: str, clock: Clock | None = None) -> AsyncIterator[QuorumPeers]:
    peers = QuorumPeers(
        PeerSettings(7, Scope(cluster_id), request_timeout_ms=TIMEOUT_MS), clock or SystemClock()
    )
    try:
        yield peers
    finally:
        await peers.close()


async def ask(peers: QuorumPeers, address: str, request: Request) -> Answer | None:
    host, _, port = address.rpartition(":")
    answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
    peers.send(Send(Destination(1, (host, int(port))), 1, request), answer.set_result)
    return await answer


async def test_requests_are_answered_one_after_the_other_over_one_connection() -> None:
    home = combined_home()
    async with home.running():
        node = home.broker.node
        address = controller_address(home.broker)
        async with peers_of(node.image.cluster_id) as peers:
            assert await ask(peers, address, AskVersions()) == Versions(ErrorCode.NONE, (0, 1))
            answer = await ask(peers, address, VOTE)
            assert isinstance(answer, VoteAnswer)
            assert (answer.granted, answer.current.leader_id) == (False, 1)
            # That of these peers, and that of the home's user.
            assert len(node.listeners.shared.connections) == 2


async def test_a_node_of_another_cluster_gives_no_answer() -> None:
    home = combined_home()
    async with home.running(), peers_of("another cluster") as peers:
        assert await ask(peers, controller_address(home.broker), VOTE) is None


@pytest.mark.parametrize("address", ["a..b:9093", f"{'a' * 64}:9093", "a\0b:9093", "127.0.0.1:70000"])
async def test_there_is_no_answer_of_what_cannot_be_an_address(address: str) -> None:
    async with peers_of("4L6g3nShT-eMCtK--X86sw") as peers:
        for _ in range(2):
            assert await ask(peers, address, VOTE) is None


async def test_a_request_is_refused_where_nothing_listens_and_answered_when_something_does_again() -> None:
    home = combined_home()
    async with home.running():
        address = controller_address(home.broker)
        cluster_id = home.broker.node.image.cluster_id
    async with peers_of(cluster_id) as peers:
        assert await ask(peers, address, VOTE) == Refused()
        port = address.rpartition(":")[2]
        home = combined_home({"listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}"})
        home.files, before = home.files, home
        async with before.running():
            answer = await ask(peers, address, AskVersions())
            assert answer == Versions(ErrorCode.NONE, (0, 1))


async def test_a_node_that_was_started_again_is_asked_over_a_new_connection() -> None:
    """A voter that came back with a new disk was not added: the first request met the end of its old self."""
    home = combined_home()
    async with home.running():
        address = controller_address(home.broker)
        port = address.rpartition(":")[2]
        async with peers_of(home.broker.node.image.cluster_id) as peers:
            assert await ask(peers, address, AskVersions()) == Versions(ErrorCode.NONE, (0, 1))
            await home.broker.stop()
            again = combined_home({"listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}"})
            again.files = home.files
            async with again.running():
                assert await ask(peers, address, AskVersions()) == Versions(ErrorCode.NONE, (0, 1))


@pytest.mark.parametrize("first_bytes", [b"", b"\x00\x00\x00\x05HTTP!", b"\x7f\xff\xff\xff"])
async def test_there_is_no_answer_of_something_else_than_a_node(first_bytes: bytes) -> None:
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await reader.read(1)
        writer.write(first_bytes)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    clock = VirtualClock()

    async def ask_over_connection(number: int) -> Answer | None:
        asked = asyncio.ensure_future(ask(peers, f"127.0.0.1:{port}", VOTE))
        await until(lambda: len(writers) == number)
        while not asked.done():
            await clock.pass_time(TIMEOUT_MS)
        return asked.result()

    async with peers_of("any", clock) as peers:
        assert [await ask_over_connection(number) for number in (1, 2)] == [None, None]
    server.close()
    for writer in writers:
        writer.close()

"""Voters of a quorum of nodes come, go, move, lose their disks (KIP-853), join by themselves (KIP-1186)."""

from __future__ import annotations

import asyncio

from pykafka_broker.controller.core.events import FeatureUpdate, UpdateFeatures
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.raft.core.messages import AddVoter, ChangeAnswer, RemoveVoter
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter
from pykafka_broker.testing.home import until
from pykafka_broker.testing.processes import free_port
from tests.support.quorums import Quorum

DONE = ChangeAnswer(ErrorCode.NONE)
NOT_YET = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER)
#: What a change is answered that an attempt before has made, though its answer was no such.
DONE_BEFORE = (ErrorCode.DUPLICATE_VOTER, ErrorCode.VOTER_NOT_FOUND)


async def changed(quorum: Quorum, request: AddVoter | RemoveVoter, *among: int) -> ChangeAnswer:
    """The answer to a change of the voters, asked for again while the leader is not ready for it."""
    may_be_done = False
    while True:
        controller = quorum.broker(await quorum.leader(*among)).node.administration
        try:
            if isinstance(request, AddVoter):
                answer = await controller.change_voters(request)
            else:
                answer = await controller.change_voters(request)
        except KafkaError as error:
            assert error.code is ErrorCode.NOT_CONTROLLER
            await asyncio.sleep(0)  # it has just been elected
            continue
        if answer.error not in NOT_YET:
            return DONE if may_be_done and answer.error in DONE_BEFORE else answer
        may_be_done = True


def adding(voter: Voter) -> AddVoter:
    return AddVoter(voter.key, voter.endpoints, timeout_ms=1_000)


async def kraft_version_raised(quorum: Quorum, *among: int) -> str | None:
    """Raise kraft.version to 1; the text of the refusal."""
    controller = quorum.broker(await quorum.leader(*among)).node.administration
    try:
        await controller.ask(UpdateFeatures((FeatureUpdate("kraft.version", 1),)))
    except KafkaError as error:
        await asyncio.sleep(0)
        return error.message
    return None


async def test_a_controller_is_added_and_votes() -> None:
    quorum = Quorum(is_dynamic=True)
    async with quorum.running():
        await quorum.leader()
        quorum.new_home(4)
        await quorum.start(4)

        assert await changed(quorum, adding(quorum.voter(4))) == DONE
        await quorum.vote(1, 2, 3, 4)

        again = await changed(quorum, adding(quorum.voter(4)))
        assert again.error is ErrorCode.DUPLICATE_VOTER
        leader = await quorum.leader()
        await quorum.broker(leader).stop()
        assert await quorum.leader(*(n for n in (1, 2, 3, 4) if n != leader))


async def test_a_follower_is_removed_and_goes_on_as_an_observer() -> None:
    quorum = Quorum(is_dynamic=True)
    async with quorum.running():
        leader = await quorum.leader()
        gone, other = (n for n in quorum.homes if n != leader)
        assert await changed(quorum, RemoveVoter(quorum.voter(gone).key)) == DONE
        await quorum.vote(leader, other)
        await until(lambda: quorum.voters_of(gone) == quorum.voters_of(leader))
        described = quorum.broker(leader).node.raft.describe_quorum().status
        assert [observer.key.node_id for observer in described.observers] == [gone]


async def test_a_leader_that_is_removed_leaves_the_lead_to_another() -> None:
    quorum = Quorum(is_dynamic=True)
    async with quorum.running():
        first = await quorum.leader()
        others = [n for n in quorum.homes if n != first]
        assert await changed(quorum, RemoveVoter(quorum.voter(first).key)) == DONE
        assert await quorum.leader(*others)
        await quorum.vote(*others)


async def test_a_lost_disk_is_removed_and_its_node_added_with_the_new_one() -> None:
    quorum = Quorum(is_dynamic=True)
    async with quorum.running():
        leader = await quorum.leader()
        lost = next(n for n in quorum.homes if n != leader)
        before = quorum.voter(lost).key
        await quorum.broker(lost).stop()
        quorum.new_home(lost)
        await quorum.start(lost)

        refused = await changed(quorum, adding(quorum.voter(lost)))
        assert refused.error is ErrorCode.DUPLICATE_VOTER, "the node has a voter, on another disk"
        assert await changed(quorum, RemoveVoter(before)) == DONE
        assert await changed(quorum, adding(quorum.voter(lost))) == DONE
        await quorum.vote(1, 2, 3)


async def test_a_voter_that_comes_back_at_another_port_has_its_entry_corrected() -> None:
    quorum = Quorum(is_dynamic=True)
    async with quorum.running():
        leader = await quorum.leader()
        moved = next(n for n in quorum.homes if n != leader)
        await quorum.broker(moved).stop()
        quorum.ports[moved] = free_port()
        quorum.homes[moved].overrides["listeners"] = f"CONTROLLER://127.0.0.1:{quorum.ports[moved]}"
        await quorum.start(moved)

        await quorum.vote(1, 2, 3)


async def test_a_controller_joins_by_itself_and_again_with_a_new_disk() -> None:
    quorum = Quorum(is_dynamic=True, overrides={"controller.quorum.auto.join.enable": "true"})
    async with quorum.running():
        await quorum.leader()
        quorum.new_home(4)
        await quorum.start(4)
        await quorum.vote(1, 2, 3, 4)

        await quorum.broker(4).stop()
        quorum.new_home(4)
        await quorum.start(4)
        await quorum.vote(1, 2, 3, 4)


async def test_static_voters_move_into_the_log_once_all_have_said_that_they_can() -> None:
    quorum = Quorum()
    async with quorum.running(1, 2):
        refusal = await kraft_version_raised(quorum, 1, 2)
        assert refusal is not None and "has not registered, and may not support this" in refusal
        answer = await changed(quorum, RemoveVoter(ReplicaKey(2, b"2" * 16)), 1, 2)
        assert answer.error is ErrorCode.UNSUPPORTED_VERSION

        await quorum.start(3)
        while await kraft_version_raised(quorum) is not None:
            pass
        await quorum.vote(1, 2, 3)
        leader = await quorum.leader()
        gone, other = (n for n in quorum.homes if n != leader)
        assert await changed(quorum, RemoveVoter(quorum.voter(gone).key)) == DONE
        await quorum.vote(leader, other)
    async with quorum.running(leader, other):
        await quorum.vote(leader, other)

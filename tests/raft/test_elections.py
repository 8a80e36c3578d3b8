"""Who is given a vote, and how a voter becomes leader."""

from __future__ import annotations

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records import control as m
from pykafka_broker.raft.core.log_view import Membership
from pykafka_broker.raft.core.messages import Current, Fetch, Refused, Vote, VoteAnswer
from pykafka_broker.raft.core.quorum import ReplicaKey
from pykafka_broker.raft.core.roles import Candidate, Follower, Leader, Prospective, Unattached
from pykafka_broker.raft.core.state import ElectionState, TimePassed, Unanswered
from tests.raft.stories import (
    LOG,
    NONE,
    SETTINGS,
    START_MS,
    Node,
    fetched,
    following,
    key,
    leading,
    log_of,
    voter,
    voters,
)


def vote(
    epoch: int = 4,
    *,
    of: int = 2,
    end: int = 20,
    last: int = 3,
    pre_vote: bool = False,
    to: ReplicaKey | None = None,
) -> Vote:
    return Vote(epoch, key(of), to or key(1), last, end, pre_vote)


# -- giving votes ----------------------------------------------------------------------------------------


def test_a_vote_is_written_before_it_is_given_and_the_election_timer_starts_anew() -> None:
    node = Node(ElectionState(3))
    node.now_ms += 900

    assert node.ask(vote()) == VoteAnswer(NONE, Current(4), granted=True)
    assert node.step.persist == ElectionState(4, -1, *key(2))
    assert node.role == Unattached(4, voted=key(2), election_deadline_ms=START_MS + 900 + 1000)


def test_in_an_epoch_one_candidate_gets_the_vote_however_often_it_asks() -> None:
    node = Node(ElectionState(4, voted_id=2, voted_directory_id=key(2).directory_id))

    assert node.ask(vote()) == VoteAnswer(NONE, Current(4), granted=True)
    assert node.step.persist is None
    assert node.ask(vote(of=3)) == VoteAnswer(NONE, Current(4))
    answer = node.ask(vote()._replace(candidate=ReplicaKey(2, b"another disk....")))
    assert isinstance(answer, VoteAnswer)
    assert answer._replace(current=Current(4)) == VoteAnswer(NONE, Current(4))


@pytest.mark.parametrize(
    "end, last, granted", [(20, 3, True), (21, 3, True), (19, 3, False), (30, 2, False), (5, 4, True)]
)
def test_a_candidate_has_the_last_epoch_or_as_long_a_log(end: int, last: int, granted: bool) -> None:
    node = Node(ElectionState(3))
    assert node.ask(vote(epoch=5, end=end, last=last)) == VoteAnswer(NONE, Current(5), granted)


def test_a_follower_votes_in_a_newer_epoch_only() -> None:
    node = following()
    known = Current(3, 2, voter(2).endpoints)
    assert node.ask(vote(epoch=3, last=2, of=3)) == VoteAnswer(NONE, known)
    assert node.ask(vote(epoch=4, of=3)) == VoteAnswer(NONE, Current(4), granted=True)


@pytest.mark.parametrize(
    "request_, error",
    [
        (vote(epoch=2, last=1), ErrorCode.FENCED_LEADER_EPOCH),
        (vote(last=4), ErrorCode.INVALID_REQUEST),
        (vote(end=-1), ErrorCode.INVALID_REQUEST),
        (vote(last=-1), ErrorCode.INVALID_REQUEST),
        (vote(of=2)._replace(candidate=ReplicaKey(-1)), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_vote_that_cannot_be_meant_so_is_refused_and_changes_nothing(
    request_: Vote, error: ErrorCode
) -> None:
    node = Node(ElectionState(3))
    assert node.ask(request_) == VoteAnswer(error, Current(3))
    assert node.step.persist is None


def test_a_vote_that_means_another_copy_is_refused_though_its_epoch_counts() -> None:
    node = Node(ElectionState(3))
    answer = node.ask(vote(to=ReplicaKey(1, b"the lost disk...")))
    assert answer == VoteAnswer(ErrorCode.INVALID_VOTER_KEY, Current(4))
    assert node.step.persist == ElectionState(4)


def test_a_version_0_vote_does_not_say_whom_it_means() -> None:
    assert Node(ElectionState(3)).ask(vote()._replace(voter=None)) == VoteAnswer(
        NONE, Current(4), granted=True
    )


# -- pre-votes -------------------------------------------------------------------------------------------


def test_a_pre_vote_writes_nothing_and_is_given_to_several() -> None:
    node = Node(ElectionState(3))
    assert node.ask(vote(epoch=3, pre_vote=True)) == VoteAnswer(NONE, Current(3), granted=True)
    assert node.ask(vote(epoch=3, pre_vote=True, of=3)) == VoteAnswer(NONE, Current(3), granted=True)
    assert node.step.persist is None


def test_a_follower_gives_no_pre_vote_once_its_leader_has_answered() -> None:
    node = following()
    known = Current(3, 2, voter(2).endpoints)
    assert node.ask(vote(epoch=3, pre_vote=True, of=3)) == VoteAnswer(NONE, known, granted=True)

    node.answer(2, fetched(high_watermark=20))
    assert node.ask(vote(epoch=3, pre_vote=True, of=3)) == VoteAnswer(NONE, known)


def test_an_observer_gives_pre_votes_when_the_time_of_its_leader_is_over() -> None:
    """Others may have it among their voters: without it they would never elect."""
    node = Node(ElectionState(3, leader_id=2), node_id=7)
    node.take(TimePassed())
    node.answer(2, fetched())
    asked = vote(epoch=3, pre_vote=True, of=3, to=key(7))
    known = Current(3, 2, voter(2).endpoints)
    node.wait(SETTINGS.fetch_timeout_ms - 1)
    assert node.ask(asked) == VoteAnswer(NONE, known)
    node.wait(1)
    assert isinstance(node.role, Follower)
    assert node.ask(asked) == VoteAnswer(NONE, known, granted=True)


def test_a_leader_gives_no_pre_vote() -> None:
    node = leading()
    answer = node.ask(vote(epoch=4, last=4, end=99, pre_vote=True))
    assert answer == VoteAnswer(NONE, Current(4, 1, voter(1).endpoints))


# -- being elected ---------------------------------------------------------------------------------------


def test_a_voter_without_a_leader_asks_for_pre_votes_then_for_votes_and_then_leads() -> None:
    node = Node(ElectionState(3))
    assert isinstance(node.wait(999).state.role, Unattached)

    node.wait(1)
    assert node.sent == {
        other: Vote(3, key(1), key(other), last_epoch=3, end_offset=20, pre_vote=True) for other in (2, 3)
    }
    asking = node.state.role
    assert isinstance(asking, Prospective)
    assert (asking.granted, node.step.persist) == (frozenset({1}), None)

    node.answer(2, VoteAnswer(NONE, Current(3), granted=True))
    assert node.role == Candidate(4, frozenset({1}), election_deadline_ms=node.now_ms + 1000)
    assert node.step.persist == ElectionState(4, -1, *key(1))
    assert node.sent == {
        other: Vote(4, key(1), key(other), last_epoch=3, end_offset=20, pre_vote=False) for other in (2, 3)
    }

    node.answer(3, VoteAnswer(NONE, Current(4), granted=True))
    assert node.step.persist == ElectionState(4, leader_id=1)
    assert node.step.append == (
        m.LeaderChangeMessage(
            version=0,
            leader_id=1,
            voters=[m.LeaderChangeMessageVoter(voter_id=voter_id) for voter_id in (1, 2, 3)],
            granting_voters=[m.LeaderChangeMessageVoter(voter_id=voter_id) for voter_id in (1, 3)],
        ),
    )
    assert node.leader.start_offset == 20


def test_pre_votes_do_not_count_as_votes() -> None:
    node = Node(ElectionState(3))
    node.wait(1000)
    requests = {send.to.node_id: send.request_id for send in node.step.send}
    node.answer(2, VoteAnswer(NONE, Current(3), granted=True))
    assert not node.state.connections.expects(3, requests[3]), "the other answer comes too late"


def test_when_a_majority_would_not_elect_it_a_voter_goes_back_to_its_leader() -> None:
    node = following()
    node.wait(SETTINGS.fetch_timeout_ms)
    assert node.role == Prospective(
        3,
        2,
        voter(2).endpoints,
        voted=None,
        granted=frozenset({1}),
        election_deadline_ms=node.now_ms + 1000,
    )

    node.answer(2, VoteAnswer(NONE, Current(3, 2, voter(2).endpoints)))
    node.answer(3, VoteAnswer(NONE, Current(3, 2, voter(2).endpoints)))
    assert node.follower.leader_id == 2
    assert node.sent == {2: Fetch(3, key(1), 20, 3, 500, -1)}


def test_a_candidate_that_is_not_elected_in_time_asks_for_pre_votes_again() -> None:
    node = Node(ElectionState(5, voted_id=1, voted_directory_id=key(1).directory_id))
    node.take(TimePassed())
    assert sorted(node.sent) == [2, 3]
    node.wait(1000)
    assert isinstance(node.role, Prospective) and node.role.epoch == 5


def test_a_candidate_that_can_win_no_more_asks_no_more() -> None:
    node = Node(ElectionState(5, voted_id=1, voted_directory_id=key(1).directory_id))
    node.take(TimePassed())
    node.answer(2, VoteAnswer(NONE, Current(5)))
    node.answer(3, VoteAnswer(NONE, Current(5)))
    assert node.sent == {}
    assert node.wait(900).send == ()


def candidate(*among: int) -> Node:
    """Node 1, a candidate of epoch 5 that has asked the other voters."""
    log = LOG._replace(memberships=(Membership(voters(*among), 0),))
    node = Node(ElectionState(5, voted_id=1, voted_directory_id=key(1).directory_id), log)
    node.take(TimePassed())
    return node


def test_a_candidate_stands_again_in_its_turn_when_a_vote_is_split_between_two_that_are_left() -> None:
    node = candidate(1, 2, 3)
    assert isinstance(node.answer(3, Refused()).state.role, Candidate)
    node.answer(2, VoteAnswer(NONE, Current(5)))
    assert isinstance(node.role, Prospective) and node.role.epoch == 5


def test_in_a_vote_of_two_against_two_a_candidate_that_knows_it_does_not_wait_for_its_timer() -> None:
    node = candidate(1, 2, 3, 4)
    node.answer(2, VoteAnswer(NONE, Current(5), granted=True))
    node.answer(3, VoteAnswer(NONE, Current(5)))
    node.answer(4, VoteAnswer(NONE, Current(5)))
    assert isinstance(node.role, Prospective)


def test_a_candidate_that_may_have_lost_to_another_lets_it_make_itself_known() -> None:
    node = candidate(1, 2, 3, 4, 5)
    node.answer(2, Refused())
    for other in (3, 4, 5):
        node.answer(other, VoteAnswer(NONE, Current(5)))
    node.wait(900)
    assert isinstance(node.role, Candidate)


def test_a_voter_that_has_lost_its_leader_later_is_asked_again() -> None:
    node = Node(ElectionState(3))
    node.wait(1000)
    node.answer(2, VoteAnswer(NONE, Current(3)))
    assert node.sent == {}

    answer = node.ask(vote(epoch=3, end=19, pre_vote=True))
    assert answer == VoteAnswer(NONE, Current(3)), "its log is shorter"
    assert node.sent[2] == Vote(3, key(1), key(2), last_epoch=3, end_offset=20, pre_vote=True)


def test_a_vote_that_was_not_answered_is_asked_for_again_after_a_pause() -> None:
    node = Node(ElectionState(3))
    node.wait(1000)
    request_id = next(send.request_id for send in node.step.send if send.to.node_id == 2)
    node.take(Unanswered(2, request_id))
    assert node.sent == {}
    node.wait(SETTINGS.retry_backoff_ms)
    assert list(node.sent) == [2]


def test_beside_a_voter_from_before_pre_votes_elections_go_without_them() -> None:
    node = Node(ElectionState(3))
    node.wait(1000)
    node.answer(2, VoteAnswer(ErrorCode.UNSUPPORTED_VERSION, Current(3)))
    assert isinstance(node.role, Candidate) and node.role.epoch == 4


def test_an_answer_of_a_newer_epoch_ends_the_election() -> None:
    node = Node(ElectionState(3))
    node.wait(1000)
    node.answer(2, VoteAnswer(ErrorCode.FENCED_LEADER_EPOCH, Current(7, 3, voter(3).endpoints)))
    assert isinstance(node.role, Follower) and (node.role.epoch, node.role.leader_id) == (7, 3)
    assert node.step.persist == ElectionState(7, leader_id=3)


def test_epochs_of_others_do_not_keep_a_voter_from_its_election() -> None:
    node = Node(ElectionState(3))
    for epoch in range(4, 13):
        node.wait(100)
        node.ask(vote(epoch=epoch, end=0, last=0))
    node.wait(100)
    assert isinstance(node.role, Prospective)


def test_an_observer_never_stands() -> None:
    node = Node(ElectionState(3), LOG, node_id=7)
    node.wait(60_000)
    assert node.role == Unattached(3)


def test_two_of_four_voters_are_no_majority() -> None:
    node = Node(ElectionState(3), log_of((3, 0), end=20, among=voters(1, 2, 3, 4)))
    node.wait(1000)
    node.answer(2, VoteAnswer(NONE, Current(3), granted=True))
    assert isinstance(node.role, Prospective)
    node.answer(3, VoteAnswer(NONE, Current(3), granted=True))
    assert isinstance(node.role, Candidate)


# -- a voter that is being removed -------------------------------------------------------------------------


def removed(high_watermark: int) -> Node:
    """Node 1, whose log says at offset 15 that it votes no more; it follows node 2."""
    newer = Membership(voters(2, 3), 15)
    node = following(log=LOG._replace(memberships=(*LOG.memberships, newer)))
    node.answer(2, fetched(high_watermark=high_watermark))
    return node


def test_a_voter_may_be_elected_as_long_as_its_removal_is_not_committed_and_counts_not_itself() -> None:
    node = removed(high_watermark=15)
    node.wait(SETTINGS.fetch_timeout_ms)
    assert isinstance(node.role, Prospective) and node.role.granted == frozenset()

    for epoch in (3, 4):
        node.answer(2, VoteAnswer(NONE, Current(epoch), granted=True))
        assert not isinstance(node.role, Leader)
        node.answer(3, VoteAnswer(NONE, Current(epoch), granted=True))
    assert isinstance(node.role, Leader)


def test_a_voter_that_was_removed_stands_no_more() -> None:
    node = removed(high_watermark=16)
    node.wait(60_000)
    assert isinstance(node.role, Follower)

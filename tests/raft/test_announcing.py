"""A leader makes itself known, and hands over when it stops."""

from __future__ import annotations

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core.announcing import successor_backoff_ms
from pykafka_broker.raft.core.messages import (
    Acknowledged,
    BeginQuorumEpoch,
    Current,
    EndQuorumEpoch,
    Fetch,
    FetchAnswer,
    Refused,
    Vote,
    VoteAnswer,
)
from pykafka_broker.raft.core.quorum import ReplicaKey
from pykafka_broker.raft.core.roles import Follower, Leader, Prospective, Resigned, Unattached
from pykafka_broker.raft.core.state import ElectionState, Stop, TimePassed
from pykafka_broker.raft.core.transitions import may_stop
from tests.raft.stories import (
    NONE,
    SETTINGS,
    Node,
    append,
    committed,
    fetch,
    fetched,
    following,
    key,
    leading,
    log_of,
    voter,
    voters,
)


def begin(epoch: int = 4, leader_id: int = 2, to: ReplicaKey | None = None) -> BeginQuorumEpoch:
    return BeginQuorumEpoch(epoch, leader_id, voter(leader_id).endpoints, to or key(1))


def end(*successors: int, epoch: int = 3) -> EndQuorumEpoch:
    return EndQuorumEpoch(epoch, 2, voter(2).endpoints, tuple(key(node_id) for node_id in successors))


# -- the beginning of an epoch -----------------------------------------------------------------------------


def test_a_new_leader_makes_itself_known_at_once_and_then_every_second() -> None:
    node = leading()
    node.answer(2, Acknowledged(NONE, Current(4, 1, voter(1).endpoints)))
    node.answer(3, Acknowledged(NONE, Current(4, 1, voter(1).endpoints)))
    node.wait(SETTINGS.begin_epoch_interval_ms - 1)
    assert node.sent == {}
    node.wait(1)
    assert node.sent == {other: BeginQuorumEpoch(4, 1, voter(1).endpoints, key(other)) for other in (2, 3)}


def test_a_voter_follows_the_leader_that_makes_itself_known_and_fetches() -> None:
    node = Node(ElectionState(3))
    assert node.ask(begin()) == Acknowledged(NONE, Current(4, 2, voter(2).endpoints))
    assert node.step.persist == ElectionState(4, leader_id=2)
    assert node.sent == {2: Fetch(4, key(1), 20, 3, 500, -1)}


@pytest.mark.parametrize(
    "request_, answer",
    [
        (begin(epoch=2), Acknowledged(ErrorCode.FENCED_LEADER_EPOCH, Current(3, 2, voter(2).endpoints))),
        (
            begin(epoch=3, leader_id=3),
            Acknowledged(ErrorCode.UNKNOWN_SERVER_ERROR, Current(3, 2, voter(2).endpoints)),
        ),
        (
            begin(to=ReplicaKey(1, b"the lost disk...")),
            Acknowledged(ErrorCode.INVALID_VOTER_KEY, Current(4, 2, voter(2).endpoints)),
        ),
        (
            begin()._replace(leader_id=-1),
            Acknowledged(ErrorCode.INVALID_REQUEST, Current(3, 2, voter(2).endpoints)),
        ),
    ],
)
def test_an_announcement_that_cannot_be_is_refused(request_: BeginQuorumEpoch, answer: Acknowledged) -> None:
    assert following().ask(request_) == answer


def test_a_leader_without_an_address_cannot_be_followed_but_its_epoch_counts() -> None:
    node = Node(ElectionState(3))
    answer = node.ask(begin()._replace(leader_id=9, endpoints={}))
    assert answer == Acknowledged(NONE, Current(4, 9))
    assert isinstance(node.role, Unattached)


# -- the end ---------------------------------------------------------------------------------------------


def test_a_leader_that_stops_tells_the_voters_whose_log_is_the_longest() -> None:
    node = committed()
    append(node, 5)
    node.ask(fetch(3, 26))
    node.take(Stop())

    assert isinstance(node.role, Resigned) and not may_stop(node.state)
    assert node.sent == {
        other: EndQuorumEpoch(4, 1, voter(1).endpoints, (key(3), key(2))) for other in (2, 3)
    }


def test_it_is_gone_when_another_leads() -> None:
    node = committed()
    node.take(Stop())
    node.answer(2, Acknowledged(NONE, Current(4, 1, voter(1).endpoints)))
    resigned = node.role
    assert isinstance(resigned, Resigned) and resigned.unaware == {3}
    assert node.wait(60_000) is not None
    assert isinstance(node.role, Resigned), "a node that stops begins no epoch"

    assert node.ask(Vote(5, key(2), key(1), 4, 21)) == VoteAnswer(NONE, Current(5), granted=True)
    assert not may_stop(node.state)
    node.ask(begin(epoch=5))
    assert may_stop(node.state)


def test_a_leader_that_stops_takes_no_more_requests() -> None:
    node = leading()
    node.take(Stop())
    answer = node.ask(fetch(2, 20, last_epoch=3))
    assert isinstance(answer, FetchAnswer) and answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_first_successor_stands_at_once_and_the_others_let_it() -> None:
    node = following()
    node.answer(2, fetched())
    assert node.ask(end(1, 3)) == Acknowledged(NONE, Current(3, 2, voter(2).endpoints))
    assert isinstance(node.role, Prospective)

    other = following()
    other.answer(2, fetched())
    other.ask(end(3, 1))
    assert isinstance(other.role, Follower)
    asked = Vote(3, key(3), key(1), 3, 20, pre_vote=True)
    assert other.ask(asked) == VoteAnswer(NONE, Current(3, 2, voter(2).endpoints), granted=True)
    other.wait(500)
    assert isinstance(other.role, Prospective)


@pytest.mark.parametrize(
    "successors, backoffs",
    [((1, 2), [0, 500, 1000]), ((1, 2, 3), [0, 250, 500, 1000]), ((), [1000])],
)
def test_the_later_a_voter_comes_the_longer_it_waits(
    successors: tuple[int, ...], backoffs: list[int]
) -> None:
    keys = [key(node_id) for node_id in successors]
    waits = [successor_backoff_ms(SETTINGS, key(node_id), keys) for node_id in (*successors, 9)]
    assert waits == backoffs


def test_a_leader_that_stops_waits_for_no_voter_to_take_over_where_too_few_are_left_for_a_majority() -> None:
    node = committed()
    node.take(Stop())
    node.answer(2, Refused())
    assert not may_stop(node.state), "nodes 1 and 3 can elect node 3"
    node.answer(3, Acknowledged(NONE, Current(4, 1, voter(1).endpoints)))
    assert not may_stop(node.state)
    assert isinstance(node.sent[3], Fetch), "it asks whether node 3 leads, and so sees when it goes"
    node.answer(3, Refused())
    assert may_stop(node.state)


def test_a_voter_that_stops_without_a_leader_asks_the_others_who_leads() -> None:
    node = Node(ElectionState(3))
    node.take(Stop())
    assert not may_stop(node.state)
    node.wait(SETTINGS.retry_backoff_ms)
    assert {type(request) for request in node.sent.values()} == {Fetch}
    node.answer(2, Refused())
    knows = Current(4, 3, voter(3).endpoints)
    node.answer(3, FetchAnswer(ErrorCode.FENCED_LEADER_EPOCH, knows))
    assert may_stop(node.state)


def test_a_voter_that_is_there_again_counts_again() -> None:
    node = committed()
    node.take(Stop())
    for gone in (2, 3):
        node.answer(gone, Refused())
    assert may_stop(node.state)
    node.wait(SETTINGS.retry_backoff_ms)
    node.answer(2, Acknowledged(NONE, Current(4, 1, voter(1).endpoints)))
    assert not may_stop(node.state)


def test_a_follower_that_stops_may_go_and_stands_no_more() -> None:
    node = following()
    node.take(Stop())
    assert may_stop(node.state)
    node.wait(60_000)
    assert isinstance(node.role, Follower)


def test_the_only_voter_just_stops() -> None:
    node = Node(ElectionState(3), log_of((3, 0), end=20, among=voters(1)))
    node.take(TimePassed())
    assert isinstance(node.role, Leader)
    node.take(Stop())
    assert may_stop(node.state)

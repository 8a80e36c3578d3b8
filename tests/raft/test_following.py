"""How a replica finds the leader, replicates its log, and truncates its own where they differ."""

from __future__ import annotations

import pytest

from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.raft.core import transitions
from pykafka_broker.raft.core.log_view import Batch, EpochEnd, EpochStart
from pykafka_broker.raft.core.messages import Current, Fetch, FetchAnswer, Refused, Vote, VoteAnswer
from pykafka_broker.raft.core.quorum import VoterSet
from pykafka_broker.raft.core.roles import Follower, Prospective, Role, Unattached
from pykafka_broker.raft.core.state import ElectionState, Flushed, TimePassed, Unanswered
from tests.raft.stories import (
    LOG,
    SETTINGS,
    START_MS,
    Node,
    fetched,
    following,
    key,
    log_of,
    voter,
    voters,
)

MORE = Batch(20, 25, 3, data=b"five records")


def test_a_replica_that_knows_no_leader_asks_one_of_the_bootstrap_servers_and_after_a_pause_another() -> None:
    node = Node(ElectionState(3), LOG, node_id=7)
    node.take(TimePassed())
    assert node.sent == {-2: Fetch(3, key(7), 20, 3, 500, -1)}

    node.answer(-2, FetchAnswer(ErrorCode.NOT_LEADER_OR_FOLLOWER, Current(3)))
    assert node.sent == {}
    node.chance = 0.5
    node.wait(SETTINGS.retry_backoff_ms)
    assert list(node.sent) == [-3]


def test_it_never_asks_itself() -> None:
    node = Node(ElectionState(3))
    node.take(TimePassed())
    assert list(node.sent) == [-3]


def test_the_leader_that_an_answer_names_is_followed() -> None:
    node = Node(ElectionState(3), LOG, node_id=7)
    node.take(TimePassed())
    node.answer(-2, FetchAnswer(ErrorCode.FENCED_LEADER_EPOCH, Current(4, 3, voter(3).endpoints)))

    assert node.step.persist == ElectionState(4, leader_id=3)
    assert node.sent == {3: Fetch(4, key(7), 20, 3, 500, -1)}
    assert isinstance(node.role, Follower)


def test_a_leader_without_an_address_is_remembered_and_found_later() -> None:
    log = log_of((3, 0), end=20, among=VoterSet({}))
    node = Node(ElectionState(3, leader_id=2), log, node_id=7)
    assert node.role == Unattached(3, leader_id=2)

    node.take(TimePassed())
    state = node.answer(-2, fetched(high_watermark=20)).state
    assert isinstance(state.role, Follower) and state.high_watermark == 20


def test_batches_are_appended_as_they_are_and_fetched_on_from_once_they_are_on_disk() -> None:
    node = following()
    node.answer(2, fetched(batches=(MORE,), high_watermark=22))

    assert (node.step.replicate, node.step.advance, node.sent) == ((MORE,), 22, {})
    node.take(Flushed(25))
    assert node.sent == {2: Fetch(3, key(1), 25, 3, 500, 22)}


def test_a_broker_that_can_never_vote_does_not_wait_for_its_disk() -> None:
    node = Node(ElectionState(3, leader_id=2), LOG, node_id=7, settings=SETTINGS._replace(may_vote=False))
    node.take(TimePassed())
    node.answer(2, fetched(batches=(MORE,)))
    assert node.sent == {2: Fetch(3, key(7), 25, 3, 500, -1)}


@pytest.mark.parametrize(
    "batches, taken",
    [
        ((Batch(21, 25, 3),), 0),
        ((MORE, Batch(26, 27, 3)), 1),
        ((MORE, Batch(25, 26, 2)), 1),
        ((Batch(20, 25, 4),), 0),
    ],
)
def test_batches_that_do_not_fit_the_log_or_the_epoch_are_left_out(
    batches: tuple[Batch, ...], taken: int
) -> None:
    node = following()
    node.answer(2, fetched(batches=batches))
    assert node.step.replicate == batches[:taken]


def test_the_high_watermark_is_not_beyond_the_own_log_and_does_not_go_back() -> None:
    node = following()
    assert node.answer(2, fetched(high_watermark=99)).advance == 20
    assert node.answer(2, fetched(high_watermark=12)).advance is None
    assert node.state.high_watermark == 20


# -- where logs differ -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "diverging, end_offset",
    [
        (EpochEnd(3, 15), 15),
        (EpochEnd(2, 12), 10),
        (EpochEnd(1, 8), 8),
        (EpochEnd(1, 14), 10),
        (EpochEnd(0, 0), 0),
    ],
)
def test_a_log_is_cut_to_what_both_have(diverging: EpochEnd, end_offset: int) -> None:
    node = following()
    node.answer(2, fetched(diverging=diverging))

    assert node.step.truncate == end_offset
    assert node.state.log.end_offset == end_offset
    [request] = node.sent.values()
    assert isinstance(request, Fetch) and request.offset == end_offset


def test_the_epochs_and_voters_of_records_that_are_cut_are_forgotten() -> None:
    log = LOG._replace(
        memberships=(*LOG.memberships, LOG.membership._replace(voters=voters(1, 2), offset=15))
    )
    node = following(log=log)
    node.answer(2, fetched(diverging=EpochEnd(1, 10)))

    assert node.state.log == log_of((1, 0), end=10)
    assert node.state.log.epochs == (EpochStart(1, 0),)


def test_a_leader_without_committed_records_is_not_believed() -> None:
    node = following()
    node.answer(2, fetched(high_watermark=18))
    with pytest.raises(IllegalState, match="18 records are committed"):
        node.answer(2, fetched(diverging=EpochEnd(3, 15)))


# -- when the leader is silent ---------------------------------------------------------------------------


def test_every_answer_of_the_leader_gives_it_more_time() -> None:
    node = following()
    for _ in range(5):
        node.now_ms += 1900
        node.answer(2, fetched())
    assert isinstance(node.role, Follower)
    node.wait(SETTINGS.fetch_timeout_ms)
    assert isinstance(node.state.role, Prospective)


def test_while_the_leader_cannot_be_reached_others_are_asked_where_it_is() -> None:
    node = following()
    [send] = node.step.send
    node.take(Unanswered(2, send.request_id))
    assert list(node.sent) == [-4], "not node 2 again, which is the bootstrap server -3"


def test_a_server_that_was_silent_is_asked_for_the_leader_again_only_where_all_were() -> None:
    node = Node(ElectionState(3, leader_id=2), LOG, node_id=7)
    node.take(TimePassed())
    assert list(node.sent) == [2], "the leader, which hangs"
    node.wait(SETTINGS.request_timeout_ms)
    asked = []
    for node.chance in (0.0, 0.3, 0.5, 0.7, 0.9):
        [server] = node.sent
        asked.append(server)
        node.answer(server, FetchAnswer(ErrorCode.UNKNOWN_LEADER_EPOCH, Current(3)))
        node.wait(SETTINGS.retry_backoff_ms)
    assert asked == [-2, -2, -2, -4, -4]

    node.chance = 0.5
    node.wait(SETTINGS.request_timeout_ms)
    assert list(node.sent) == [-2], "node 3 (-4) was silent too"
    node.wait(SETTINGS.request_timeout_ms + SETTINGS.retry_backoff_ms)
    assert list(node.sent) == [-3], "all were"


def test_a_server_is_asked_for_the_leader_again_some_time_after_it_was_silent() -> None:
    node = Node(ElectionState(3, leader_id=2), LOG, node_id=7)
    node.take(TimePassed())
    node.wait(SETTINGS.request_timeout_ms)
    silent_ms = node.now_ms
    node.chance = 0.5
    while list(node.sent) != [-3]:
        for server in node.sent:
            node.answer(server, FetchAnswer(ErrorCode.UNKNOWN_LEADER_EPOCH, Current(3)))
        node.wait(SETTINGS.retry_backoff_ms)
    assert 0 <= node.now_ms - silent_ms - SETTINGS.silence_ms <= SETTINGS.retry_backoff_ms


def test_a_leader_whose_process_has_ended_is_given_no_more_time() -> None:
    node = following()
    node.answer(2, fetched())
    node.answer(2, Refused())
    node.wait(SETTINGS.election_timeout_ms // 10)
    assert isinstance(node.role, Prospective)


def lost(node_id: int, *gone: int, leader_id: int = 2, chance: float = 0.0) -> Node:
    """A follower that has just seen that nothing listens at these voters' addresses, its leader's at last."""
    log = log_of((1, 0), (3, 10), end=20, among=voters(1, 2, 3, 4, 5))
    node = Node(ElectionState(3, leader_id), log, node_id=node_id)
    node.take(TimePassed())
    node.answer(leader_id, fetched(leader_id))
    node.chance = chance
    connections = node.state.connections
    refused = frozenset(address for other in gone for address in voter(other).endpoints.values())
    node.step = node.step._replace(
        state=node.state._replace(connections=connections._replace(refused=refused))
    )
    node.answer(leader_id, Refused())
    return node


def test_of_the_voters_that_lose_their_leader_at_one_moment_that_with_the_lowest_id_stands_first() -> None:
    stands = {}
    for node_id in (1, 3, 4, 5):
        earliest, latest = lost(node_id), lost(node_id, chance=0.99)
        stands[node_id] = [after(node, Prospective) for node in (earliest, latest)]
    assert stands == {1: [0, 24], 3: [50, 74], 4: [100, 124], 5: [150, 174]}


def test_a_voter_that_has_ended_too_is_not_waited_for() -> None:
    assert after(lost(4, 1), Prospective) == 50


def test_voters_whose_leader_falls_silent_stand_in_the_same_order() -> None:
    log = log_of((1, 0), (3, 10), end=20)
    for node_id, place in ((1, 0), (3, 1)):
        node = Node(ElectionState(3, 2), log, node_id=node_id)
        node.take(TimePassed())
        node.answer(2, fetched())
        assert after(node, Prospective) == SETTINGS.fetch_timeout_ms + 50 * place


def after(node: Node, role: type[Role]) -> int:
    """How long it takes until a node has a role."""
    begun_ms = node.now_ms
    while not isinstance(node.role, role):
        deadline_ms = transitions.next_deadline_ms(node.state, node.now_ms)
        assert deadline_ms is not None
        node.wait(deadline_ms - node.now_ms)
    return node.now_ms - begun_ms


def test_others_are_given_pre_votes_once_the_process_of_the_leader_has_ended() -> None:
    node = following()
    node.answer(2, fetched(high_watermark=20))
    request = Vote(3, key(3), key(1), 3, 20, pre_vote=True)
    answer = node.ask(request)
    assert isinstance(answer, VoteAnswer) and not answer.granted
    node.chance = 0.9
    node.answer(2, Refused())
    assert isinstance(node.role, Follower)
    answer = node.ask(request)
    assert isinstance(answer, VoteAnswer) and answer.granted


def test_a_leader_that_only_this_voter_does_not_reach_is_given_its_time_after_one_attempt() -> None:
    node = following()
    node.answer(2, fetched())
    heard_ms = node.now_ms
    node.answer(2, Refused())
    node.wait(SETTINGS.election_timeout_ms // 10)
    for other in (2, 3):
        node.answer(other, VoteAnswer(ErrorCode.NONE, Current(3, 2, voter(2).endpoints)))
    assert isinstance(node.role, Follower)
    node.answer(2, Refused())
    assert node.role.election_deadline_ms is None
    assert node.role.fetch_deadline_ms == heard_ms + SETTINGS.fetch_timeout_ms


def test_an_observer_keeps_its_leader_and_asks_around() -> None:
    node = Node(ElectionState(3, leader_id=2), LOG, node_id=7)
    node.take(TimePassed())
    node.wait(30_000)
    assert isinstance(node.role, Follower)
    assert {node_id < 0 for node_id in node.state.connections.busy} == {True}


def test_a_peer_that_contradicts_the_known_leader_is_not_believed() -> None:
    node = following()
    node.answer(2, FetchAnswer(ErrorCode.NOT_LEADER_OR_FOLLOWER, Current(3, 3, voter(3).endpoints)))
    assert isinstance(node.role, Follower) and node.role.leader_id == 2


def test_an_epoch_that_this_node_led_before_it_lost_its_disk_is_neither_led_nor_voted_in_again() -> None:
    node = following()
    node.answer(2, FetchAnswer(ErrorCode.NOT_LEADER_OR_FOLLOWER, Current(9, 1, voter(1).endpoints)))
    assert isinstance(node.role, Unattached) and (node.role.epoch, node.role.leader_id) == (9, 1)
    assert node.step.persist == ElectionState(9, leader_id=1)


def test_answers_to_requests_that_were_given_up_are_not_looked_at() -> None:
    node = following()
    [send] = node.step.send
    node.wait(SETTINGS.request_timeout_ms - 1)
    assert node.state.connections.expects(2, send.request_id)
    node.wait(1)
    assert not node.state.connections.expects(2, send.request_id)
    assert node.now_ms == START_MS + 2000

"""The Raft machine: waking up, a quorum of one that elects itself, committing."""

from __future__ import annotations

import pytest

from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.protocol.messages.records import control as m
from pykafka_broker.raft.core import transitions
from pykafka_broker.raft.core.log_view import EpochStart, LogView, Membership
from pykafka_broker.raft.core.quorum import (
    UNKNOWN_DIRECTORY,
    ReplicaKey,
    Voter,
    VoterSet,
    is_majority,
    majority_offset,
)
from pykafka_broker.raft.core.roles import Candidate, Follower, Leader, Resigned, Role, Unattached
from pykafka_broker.raft.core.state import (
    Appended,
    ElectionState,
    Event,
    Flushed,
    Moment,
    RaftState,
    RaftStep,
)
from pykafka_broker.raft.core.turn import Turn

DISK, OTHER_DISK = b"d" * 16, b"e" * 16
NOW = Moment(now_ms=1000, chance=0.5)
#: By NOW and the defaults: half of the chance to wait longer for an election.
ELECTION, FETCH, UPDATE = 2500, 3000, 7000


def voter(node_id: int, directory_id: bytes = DISK, port: int = 9093) -> Voter:
    return Voter(ReplicaKey(node_id, directory_id), {"CONTROLLER": ("localhost", port)})


def voters(*node_ids: int) -> VoterSet:
    return VoterSet({node_id: voter(node_id) for node_id in node_ids})


def boot(local: Voter, election: ElectionState, log: LogView) -> RaftStep:
    return transitions.boot(local, election, log, NOW)


def step(state: RaftState, event: Event) -> RaftStep:
    return transitions.step(state, event, NOW)


ALONE = LogView(0, 0, (Membership(voters(1)),))


def role_at_boot(election: ElectionState, log: LogView) -> Role:
    return boot(voter(1), election, log).state.role


# -- waking up ---------------------------------------------------------------------------------------------

THREE = LogView(50, 4, (Membership(voters(1, 2, 3), offset=2),))


@pytest.mark.parametrize(
    "election, role",
    [
        (ElectionState(3, leader_id=2), Unattached(4, election_deadline_ms=ELECTION)),
        (ElectionState(4, leader_id=1), Resigned(4, election_deadline_ms=ELECTION)),
        (
            ElectionState(4, leader_id=2),
            Follower(4, 2, voter(2).endpoints, fetch_deadline_ms=FETCH, update_deadline_ms=UPDATE),
        ),
        (ElectionState(4, leader_id=9), Unattached(4, leader_id=9, election_deadline_ms=ELECTION)),
        (
            ElectionState(5, voted_id=1, voted_directory_id=DISK),
            Candidate(5, frozenset({1}), election_deadline_ms=ELECTION),
        ),
        (
            ElectionState(5, voted_id=2, voted_directory_id=DISK),
            Unattached(5, voted=ReplicaKey(2, DISK), election_deadline_ms=ELECTION),
        ),
        (
            ElectionState(5, voted_id=1, voted_directory_id=OTHER_DISK),
            Unattached(5, voted=ReplicaKey(1, OTHER_DISK), election_deadline_ms=ELECTION),
        ),
        (ElectionState(5), Unattached(5, election_deadline_ms=ELECTION)),
    ],
)
def test_a_voter_among_several_wakes_up_as_what_it_was_and_waits(election: ElectionState, role: Role) -> None:
    woken = boot(voter(1), election, THREE)
    assert (woken.state.role, woken.persist, woken.append) == (role, None, ())


def test_a_candidate_without_a_majority_never_leads() -> None:
    candidate = Candidate(5, frozenset({1}))

    with pytest.raises(IllegalState, match="1 of 3 voters are no majority"):
        Turn(RaftState(voter(1), candidate, THREE), NOW).become_leader()


def test_a_new_quorum_of_one_elects_itself_and_writes_its_voters_into_the_log() -> None:
    woken = boot(voter(1), ElectionState(), ALONE)

    assert woken.state.role == Leader(epoch=1, start_offset=0, high_watermark=None)
    assert woken.persist == ElectionState(leader_epoch=1, leader_id=1)
    change, version, record = woken.append
    assert change == m.LeaderChangeMessage(
        version=0,
        leader_id=1,
        voters=[m.LeaderChangeMessageVoter(voter_id=1)],
        granting_voters=[m.LeaderChangeMessageVoter(voter_id=1)],
    )
    assert version == m.KRaftVersionRecord(version=0, kraft_version=1)
    assert isinstance(record, m.VotersRecord)
    assert VoterSet.from_record(record) == voters(1)


def test_after_a_restart_it_leads_the_next_epoch_and_the_voters_need_not_be_said_again() -> None:
    log = LogView(50, 1, (Membership(voters(1), offset=2),))
    woken = boot(voter(1), ElectionState(1, leader_id=1), log)
    assert woken.state.role == Leader(2, 50)
    assert [type(message) for message in woken.append] == [m.LeaderChangeMessage]


def test_an_epoch_is_never_led_twice_even_if_quorum_state_was_lost() -> None:
    log = ALONE._replace(end_offset=50, last_epoch=7)
    assert role_at_boot(ElectionState(), log).epoch == 8


def test_a_candidate_that_stopped_before_it_won_goes_on_in_its_epoch() -> None:
    election = ElectionState(5, voted_id=1, voted_directory_id=DISK)
    assert role_at_boot(election, ALONE._replace(last_epoch=4)).epoch == 5


def test_a_voter_that_has_moved_says_where_it_is_now() -> None:
    log = LogView(50, 1, (Membership(voters(1), offset=2),))
    woken = boot(voter(1, port=7777), ElectionState(1, leader_id=1), log)
    record = woken.append[-1]
    assert isinstance(record, m.VotersRecord)
    assert VoterSet.from_record(record).voters[1].endpoints == {"CONTROLLER": ("localhost", 7777)}


def test_the_same_node_on_another_disk_is_no_voter() -> None:
    woken = boot(voter(1, OTHER_DISK), ElectionState(), ALONE)
    assert woken.state.role == Unattached(0)


def test_voters_of_the_configuration_never_enter_the_log() -> None:
    alone = VoterSet({1: Voter(ReplicaKey(1), {"CONTROLLER": ("controller", 9093)})})
    log = LogView(0, 0, (Membership(alone, kraft_version=0),))
    woken = boot(voter(1), ElectionState(), log)
    assert [type(message) for message in woken.append] == [m.LeaderChangeMessage]
    assert woken.state.log == log._replace(end_offset=1, last_epoch=1, epochs=(EpochStart(1, 0),))


# -- committing ----------------------------------------------------------------------------------------------


def test_what_is_on_disk_is_committed_once_a_record_of_this_epoch_is() -> None:
    state = boot(voter(1), ElectionState(1, leader_id=1), ALONE._replace(end_offset=50, last_epoch=1)).state
    state = step(state, Appended(51)).state
    assert step(state, Flushed(50)).advance is None, "records of earlier epochs alone commit nothing"

    done = step(state, Flushed(51))
    assert done.advance == 51
    assert done.state.role == Leader(2, 50, high_watermark=51)
    assert step(done.state, Flushed(51)).advance is None


def test_a_follower_commits_nothing_by_itself() -> None:
    state = boot(voter(1), ElectionState(4, leader_id=2), THREE).state
    assert step(state, Flushed(50)).advance is None


# -- counting ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "offsets, reached", [([7], 7), ([7, 9], 7), ([7, 9, 3], 7), ([7, 9, 3, 1], 3), ([5, 5, 5, 1, 1], 5)]
)
def test_the_high_watermark_is_what_a_majority_has(offsets: list[int], reached: int) -> None:
    assert majority_offset(offsets) == reached
    assert is_majority(sum(offset >= reached for offset in offsets), len(offsets))


def test_an_unknown_directory_matches_every_directory_of_its_node() -> None:
    key = ReplicaKey(1, DISK)
    assert key.matches(ReplicaKey(1)) and ReplicaKey(1, UNKNOWN_DIRECTORY).matches(key)
    assert not key.matches(ReplicaKey(1, OTHER_DISK))
    assert not key.matches(ReplicaKey(2, DISK))

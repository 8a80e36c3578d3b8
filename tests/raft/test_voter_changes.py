"""Voters come, go and move; kraft.version is raised."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records import control as m
from pykafka_broker.raft.core.describe import (
    QuorumStatus,
    ReplicaStatus,
    describe,
    describe_leaderless,
    is_led,
)
from pykafka_broker.raft.core.messages import (
    Acknowledged,
    AddVoter,
    AskVersions,
    ChangeAnswer,
    Current,
    Fetch,
    Refused,
    RemoveVoter,
    UpdateVoter,
    Versions,
)
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter, VoterSet
from pykafka_broker.raft.core.roles import Leader, Resigned
from pykafka_broker.raft.core.state import (
    ElectionState,
    Flushed,
    Resign,
    TimePassed,
    Unanswered,
    UpgradeKRaftVersion,
)
from tests.raft.stories import (
    LOG,
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

HERE = Current(4, 1, voter(1).endpoints)
#: Node 1 on the disk it had before.
LOST = voter(1)._replace(key=ReplicaKey(1, b"its lost disk..."))
STATIC = VoterSet({n: Voter(ReplicaKey(n), voter(n).endpoints) for n in (1, 2, 3)})
STATIC_LOG = log_of((3, 0), end=20, among=STATIC, kraft_version=0)


def add(node_id: int = 4, *, when_committed: bool = True) -> AddVoter:
    return AddVoter(key(node_id), voter(node_id).endpoints, 2000, when_committed)


def with_observer(node_id: int = 4) -> Node:
    node = committed()
    node.ask(fetch(node_id, 21))
    return node


def appended_voters(node: Node) -> VoterSet:
    [record] = node.step.append
    assert isinstance(record, m.VotersRecord)
    return VoterSet.from_record(record)


def description(node: Node) -> QuorumStatus:
    described = describe(node.state, node.now_ms)
    assert described is not None
    return described


def reply(node: Node) -> list[ChangeAnswer]:
    return [reply.answer for reply in node.step.reply if isinstance(reply.answer, ChangeAnswer)]


# -- adding ----------------------------------------------------------------------------------------------


def test_a_new_voter_is_asked_for_its_versions_and_counts_from_its_record_on() -> None:
    node = with_observer()
    assert node.ask(add()) is None
    assert node.sent == {4: AskVersions()}

    node.answer(4, Versions(NONE, (0, 1)))
    assert appended_voters(node) == voters(1, 2, 3, 4)
    assert node.state.log.voters == voters(1, 2, 3, 4)
    assert (node.state.log.membership.offset, node.state.log.end_offset) == (21, 22)


def test_it_is_answered_when_a_majority_of_the_new_voters_has_the_record() -> None:
    node = with_observer()
    node.ask(add())
    node.answer(4, Versions(NONE, (0, 1)))
    node.take(Flushed(22))
    node.ask(fetch(2, 22))
    assert (node.step.advance, reply(node)) == (None, []), "two of four"
    node.ask(fetch(4, 22))
    assert (node.step.advance, reply(node)) == (22, [ChangeAnswer(NONE)])


def test_version_1_may_ask_for_an_answer_before_the_commit() -> None:
    node = with_observer()
    node.ask(add(when_committed=False))
    node.answer(4, Versions(NONE, (0, 1)))
    assert reply(node) == [ChangeAnswer(NONE)]


def test_a_change_that_takes_too_long_is_answered_and_the_next_still_waits_for_its_record() -> None:
    node = with_observer()
    node.ask(add())
    node.answer(4, Versions(NONE, (0, 1)))
    node.ask(fetch(2, 21))
    node.wait(SETTINGS.request_timeout_ms)
    assert reply(node) == [ChangeAnswer(ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT.message)]
    answer = node.ask(RemoveVoter(key(4)))
    assert answer == ChangeAnswer(
        ErrorCode.REQUEST_TIMED_OUT,
        "Request timed out waiting for voters to commit the latest voter change at Optional[21] with HWM 21",
    )


@pytest.mark.parametrize(
    "request_, text",
    [
        (
            add(2),
            "The voter id for ReplicaKey(id=2, directoryId=%s) is already part of the set of voters [%s].",
        ),
        (
            RemoveVoter(key(4)),
            "Cannot remove voter ReplicaKey(id=4, directoryId=%s) from the set of voters [%s]",
        ),
    ],
)
def test_voters_are_named_in_the_words_of_kafka(request_: AddVoter | RemoveVoter, text: str) -> None:
    def shown(node_id: int) -> str:
        return urlsafe_b64encode(key(node_id).directory_id).decode().rstrip("=")

    among = ", ".join(f"ReplicaKey(id={n}, directoryId={shown(n)})" for n in (1, 2, 3))
    answer = committed().ask(request_)
    assert isinstance(answer, ChangeAnswer)
    assert answer.message == text % (shown(request_.key.node_id), among)


def test_an_address_on_another_listener_is_named_in_the_words_of_kafka() -> None:
    answer = committed().ask(add()._replace(endpoints={"OTHER": ("node4", 1)}))
    assert answer == ChangeAnswer(
        ErrorCode.INVALID_REQUEST,
        "Add voter request didn't include the endpoint (Endpoints(endpoints={ListenerName(OTHER)="
        "node4/<unresolved>:1})) for the default listener ListenerName(CONTROLLER)",
    )


@pytest.mark.parametrize(
    "versions, error",
    [
        (Versions(ErrorCode.UNSUPPORTED_VERSION), ErrorCode.REQUEST_TIMED_OUT),
        (Versions(NONE, (0, 0)), ErrorCode.INVALID_REQUEST),
        (Versions(NONE, None), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_replica_that_does_not_support_the_level_is_not_added(versions: Versions, error: ErrorCode) -> None:
    node = with_observer()
    node.ask(add())
    node.answer(4, versions)
    assert (node.step.append, [answer.error for answer in reply(node)]) == ((), [error])


def test_a_replica_that_is_not_reached_is_not_added() -> None:
    node = with_observer()
    node.ask(add())
    request_id = node.state.connections.busy[4].request_id
    assert request_id is not None
    node.take(Unanswered(4, request_id))
    assert reply(node) == [
        ChangeAnswer(
            ErrorCode.REQUEST_TIMED_OUT,
            "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE",
        )
    ]
    assert node.leader.change is None


def test_a_replica_that_has_never_caught_up_is_not_added() -> None:
    node = committed()
    node.ask(fetch(4, 10, last_epoch=1))
    node.ask(add())
    node.answer(4, Versions(NONE, (0, 1)))
    assert [answer.error for answer in reply(node)] == [ErrorCode.REQUEST_TIMED_OUT]


@pytest.mark.parametrize(
    "request_, error",
    [
        (add(2), ErrorCode.DUPLICATE_VOTER),
        (add()._replace(key=ReplicaKey(2, b"its new disk....")), ErrorCode.DUPLICATE_VOTER),
        (add()._replace(key=ReplicaKey(4)), ErrorCode.INVALID_REQUEST),
        (add()._replace(key=ReplicaKey(-1, b"d" * 16)), ErrorCode.INVALID_REQUEST),
        (add()._replace(endpoints={"OTHER": ("node4", 1)}), ErrorCode.INVALID_REQUEST),
        (RemoveVoter(key(4)), ErrorCode.VOTER_NOT_FOUND),
        (RemoveVoter(ReplicaKey(2, b"its new disk....")), ErrorCode.VOTER_NOT_FOUND),
        (RemoveVoter(ReplicaKey(2)), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_change_that_cannot_be_is_refused(request_: AddVoter | RemoveVoter, error: ErrorCode) -> None:
    node = committed()
    answer = node.ask(request_)
    assert isinstance(answer, ChangeAnswer) and answer.error is error
    assert node.step.append == ()


def test_one_change_at_a_time() -> None:
    node = with_observer()
    node.ask(add())
    answer = node.ask(RemoveVoter(key(3)))
    assert answer == ChangeAnswer(
        ErrorCode.REQUEST_TIMED_OUT,
        "Request timed out waiting for leader to handle previous voter change request",
    )


def test_no_change_before_a_record_of_the_own_epoch_is_committed() -> None:
    node = leading()
    answer = node.ask(RemoveVoter(key(3)))
    assert answer == ChangeAnswer(
        ErrorCode.REQUEST_TIMED_OUT,
        "Request timed out waiting for leader to establish HWM and fence previous voter changes",
    )


def test_only_the_leader_changes_voters() -> None:
    answer = following().ask(add())
    assert answer == ChangeAnswer(ErrorCode.NOT_LEADER_OR_FOLLOWER, "", Current(3, 2, voter(2).endpoints))


def test_a_change_under_way_is_refused_when_the_leader_goes() -> None:
    node = with_observer()
    node.ask(add())
    node.take(Resign())
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert reply(node) == [ChangeAnswer(error, error.message, HERE)]


# -- removing --------------------------------------------------------------------------------------------


def test_a_voter_is_removed_and_the_rest_is_the_majority() -> None:
    node = committed()
    assert node.ask(RemoveVoter(key(3))) is None
    assert appended_voters(node) == voters(1, 2)
    assert node.take(Flushed(22)).advance is None
    node.ask(fetch(2, 22))
    assert (node.step.advance, reply(node)) == (22, [ChangeAnswer(NONE)])


def test_a_leader_that_removes_itself_leads_until_the_others_have_committed_it() -> None:
    node = committed()
    node.ask(RemoveVoter(key(1)))
    node.take(Flushed(22))
    node.ask(fetch(2, 22))
    assert (type(node.role), node.step.advance) == (Leader, None), "its own disk counts no more"

    node.ask(fetch(3, 22))
    assert (node.step.advance, reply(node)) == (22, [ChangeAnswer(NONE)])
    assert isinstance(node.role, Resigned) and node.role.successors == (key(2), key(3))


def test_an_only_voter_that_gets_a_second_one_gives_it_time_to_fetch() -> None:
    node = committed()
    node.ask(RemoveVoter(key(3)))
    node.take(Flushed(22))
    node.ask(fetch(2, 22))
    node.ask(RemoveVoter(key(2)))
    node.take(Flushed(23))
    node.wait(60_000)
    node.ask(fetch(4, 23))
    node.ask(add())
    node.answer(4, Versions(NONE, (0, 1)))
    assert appended_voters(node) == voters(1, 4)
    node.wait(SETTINGS.check_quorum_timeout_ms - 1)
    assert isinstance(node.role, Leader)
    node.wait(1)
    assert isinstance(node.role, Resigned), "the second voter does not fetch"


def test_the_last_voter_stays() -> None:
    node = Node(ElectionState(3), log_of((3, 0), end=20, among=voters(1)))
    node.take(Flushed(21))
    answer = node.ask(RemoveVoter(key(1)))
    assert isinstance(answer, ChangeAnswer) and answer.error is ErrorCode.VOTER_NOT_FOUND


# -- a voter's own entry ---------------------------------------------------------------------------------


def moved(node_id: int) -> Voter:
    return voter(node_id)._replace(endpoints={"CONTROLLER": ("elsewhere", 9093)})


def after_six_seconds(node: Node) -> dict[int, object]:
    """What a follower sends when it looks at its entry for the first time."""
    if not node.sent:
        node.take(TimePassed())
    for _ in range(3):
        node.now_ms += 1900
        assert [type(request) for request in node.sent.values()] == [Fetch]
        node.answer(2, fetched())
    node.now_ms += 300
    node.answer(2, fetched())
    return dict(node.sent)


def test_a_voter_that_has_moved_tells_the_leader() -> None:
    among = VoterSet({**voters(2, 3).voters, 1: moved(1)})
    node = Node(ElectionState(3, leader_id=2), log_of((3, 0), end=20, among=among))
    assert after_six_seconds(node) == {2: UpdateVoter(3, voter(1))}

    node.answer(2, Acknowledged(NONE, Current(3, 2, voter(2).endpoints)))
    assert [type(request) for request in node.sent.values()] == [Fetch]


def test_a_voter_whose_entry_is_true_keeps_fetching() -> None:
    node = Node(ElectionState(3, leader_id=2), LOG)
    assert [type(request) for request in after_six_seconds(node).values()] == [Fetch]


def test_with_kraft_version_0_every_leader_is_told_once() -> None:
    node = Node(ElectionState(3, leader_id=2), STATIC_LOG)
    assert after_six_seconds(node) == {2: UpdateVoter(3, voter(1))}
    node.answer(2, Acknowledged(NONE, Current(3, 2, voter(2).endpoints)))
    assert [type(request) for request in after_six_seconds(node).values()] == [Fetch]


def test_a_leader_that_could_not_take_it_in_is_told_again() -> None:
    node = Node(ElectionState(3, leader_id=2), STATIC_LOG)
    assert after_six_seconds(node) == {2: UpdateVoter(3, voter(1))}
    node.answer(2, Acknowledged(ErrorCode.REQUEST_TIMED_OUT, Current(3, 2, voter(2).endpoints)))
    assert [type(request) for request in node.sent.values()] == [Fetch]
    node.answer(2, fetched())
    assert after_six_seconds(node) == {2: UpdateVoter(3, voter(1))}


def test_the_leader_writes_the_new_entry_and_answers_at_once() -> None:
    node = committed()
    assert node.ask(UpdateVoter(4, moved(2))) == Acknowledged(NONE, HERE)
    assert appended_voters(node) == VoterSet({**voters(1, 3).voters, 2: moved(2)})


@pytest.mark.parametrize(
    "request_, error",
    [
        (UpdateVoter(3, moved(2)), ErrorCode.FENCED_LEADER_EPOCH),
        (UpdateVoter(4, moved(4)), ErrorCode.VOTER_NOT_FOUND),
        (UpdateVoter(4, moved(2)._replace(kraft_versions=(0, 0))), ErrorCode.INVALID_REQUEST),
        (UpdateVoter(4, moved(2)._replace(kraft_versions=(2, 1))), ErrorCode.INVALID_REQUEST),
        (UpdateVoter(4, moved(2)._replace(endpoints={})), ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_entry_that_cannot_be_is_refused(request_: UpdateVoter, error: ErrorCode) -> None:
    assert committed().ask(request_) == Acknowledged(error, HERE)


def test_an_entry_waits_for_the_change_before_it() -> None:
    node = committed()
    node.ask(RemoveVoter(key(3)))
    assert node.ask(UpdateVoter(4, moved(2))) == Acknowledged(ErrorCode.REQUEST_TIMED_OUT, HERE)
    assert leading().ask(UpdateVoter(4, moved(2))) == Acknowledged(ErrorCode.REQUEST_TIMED_OUT, HERE)
    assert leading(STATIC_LOG).ask(UpdateVoter(4, voter(2))) == Acknowledged(
        ErrorCode.REQUEST_TIMED_OUT, HERE
    )
    only_newer = UpdateVoter(4, voter(2)._replace(kraft_versions=(1, 1)))
    assert committed(STATIC_LOG).ask(only_newer) == Acknowledged(ErrorCode.INVALID_REQUEST, HERE)


def test_a_voter_that_corrects_its_entry_counts_as_one_that_follows() -> None:
    node = committed()
    node.now_ms += 2_000
    deadline_ms = node.leader.check_quorum_deadline_ms
    assert deadline_ms is not None
    node.ask(UpdateVoter(4, moved(2)))
    assert node.leader.check_quorum_deadline_ms == deadline_ms + 2_000


@pytest.mark.parametrize(
    "among, request_",
    [
        (voters(2, 3), AddVoter(key(1), voter(1).endpoints, 2000, ack_when_committed=False)),
        (VoterSet({**voters(2, 3).voters, 1: LOST}), RemoveVoter(LOST.key)),
    ],
)
def test_a_controller_that_may_join_by_itself_asks_to_once_its_lost_disk_is_removed(
    among: VoterSet, request_: AddVoter | RemoveVoter
) -> None:
    log = log_of((3, 0), end=20, among=among)
    settings = SETTINGS._replace(auto_join=True)
    node = Node(ElectionState(3, leader_id=2), log, settings=settings)
    assert after_six_seconds(node) == {2: request_}


# -- kraft.version ---------------------------------------------------------------------------------------


def test_with_kraft_version_0_voters_do_not_change() -> None:
    answer = committed(STATIC_LOG).ask(RemoveVoter(key(2)))
    assert answer == ChangeAnswer(
        ErrorCode.UNSUPPORTED_VERSION,
        "Cluster doesn't support removing voter because the kraft.version feature is 0",
    )


def test_kraft_version_is_raised_once_all_voters_have_said_who_they_are() -> None:
    node = committed(STATIC_LOG)
    node.ask(UpdateVoter(4, voter(2)))
    node.take(UpgradeKRaftVersion(7))
    assert reply(node) == [
        ChangeAnswer(
            ErrorCode.INVALID_UPDATE_VERSION,
            "Invalid upgrade of kraft.version to KRAFT_VERSION_1 because not all of the voters support it",
        )
    ]

    assert node.ask(UpdateVoter(4, voter(3))) == Acknowledged(NONE, HERE)
    node.take(UpgradeKRaftVersion(7, validate_only=True))
    assert (reply(node), node.step.append) == ([ChangeAnswer(NONE)], ())
    node.take(UpgradeKRaftVersion(8))
    version, record = node.step.append
    assert version == m.KRaftVersionRecord(version=0, kraft_version=1)
    assert isinstance(record, m.VotersRecord)
    assert VoterSet.from_record(record) == voters(1, 2, 3)
    assert node.state.log.kraft_version == 1
    described = description(node)
    assert [voter.end_offset for voter in described.voters] == [23, 21, 21], "they are as far as they were"
    assert described.observers == ()

    node.take(Flushed(23))
    node.ask(fetch(2, 23))
    assert reply(node) == [ChangeAnswer(NONE)]
    node.take(UpgradeKRaftVersion(9))
    assert (reply(node), node.step.append) == ([ChangeAnswer(NONE)], ())


def test_a_voter_that_does_not_support_it_keeps_kraft_version_at_0() -> None:
    node = committed(STATIC_LOG)
    node.ask(UpdateVoter(4, voter(2)))
    node.ask(UpdateVoter(4, voter(3)._replace(kraft_versions=(0, 0))))
    node.take(UpgradeKRaftVersion(7))
    assert [answer.error for answer in reply(node)] == [ErrorCode.INVALID_UPDATE_VERSION]


# -- DescribeQuorum --------------------------------------------------------------------------------------


def test_the_leader_describes_its_quorum() -> None:
    node = committed()
    node.now_ms += 100
    node.ask(fetch(4, 10, last_epoch=1))
    now_ms = node.now_ms
    assert describe(node.state, now_ms) == QuorumStatus(
        leader_id=1,
        epoch=4,
        high_watermark=21,
        voters=(
            ReplicaStatus(key(1), 21, now_ms, now_ms),
            ReplicaStatus(key(2), 21, now_ms - 100, now_ms - 100),
            ReplicaStatus(key(3), 21, now_ms - 100, now_ms - 100),
        ),
        observers=(ReplicaStatus(key(4), 10, now_ms, -1),),
    )
    node.now_ms += 300_000
    assert description(node).observers == ()
    assert describe(following().state, now_ms) is None


def test_a_replica_that_no_leader_answers_describes_the_quorum_from_before() -> None:
    alone = following().state
    assert describe_leaderless(alone._replace(high_watermark=20), 5_000, 2_000) == QuorumStatus(
        leader_id=-1,
        epoch=3,
        high_watermark=20,
        voters=(
            ReplicaStatus(key(1), alone.log.end_offset, 5_000, 2_000),
            ReplicaStatus(key(2), -1, -1, -1),
            ReplicaStatus(key(3), -1, -1, -1),
        ),
        observers=(),
    )


def test_who_leads_or_is_answered_by_its_leader_is_led() -> None:
    leader = committed()
    assert is_led(leader.state, leader.now_ms)
    node = following()
    assert not is_led(node.state, node.now_ms), "its leader has not answered yet"
    node.answer(2, fetched())
    assert is_led(node.state, node.now_ms)


@pytest.mark.parametrize("node_id", [1, 7], ids=["a voter", "an observer"])
@pytest.mark.parametrize("is_over", [False, True], ids=["silent", "ended"])
def test_a_leader_that_is_silent_or_whose_process_has_ended_leads_no_replica(
    node_id: int, *, is_over: bool
) -> None:
    node = Node(ElectionState(3, leader_id=2), node_id=node_id)
    node.take(TimePassed())
    node.answer(2, fetched())
    assert is_led(node.state, node.now_ms)
    if is_over:
        node.answer(2, Refused())
    else:
        node.wait(SETTINGS.fetch_timeout_ms)
    assert not is_led(node.state, node.now_ms)


def test_a_replica_that_is_one_fetch_behind_was_caught_up_at_the_fetch_before() -> None:
    node = committed()
    node.ask(fetch(4, 10, last_epoch=1))
    first_ms = node.now_ms
    node.now_ms += 50
    append(node, 5)
    node.ask(fetch(4, 21))
    assert description(node).observers[0].last_caught_up_ms == first_ms

"""The core's values on their way through Kafka's messages, in every version that quorums use."""

from __future__ import annotations

from types import ModuleType
from typing import Any, TypeVar

import pytest

from pykafka_broker.protocol.compile import decode, encode
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.fetch import FetchResponse
from pykafka_broker.protocol.messages.fetch_snapshot import FetchSnapshotResponse
from pykafka_broker.raft.core.log_view import EpochEnd, SnapshotId
from pykafka_broker.raft.core.messages import (
    NOT_WATCHED,
    Acknowledged,
    AddVoter,
    BeginQuorumEpoch,
    ChangeAnswer,
    Current,
    EndQuorumEpoch,
    Fetch,
    FetchAnswer,
    FetchSnapshot,
    FetchSnapshotAnswer,
    RemoveVoter,
    UpdateVoter,
    Vote,
    VoteAnswer,
)
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter
from pykafka_broker.raft.snapshots import metadata_batch
from pykafka_broker.raft.wire import (
    add_raft_voter,
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from pykafka_broker.raft.wire.common import MalformedAnswer, NotAvailable, Scope
from pykafka_broker.raft.wire.fetched import fetched_batches

M = TypeVar("M")

SCOPE = Scope("cluster-1")
ONE, TWO = ReplicaKey(1, b"1" * 16), ReplicaKey(2, b"2" * 16)
ENDPOINTS = {"CONTROLLER": ("localhost", 9093)}
#: The leader of an epoch, with and without an address.
LEADER = Current(7, 2, ENDPOINTS)
UNKNOWN = Current(7)


def sent(message: M, version: int) -> M:
    """The message as it arrives at the other side."""
    return decode(type(message), version, encode(message, version))[0]


BEGIN = BeginQuorumEpoch(7, 2, ENDPOINTS, ONE)
END = EndQuorumEpoch(7, 2, ENDPOINTS, (TWO, ONE))
FETCH = Fetch(7, ONE, 100, 6, 500, 90)
PART = FetchSnapshot(7, ONE, SnapshotId(50, 6), 1_000, 1 << 20)


@pytest.mark.parametrize(
    ("rpc", "asked", "version", "arrives"),
    [
        (vote, VOTE := Vote(7, ONE, TWO, 6, 100, pre_vote=True), 2, VOTE),
        (vote, VOTE, 1, VOTE._replace(pre_vote=False)),
        (vote, VOTE, 0, Vote(7, ReplicaKey(1), None, 6, 100)),
        (begin_quorum_epoch, BEGIN, 1, BEGIN),
        (begin_quorum_epoch, BEGIN, 0, BeginQuorumEpoch(7, 2, {}, None)),
        (end_quorum_epoch, END, 1, END),
        (end_quorum_epoch, END, 0, EndQuorumEpoch(7, 2, {}, (ReplicaKey(2), ReplicaKey(1)))),
        (fetch_snapshot, PART, 1, PART),
        (fetch_snapshot, PART, 0, PART._replace(replica=ReplicaKey(1))),
    ],
)
def test_a_request_arrives_as_far_as_its_version_can_tell(
    rpc: ModuleType, asked: object, version: int, arrives: object
) -> None:
    assert rpc.read_request(sent(rpc.request(asked, SCOPE), version), SCOPE) == arrives


@pytest.mark.parametrize(
    ("version", "arrives"),
    [
        (18, FETCH),
        (17, FETCH._replace(high_watermark=NOT_WATCHED)),
        (15, FETCH._replace(replica=ReplicaKey(1), high_watermark=NOT_WATCHED)),
        (13, FETCH._replace(replica=ReplicaKey(1), high_watermark=NOT_WATCHED)),
    ],
)
def test_a_fetch_arrives_as_far_as_its_version_can_tell(version: int, arrives: Fetch) -> None:
    assert fetch.read_request(sent(fetch.request(FETCH, SCOPE, 1 << 20), version), SCOPE) == arrives


@pytest.mark.parametrize(
    ("rpc", "answer"),
    [
        (vote, VoteAnswer(ErrorCode.NONE, UNKNOWN, granted=True)),
        (vote, VoteAnswer(ErrorCode.FENCED_LEADER_EPOCH, LEADER)),
        (begin_quorum_epoch, Acknowledged(ErrorCode.INVALID_VOTER_KEY, LEADER)),
        (end_quorum_epoch, Acknowledged(ErrorCode.NONE, LEADER)),
    ],
)
def test_an_answer_tells_where_the_leader_is_from_version_1_on(
    rpc: ModuleType, answer: VoteAnswer | Acknowledged
) -> None:
    assert rpc.read_response(sent(rpc.response(answer, SCOPE), 1), SCOPE) == answer
    told = rpc.read_response(sent(rpc.response(answer, SCOPE), 0), SCOPE)
    assert told == answer._replace(current=answer.current._replace(endpoints={}))


RECORDS = metadata_batch([b"one"], base_offset=100, epoch=6, now_ms=0)


@pytest.mark.parametrize(
    ("answer", "records"),
    [
        (FetchAnswer(ErrorCode.NONE, LEADER, 101, 50, batches=fetched_batches(RECORDS)), RECORDS),
        (FetchAnswer(ErrorCode.NONE, LEADER, None, 50), b""),
        (FetchAnswer(ErrorCode.NONE, LEADER, 101, 50, diverging=EpochEnd(5, 90)), b""),
        (FetchAnswer(ErrorCode.NONE, LEADER, 101, 50, snapshot_id=SnapshotId(50, 6)), b""),
        (FetchAnswer(ErrorCode.UNKNOWN_LEADER_EPOCH, UNKNOWN), b""),
    ],
)
def test_the_answer_to_a_fetch(answer: FetchAnswer, records: bytes) -> None:
    assert fetch.read_response(sent(fetch.response(answer, SCOPE, records), 18), SCOPE) == answer


def test_the_answer_to_a_fetch_of_a_snapshot() -> None:
    answer = FetchSnapshotAnswer(ErrorCode.NONE, LEADER, SnapshotId(50, 6), 5_000, 1_000, data=b"part")
    assert sent_part(answer, b"part") == answer
    missing = FetchSnapshotAnswer(ErrorCode.SNAPSHOT_NOT_FOUND, LEADER)
    assert sent_part(missing, b"") == missing._replace(snapshot_id=fetch_snapshot.NO_SNAPSHOT)


def sent_part(answer: FetchSnapshotAnswer, data: bytes) -> FetchSnapshotAnswer:
    response = sent(fetch_snapshot.response(answer, SCOPE, data), 1)
    return fetch_snapshot.read_response(response, SCOPE)


OTHER = Scope("cluster-2")


@pytest.mark.parametrize(
    ("rpc", "request_"),
    [
        (vote, vote.request(VOTE, OTHER)),
        (begin_quorum_epoch, begin_quorum_epoch.request(BEGIN, OTHER)),
        (end_quorum_epoch, end_quorum_epoch.request(END, OTHER)),
        (fetch, fetch.request(FETCH, OTHER, 1)),
        (fetch_snapshot, fetch_snapshot.request(PART, OTHER)),
    ],
)
def test_a_request_from_another_cluster_is_refused_as_a_whole(rpc: ModuleType, request_: Any) -> None:
    refused = rpc.read_request(request_, SCOPE)
    assert refused.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    with pytest.raises(MalformedAnswer, match="INCONSISTENT_CLUSTER_ID"):
        rpc.read_response(refused, SCOPE)
    request_.cluster_id = None
    assert not hasattr(rpc.read_request(request_, SCOPE), "error_code"), "without an id it is not compared"


def test_a_node_that_stops_says_so_to_those_who_have_waited() -> None:
    stopping = FetchResponse(error_code=int(ErrorCode.BROKER_NOT_AVAILABLE), responses=[])
    with pytest.raises(NotAvailable, match="it is stopping"):
        fetch.read_response(stopping, SCOPE)


@pytest.mark.parametrize("rpc", [vote, begin_quorum_epoch, end_quorum_epoch])
def test_a_request_about_another_partition_is_invalid(rpc: ModuleType) -> None:
    asked = {vote: VOTE, begin_quorum_epoch: BEGIN, end_quorum_epoch: END}[rpc]
    request = rpc.request(asked, SCOPE)
    for spoil in (rename, add_partition, add_topic, remove_topics, other_partition):
        spoiled = sent(request, 1)
        spoil(spoiled)
        assert rpc.read_request(spoiled, SCOPE).error_code == ErrorCode.INVALID_REQUEST, spoil.__name__


def rename(request: Any) -> None:
    request.topics[0].topic_name = "orders"


def add_partition(request: Any) -> None:
    request.topics[0].partitions *= 2


def add_topic(request: Any) -> None:
    request.topics *= 2


def remove_topics(request: Any) -> None:
    request.topics = []


def other_partition(request: Any) -> None:
    request.topics[0].partitions[0].partition_index = 1


def test_a_fetch_of_another_topic_is_invalid() -> None:
    request = fetch.request(FETCH, SCOPE, 1)
    request.topics[0].topic_id = b"x" * 16
    request.topics[0].topic = "orders"
    refused = fetch.read_request(request, SCOPE)
    assert isinstance(refused, FetchResponse)
    assert refused.error_code == ErrorCode.INVALID_REQUEST


def test_a_snapshot_of_another_topic_is_unknown() -> None:
    request = fetch_snapshot.request(PART, SCOPE)
    request.topics[0].name = "orders"
    refused = fetch_snapshot.read_request(request, SCOPE)
    assert isinstance(refused, FetchSnapshotResponse)
    [partition] = refused.topics[0].partitions
    assert (refused.error_code, partition.error_code) == (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_answers_that_answer_nothing_are_malformed() -> None:
    nothing = vote.response(VoteAnswer(ErrorCode.NONE, LEADER), SCOPE)
    nothing.topics = []
    with pytest.raises(MalformedAnswer, match="0 partitions"):
        vote.read_response(nothing, SCOPE)
    response = fetch.response(FetchAnswer(ErrorCode.NONE, LEADER), SCOPE, b"")
    response.responses[0].partitions[0].current_leader = None
    with pytest.raises(MalformedAnswer, match="no leader epoch"):
        fetch.read_response(response, SCOPE)


def test_an_error_of_a_newer_release_is_an_unknown_one() -> None:
    response = vote.response(VoteAnswer(ErrorCode.NONE, LEADER), SCOPE)
    response.topics[0].partitions[0].error_code = 30_000
    assert vote.read_response(response, SCOPE).error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_changes_of_the_voters() -> None:
    adding = AddVoter(ONE, ENDPOINTS, 2_000, ack_when_committed=False)
    arrived = add_raft_voter.read_request(sent(add_raft_voter.request(adding, SCOPE), 1), SCOPE.cluster_id)
    assert arrived == adding
    arrived = add_raft_voter.read_request(sent(add_raft_voter.request(adding, SCOPE), 0), SCOPE.cluster_id)
    assert arrived == adding._replace(ack_when_committed=True)
    removing = RemoveVoter(TWO)
    removed = remove_raft_voter.read_request(
        sent(remove_raft_voter.request(removing, SCOPE), 0), SCOPE.cluster_id
    )
    assert removed == removing
    updating = UpdateVoter(7, Voter(ONE, ENDPOINTS, (0, 1)))
    request = sent(update_raft_voter.request(updating, SCOPE), 0)
    assert update_raft_voter.read_request(request, SCOPE, Current(3)) == updating

    refused = ChangeAnswer(ErrorCode.DUPLICATE_VOTER, "The voter is there already.")
    assert add_raft_voter.read_response(sent(add_raft_voter.response(refused), 1)) == refused
    assert remove_raft_voter.read_response(sent(remove_raft_voter.response(refused), 0)) == refused
    for answer in (
        Acknowledged(ErrorCode.NONE, LEADER),
        Acknowledged(ErrorCode.NOT_LEADER_OR_FOLLOWER, UNKNOWN),
    ):
        assert (
            update_raft_voter.read_response(sent(update_raft_voter.response(answer, SCOPE), 0), SCOPE)
            == answer
        )

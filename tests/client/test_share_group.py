"""A consumer of a share group: its heartbeats, and what it asks a leader and makes of the answers."""

from __future__ import annotations

import pytest

from pykafka_broker.client.core.frames import MAX_RESPONSE_BYTES
from pykafka_broker.client.core.share_group import (
    Acknowledgement,
    Membership,
    ShareSession,
    acknowledgement_batches,
)
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.epochs import FINAL_EPOCH, INITIAL_EPOCH, JOIN_EPOCH, LEAVE_EPOCH
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages import share_acknowledge
from pykafka_broker.protocol.messages.share_acknowledge import (
    PartitionData as AcknowledgedPartition,
)
from pykafka_broker.protocol.messages.share_acknowledge import (
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from pykafka_broker.protocol.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from pykafka_broker.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from pykafka_broker.protocol.records.batch import BatchFields, build_batch
from pykafka_broker.protocol.records.control import EndTransactionMarker, encode_marker

TOPIC_ID = bytes(range(16))
ACCEPT, RELEASE, REJECT, GAP = (
    Acknowledgement.ACCEPT,
    Acknowledgement.RELEASE,
    Acknowledgement.REJECT,
    Acknowledgement.GAP,
)


def member() -> Membership:
    return Membership("sharers", "one", ["orders"])


def beat(
    epoch: int = 1, error: ErrorCode = ErrorCode.NONE, assigned: list[int] | None = None
) -> ShareGroupHeartbeatResponse:
    topics = None if assigned is None else [TopicPartitions(topic_id=TOPIC_ID, partitions=assigned)]
    return ShareGroupHeartbeatResponse(
        error_code=error,
        error_message=error.name,
        member_id="one",
        member_epoch=epoch,
        heartbeat_interval_ms=5_000,
        assignment=None if topics is None else Assignment(topic_partitions=topics),
    )


class TestAMember:
    def test_tells_its_topics_when_it_joins_and_is_told_its_partitions(self) -> None:
        one = member()
        assert (one.heartbeat().member_epoch, one.heartbeat().subscribed_topic_names) == (
            JOIN_EPOCH,
            ["orders"],
        )
        assert not one.answered(beat(assigned=[0, 2]))
        assert one.assigned == {(TOPIC_ID, 0), (TOPIC_ID, 2)}
        assert one.interval_ms == 5_000
        assert (one.heartbeat().member_epoch, one.heartbeat().subscribed_topic_names) == (1, None)
        assert not one.answered(beat(2))
        assert one.assigned == {(TOPIC_ID, 0), (TOPIC_ID, 2)}, "no assignment is no change"

    @pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
    def test_joins_again_at_once_when_it_was_removed(self, error: ErrorCode) -> None:
        one = member()
        one.answered(beat(assigned=[0]))
        assert one.answered(beat(error=error))
        assert (one.assigned, one.heartbeat().member_epoch) == (frozenset(), JOIN_EPOCH)
        with pytest.raises(KafkaError):
            one.answered(beat(error=error))

    def test_leaves(self) -> None:
        one = member()
        one.answered(beat(assigned=[0]))
        one.leave()
        assert one.heartbeat().member_epoch == LEAVE_EPOCH
        assert not one.answered(beat(error=ErrorCode.UNKNOWN_MEMBER_ID)), "it is gone, as it wanted"


def answer(*partitions: PartitionData, error: ErrorCode = ErrorCode.NONE) -> ShareFetchResponse:
    return ShareFetchResponse(
        error_code=error,
        error_message=None,
        acquisition_lock_timeout_ms=30_000,
        responses=[ShareFetchableTopicResponse(topic_id=TOPIC_ID, partitions=list(partitions))],
        node_endpoints=[],
    )


def data(
    records: bytes = b"",
    *acquired: tuple[int, int, int],
    partition: int = 0,
    error: ErrorCode = ErrorCode.NONE,
    refused: ErrorCode = ErrorCode.NONE,
) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=error,
        acknowledge_error_code=refused,
        current_leader=LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1),
        records=records,
        acquired_records=[
            AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
            for first, last, count in acquired
        ],
    )


def batch(first: int, count: int) -> bytes:
    return build_batch([(0, None, b"%d" % (first + n), ()) for n in range(count)], BatchFields(first))


def marker(offset: int) -> bytes:
    record = (0, *encode_marker(EndTransactionMarker(True, 0)), ())
    return build_batch([record], BatchFields(offset, transactional=True, control=True))


def fetch(session: ShareSession, *partitions: int) -> ShareFetchRequest:
    return session.fetch(partitions, max_records=10, max_wait_ms=500, partition_max_bytes=1_000)


def told(request: ShareFetchRequest) -> dict[int, list[tuple[int, int, list[int]]]]:
    """Partition -> what is acknowledged of it."""
    return {
        partition.partition_index: [
            (run.first_offset, run.last_offset, run.acknowledge_types)
            for run in partition.acknowledgement_batches
        ]
        for topic in request.topics
        for partition in topic.partitions
    }


class TestASession:
    def test_tells_its_partitions_once_and_what_is_new_and_gone(self) -> None:
        session = ShareSession(member(), TOPIC_ID)
        first = fetch(session, 0, 1)
        assert (first.share_session_epoch, told(first)) == (INITIAL_EPOCH, {0: [], 1: []})
        session.fetched(answer())
        second = fetch(session, 0, 1)
        assert (second.share_session_epoch, second.topics, second.forgotten_topics_data) == (1, [], [])
        session.fetched(answer())
        third = fetch(session, 1, 2)
        assert (third.share_session_epoch, told(third)) == (2, {2: []})
        assert third.forgotten_topics_data[0].partitions == [0]

    def test_asks_for_no_more_than_it_takes_however_many_partitions_a_leader_has(self) -> None:
        session = ShareSession(member(), TOPIC_ID)
        request = session.fetch(
            range(5_000), max_records=10, max_wait_ms=500, partition_max_bytes=1024 * 1024
        )
        assert request.max_bytes == MAX_RESPONSE_BYTES
        assert encode(request, 1)

    def test_gives_what_is_acquired_and_nothing_else(self) -> None:
        session = ShareSession(member(), TOPIC_ID)
        fetch(session, 0)
        found = session.fetched(answer(data(batch(0, 3) + batch(3, 3), (1, 1, 2), (4, 5, 1))))
        assert [(each.record.offset, each.record.value, each.delivery_count) for each in found] == [
            (1, b"1", 2),
            (4, b"4", 1),
            (5, b"5", 1),
        ]

    def test_gives_the_records_of_a_partition_before_the_error_of_another(self) -> None:
        session = ShareSession(member(), TOPIC_ID)
        fetch(session, 0, 1)
        denied = data(partition=1, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        found = session.fetched(answer(data(batch(0, 1), (0, 0, 1)), denied))
        assert [each.record.offset for each in found] == [0]
        fetch(session, 0, 1)
        with pytest.raises(KafkaError):
            session.fetched(answer(data(), denied))

    def test_acknowledges_with_the_next_fetch_and_gaps_by_itself(self) -> None:
        session = ShareSession(member(), TOPIC_ID)
        fetch(session, 0)
        found = session.fetched(answer(data(batch(0, 2) + marker(2) + batch(3, 1), (0, 3, 1))))
        assert [each.record.offset for each in found] == [0, 1, 3]
        for each, how in zip(found, (ACCEPT, REJECT, RELEASE), strict=True):
            session.acknowledge(0, each.record.offset, how)
        assert told(fetch(session, 0)) == {0: [(0, 3, [ACCEPT, REJECT, GAP, RELEASE])]}
        session.fetched(answer(data(refused=ErrorCode.INVALID_RECORD_STATE)))
        assert session.refused == [(0, ErrorCode.INVALID_RECORD_STATE)]
        assert told(fetch(session, 0)) == {}

    def test_acknowledges_records_of_a_partition_that_it_is_not_assigned_any_more(self) -> None:
        session = ShareSession(member(), TOPIC_ID)
        fetch(session, 0, 1)
        session.fetched(answer(data(batch(0, 1), (0, 0, 1))))
        session.acknowledge(0, 0, ACCEPT)
        request = fetch(session, 1)
        assert told(request) == {0: [(0, 0, [ACCEPT])]}
        assert request.forgotten_topics_data[0].partitions == [0]

    def test_begins_anew_without_acknowledgements_when_the_leader_does_not_know_it(self) -> None:
        session = ShareSession(member(), TOPIC_ID)
        fetch(session, 0)
        session.fetched(answer(data(batch(0, 1), (0, 0, 1))))
        fetch(session, 0)
        with pytest.raises(KafkaError):
            session.fetched(answer(error=ErrorCode.SHARE_SESSION_NOT_FOUND))
        session.acknowledge(0, 0, ACCEPT)
        again = fetch(session, 0)
        assert (again.share_session_epoch, told(again)) == (INITIAL_EPOCH, {0: []})

    def test_knows_when_a_partition_has_moved(self) -> None:
        session = ShareSession(member(), TOPIC_ID)
        fetch(session, 0)
        assert session.fetched(answer(data(error=ErrorCode.NOT_LEADER_OR_FOLLOWER))) == []
        moved = [session.has_moved]
        fetch(session, 0)
        session.fetched(answer())
        assert [*moved, session.has_moved] == [True, False]
        fetch(session, 0)
        with pytest.raises(KafkaError) as refusal:
            session.fetched(answer(data(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
        assert refusal.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def test_ends_with_the_last_acknowledgements(self) -> None:
        session = ShareSession(member(), TOPIC_ID)
        fetch(session, 0)
        session.fetched(answer(data(batch(0, 2), (0, 1, 1))))
        session.acknowledge(0, 0, ACCEPT)
        request = session.close()
        assert request.share_session_epoch == FINAL_EPOCH
        [run] = request.topics[0].partitions[0].acknowledgement_batches
        assert (run.first_offset, run.last_offset, run.acknowledge_types) == (0, 0, [ACCEPT])
        refused = AcknowledgedPartition(
            partition_index=0,
            error_code=ErrorCode.INVALID_RECORD_STATE,
            current_leader=share_acknowledge.LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1),
        )
        topic = ShareAcknowledgeTopicResponse(topic_id=TOPIC_ID, partitions=[refused])
        session.closed(
            ShareAcknowledgeResponse(error_code=0, error_message=None, responses=[topic], node_endpoints=[])
        )
        assert session.refused == [(0, ErrorCode.INVALID_RECORD_STATE)]
        gone = ShareAcknowledgeResponse(
            error_code=ErrorCode.SHARE_SESSION_NOT_FOUND, error_message=None, responses=[], node_endpoints=[]
        )
        session.closed(gone)


def test_runs_of_offsets_are_told_with_one_type_or_one_for_each() -> None:
    pending = {7: ACCEPT, 1: ACCEPT, 2: ACCEPT, 5: RELEASE, 6: REJECT}
    assert list(acknowledgement_batches(pending)) == [
        (1, 2, [ACCEPT]),
        (5, 7, [RELEASE, REJECT, ACCEPT]),
    ]


def test_a_session_goes_on_with_acknowledgements_alone() -> None:
    session = ShareSession(member(), TOPIC_ID)
    fetch(session, 0)
    session.fetched(answer(data(batch(0, 1), (0, 0, 1))))
    session.acknowledge(0, 0, RELEASE)
    request = session.acknowledging()
    assert request.share_session_epoch == 1
    assert request.topics[0].partitions[0].acknowledgement_batches[0].acknowledge_types == [RELEASE]
    session.acknowledged(
        ShareAcknowledgeResponse(error_code=0, error_message=None, responses=[], node_endpoints=[])
    )
    assert fetch(session, 0).share_session_epoch == 2

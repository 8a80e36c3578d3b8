"""What a node asks other brokers about transactions: markers for their partitions, and first writes whose
transactions they coordinate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from pykafka_broker.cluster.image import NO_LEADER, ClusterImage, PartitionRegistration, TopicImage
from pykafka_broker.coordinator.markers import Marker
from pykafka_broker.coordinator.transactions.add_or_verify import FirstWrite, Participation
from pykafka_broker.coordinator.transactions.marker_routes import MarkerRoutes
from pykafka_broker.coordinator.transactions.remote_markers import RemoteMarkers
from pykafka_broker.coordinator.transactions.remote_participation import RemoteParticipation
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.protocol.messages import add_partitions_to_txn as adding
from pykafka_broker.protocol.messages import write_txn_markers as marking
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.testing.clock import settle
from tests.support.other_brokers import Others

OK = ErrorCode.NONE
T = [TopicPartition("t", index) for index in range(5)]
U0 = TopicPartition("u", 0)
COMMIT = Marker(7, 3, True, 11, 2)
ABORT = Marker(8, 0, False, 12, 0)


# ---- markers ----


def written(request: Any, errors: Mapping[TopicPartition, int] = {}) -> Any:
    """The answer of a broker that has written all markers but these."""
    return marking.WriteTxnMarkersResponse(
        markers=[
            marking.WritableTxnMarkerResult(
                producer_id=asked.producer_id,
                topics=[
                    marking.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            marking.WritableTxnMarkerPartitionResult(
                                partition_index=index,
                                error_code=errors.get(TopicPartition(topic.name, index), 0),
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in asked.topics
                ],
            )
            for asked in request.markers
        ]
    )


async def test_a_marker_goes_with_all_its_partitions_at_a_broker_and_their_outcomes_come_back() -> None:
    others = Others(lambda request: written(request, {T[1]: ErrorCode.NOT_ENOUGH_REPLICAS}))
    outcome = await RemoteMarkers(others).write(2, COMMIT, [T[0], T[1], U0])
    assert outcome == {T[0]: OK, T[1]: ErrorCode.NOT_ENOUGH_REPLICAS, U0: OK}
    assert others.asked == [
        (
            2,
            marking.WriteTxnMarkersRequest(
                markers=[
                    marking.WritableTxnMarker(
                        producer_id=7,
                        producer_epoch=3,
                        transaction_result=True,
                        topics=[
                            marking.WritableTxnMarkerTopic(name="t", partition_indexes=[0, 1]),
                            marking.WritableTxnMarkerTopic(name="u", partition_indexes=[0]),
                        ],
                        coordinator_epoch=11,
                        transaction_version=2,
                    )
                ]
            ),
            0,
        )
    ]


async def test_markers_of_many_transactions_share_a_request() -> None:
    others = Others(written)
    others.free.clear()
    markers = RemoteMarkers(others)
    writing = [asyncio.ensure_future(markers.write(2, marker, [T[0]])) for marker in (COMMIT, ABORT, ABORT)]
    await settle()
    others.free.set()
    assert [await each for each in writing] == [{T[0]: OK}] * 3
    assert [[marker.producer_id for marker in request.markers] for _, request, _ in others.asked] == [
        [7, 8],
        [8],
    ]


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (ConnectionError("reset"), ErrorCode.NETWORK_EXCEPTION),
        (TimeoutError("late"), ErrorCode.NETWORK_EXCEPTION),
        (ProtocolError("noise"), ErrorCode.NETWORK_EXCEPTION),
        (KafkaError(ErrorCode.UNSUPPORTED_VERSION), ErrorCode.UNSUPPORTED_VERSION),
        (marking.WriteTxnMarkersResponse(markers=[]), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_a_marker_without_an_answer_was_not_written(failure: Any, error: ErrorCode) -> None:
    outcome = await RemoteMarkers(Others(lambda _: failure)).write(2, COMMIT, T[:2])
    assert outcome == {T[0]: error, T[1]: error}


async def test_an_error_that_this_node_does_not_know_is_an_error() -> None:
    outcome = await RemoteMarkers(Others(lambda request: written(request, {T[0]: 9_999}))).write(
        2, COMMIT, T[:1]
    )
    assert outcome == {T[0]: ErrorCode.UNKNOWN_SERVER_ERROR}


class Here:
    """The partitions led by node 0."""

    def __init__(self) -> None:
        self.written: list[TopicPartition] = []

    async def write_here(
        self, marker: Marker, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        self.written += partitions
        return dict.fromkeys(partitions, OK)


class Metadata:
    """Topic t, with these leaders."""

    def __init__(self, leaders: list[int]) -> None:
        partitions = {
            index: PartitionRegistration(index, (0, 1, 2), (0, 1, 2), leader)
            for index, leader in enumerate(leaders)
        }
        self.image = ClusterImage(topics={"t": TopicImage("t", b"t" * 16, partitions)})


async def test_each_partition_gets_its_marker_from_its_leader() -> None:
    others, here = Others(written), Here()
    others.dead = {3}
    routes = MarkerRoutes(0, Metadata([0, 1, 2, 3, NO_LEADER]), here, RemoteMarkers(others))  # type: ignore[arg-type]
    assert await routes.write(COMMIT, [*T, U0]) == {
        T[0]: OK,
        T[1]: OK,
        T[2]: OK,
        T[3]: ErrorCode.BROKER_NOT_AVAILABLE,
        T[4]: ErrorCode.LEADER_NOT_AVAILABLE,
        # The topic of U0 is gone, so it needs no marker.
    }
    assert here.written == [T[0]]
    assert [broker_id for broker_id, _, _ in others.asked] == [1, 2]


async def test_a_marker_follows_a_leader_that_moves() -> None:
    others, here = Others(written), Here()
    metadata = Metadata([1])
    routes = MarkerRoutes(0, metadata, here, RemoteMarkers(others))  # type: ignore[arg-type]
    others.answer = lambda _: ConnectionError("gone")
    assert await routes.write(COMMIT, T[:1]) == {T[0]: ErrorCode.NETWORK_EXCEPTION}
    metadata.image = Metadata([0]).image
    assert await routes.write(COMMIT, T[:1]) == {T[0]: OK}
    assert here.written == T[:1]


# ---- first writes ----

WRITE = FirstWrite("payments", 7, 3, frozenset({T[0], T[1], U0}))
OTHER = FirstWrite("refunds", 8, 0, frozenset({T[0]}))


def participating(
    request: Any, errors: Mapping[TopicPartition, ErrorCode] = {}, error: ErrorCode = OK
) -> adding.AddPartitionsToTxnResponse:
    """The answer of a coordinator that takes or finds all partitions but these."""
    return adding.AddPartitionsToTxnResponse(
        error_code=int(error),
        results_by_transaction=[
            adding.AddPartitionsToTxnResult(
                transactional_id=asked.transactional_id,
                topic_results=[
                    adding.AddPartitionsToTxnTopicResult(
                        name=topic.name,
                        results_by_partition=[
                            adding.AddPartitionsToTxnPartitionResult(
                                partition_index=index,
                                partition_error_code=int(errors.get(TopicPartition(topic.name, index), OK)),
                            )
                            for index in topic.partitions
                        ],
                    )
                    for topic in asked.topics
                ],
            )
            for asked in request.transactions
        ],
    )


@pytest.mark.parametrize(
    ("how", "verify_only"),
    [
        (Participation.ADD, False),
        (Participation.VERIFY, True),
        (Participation.VERIFY_FOR_OLD_CLIENT, True),
    ],
)
async def test_a_first_write_is_brought_to_the_coordinator(how: Participation, verify_only: bool) -> None:
    others = Others(lambda request: participating(request, {T[1]: ErrorCode.TRANSACTION_ABORTABLE}))
    answer = await RemoteParticipation(others, lambda: 0).ask(2, WRITE, how)
    assert answer == {T[0]: OK, T[1]: ErrorCode.TRANSACTION_ABORTABLE, U0: OK}
    [(broker_id, request, lowest_version)] = others.asked
    assert (broker_id, lowest_version) == (2, 4)
    assert request == adding.AddPartitionsToTxnRequest(
        transactions=[
            adding.AddPartitionsToTxnTransaction(
                transactional_id="payments",
                producer_id=7,
                producer_epoch=3,
                verify_only=verify_only,
                topics=[
                    adding.AddPartitionsToTxnTopic(name="t", partitions=[0, 1]),
                    adding.AddPartitionsToTxnTopic(name="u", partitions=[0]),
                ],
            )
        ]
    )


async def test_first_writes_of_many_transactions_share_a_request() -> None:
    others = Others(participating)
    others.free.clear()
    remote = RemoteParticipation(others, lambda: 0)
    asking = [
        asyncio.ensure_future(remote.ask(2, write, Participation.ADD)) for write in (WRITE, OTHER, OTHER)
    ]
    await settle()
    others.free.set()
    assert [set((await each).values()) for each in asking] == [{OK}] * 3
    assert [[each.transactional_id for each in request.transactions] for _, request, _ in others.asked] == [
        ["payments", "refunds"],
        ["refunds"],
    ]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (ConnectionError("reset"), ErrorCode.NETWORK_EXCEPTION),
        (TimeoutError("late"), ErrorCode.NETWORK_EXCEPTION),
        (ProtocolError("noise"), ErrorCode.NETWORK_EXCEPTION),
        # A coordinator from before version 4 cannot be asked; the write is taken as it comes.
        (KafkaError(ErrorCode.UNSUPPORTED_VERSION), OK),
        (
            adding.AddPartitionsToTxnResponse(error_code=int(ErrorCode.NOT_COORDINATOR)),
            ErrorCode.NOT_COORDINATOR,
        ),
        # What brokers may ask each other is no business of clients.
        (
            adding.AddPartitionsToTxnResponse(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)),
            ErrorCode.INVALID_TXN_STATE,
        ),
        (adding.AddPartitionsToTxnResponse(), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_what_keeps_the_coordinator_from_answering_is_told(answer: Any, error: ErrorCode) -> None:
    told = await RemoteParticipation(Others(lambda _: answer), lambda: 0).ask(2, OTHER, Participation.VERIFY)
    assert told == {T[0]: error}


async def test_a_coordinator_that_is_not_alive_is_not_asked() -> None:
    others = Others(participating)
    others.dead = {2}
    for broker_id in (2, NO_LEADER):
        told = await RemoteParticipation(others, lambda: 0).ask(broker_id, OTHER, Participation.ADD)
        assert told == {T[0]: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert not others.asked

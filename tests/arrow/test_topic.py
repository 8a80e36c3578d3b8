"""A reader and the brokers of a topic: asked in turns, and ahead; found again where a leader changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from pykafka_broker.arrow import Limits, read_topic
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from pykafka_broker.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.arrow.batches import batch_of
from tests.support.scripted_broker import Serve, response_frame, scripted_brokers, versions

FETCH, LIST_OFFSETS, METADATA, API_VERSIONS = 1, 2, 3, 18
#: None of them is flexible.
SERVED = versions((FETCH, 4, 11), (LIST_OFFSETS, 1, 5), (METADATA, 0, 8), (API_VERSIONS, 0, 2))
PATIENCE_S = 30.0


@pytest.fixture
def serve() -> Iterator[Serve]:
    with scripted_brokers() as serve:
        yield serve


class Clock:
    """The reader's time, which the test moves, and the reader with each of its pauses."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, _seconds: float) -> None:
        self.now_s += PATIENCE_S + 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("pykafka_broker.arrow.topic.time", clock)
    return clock


class Cluster:
    """The brokers with `fetches`, which lead the partitions of `orders` as `leaders` says, and one that
    knows them.

    Each partition has two records. A broker answers each Fetch with the next of its fetches: a partition,
    with the offset of its one record or an error (NONE: nothing new).
    """

    def __init__(
        self,
        serve: Serve,
        leaders: Mapping[int, int],
        fetches: Mapping[int, list[tuple[int, int | ErrorCode]]],
    ) -> None:
        self.leaders = dict(leaders)
        self.fetches = fetches
        self.asked_for_records = {number: threading.Semaphore(0) for number in fetches}
        self._addresses = {number: serve(self._broker(number)) for number in fetches}
        self.address = serve(self._bootstrap)

    def _bootstrap(self, api_key: int, version: int, correlation_id: int) -> bytes:
        return framed(SERVED if api_key == API_VERSIONS else self._metadata(), version, correlation_id)

    def _metadata(self) -> MetadataResponse:
        here = {number: parse_address(address) for number, address in self._addresses.items()}
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=number, host=each.host, port=each.port)
                for number, each in here.items()
            ],
            cluster_id="c",
            topics=[
                MetadataResponseTopic(
                    error_code=0,
                    name="orders",
                    partitions=[
                        MetadataResponsePartition(
                            error_code=0, partition_index=p, leader_id=leader, replica_nodes=[], isr_nodes=[]
                        )
                        for p, leader in self.leaders.items()
                    ],
                )
            ],
        )

    def _broker(self, number: int) -> Callable[[int, int, int], bytes]:
        ends = iter((0, 2))

        def answer(api_key: int, version: int, correlation_id: int) -> bytes:
            if api_key == API_VERSIONS:
                return framed(SERVED, version, correlation_id)
            if api_key == LIST_OFFSETS:
                led = [partition for partition, leader in self.leaders.items() if leader == number]
                return framed(listed(led, next(ends)), version, correlation_id)
            self.asked_for_records[number].release()
            return framed(fetched(*self.fetches[number].pop(0)), version, correlation_id)

        return answer


def framed(message: object, version: int, correlation_id: int) -> bytes:
    return response_frame(correlation_id, encode(message, version))


def listed(partitions: list[int], offset: int) -> ListOffsetsResponse:
    answers = [
        ListOffsetsPartitionResponse(partition_index=p, error_code=0, offset=offset) for p in partitions
    ]
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=answers)])


def fetched(partition: int, what: int | ErrorCode) -> FetchResponse:
    """One record, at this offset, or an error; NONE: neither."""
    is_error = isinstance(what, ErrorCode)
    answer = PartitionData(
        partition_index=partition,
        error_code=what if is_error else 0,
        high_watermark=2,
        aborted_transactions=None,
        records=b"" if is_error else batch_of([b"%d at %d" % (partition, what)], base_offset=what),
    )
    return FetchResponse(responses=[FetchableTopicResponse(topic="orders", partitions=[answer])])


def read(cluster: Cluster, **limits: Any) -> list[bytes]:
    table = read_topic("orders", cluster.address, columns=["value"], limits=Limits(**limits)).read_all()
    found: list[bytes] = table.column("value").to_pylist()
    return found


def test_brokers_are_read_in_turns_and_asked_before_their_last_answer_is_used(serve: Serve) -> None:
    cluster = Cluster(serve, {0: 1, 1: 2}, {1: [(0, 0), (0, 1)], 2: [(1, 0), (1, 1)]})
    reader = read_topic("orders", cluster.address, columns=["value"])

    first = reader.read_next_batch().column(0).to_pylist()
    asked = cluster.asked_for_records[1 if first == [b"0 at 0"] else 2]
    assert asked.acquire(timeout=PATIENCE_S)
    assert asked.acquire(timeout=PATIENCE_S), "the broker was asked again when its first answer had come"
    rest = reader.read_all().column("value").to_pylist()

    assert sorted(first + rest) == [b"0 at 0", b"0 at 1", b"1 at 0", b"1 at 1"]


@pytest.mark.parametrize(
    "moved",
    [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
    ids=lambda code: code.name,
)
def test_a_partition_is_read_on_from_its_new_leader(serve: Serve, moved: ErrorCode) -> None:
    cluster = Cluster(serve, {0: 1}, {1: [(0, 0), (0, moved)], 2: [(0, 1)]})
    reader = read_topic("orders", cluster.address, columns=["value"])
    cluster.leaders = {0: 2}

    assert reader.read_all().column("value").to_pylist() == [b"0 at 0", b"0 at 1"]


def test_a_partition_that_has_no_leader_for_too_long_ends_reading(serve: Serve) -> None:
    cluster = Cluster(serve, {0: 1}, {1: [(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)] * 100})
    with pytest.raises(KafkaError, match="orders-0") as refused:
        read(cluster, timeout_s=0.3)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_broker_that_failed_once_and_leads_nothing_that_is_read_does_not_count(
    serve: Serve, clock: Clock
) -> None:
    moved = ErrorCode.NOT_LEADER_OR_FOLLOWER
    cluster = Cluster(serve, {0: 1, 1: 1}, {1: [(0, 0), (0, 1), (1, moved)], 2: [(1, 0), (1, moved), (1, 1)]})
    reader = read_topic("orders", cluster.address, columns=["value"])
    cluster.leaders = {0: 1, 1: 2}

    assert reader.read_all().column("value").to_pylist() == [b"0 at 0", b"0 at 1", b"1 at 0", b"1 at 1"]


def test_the_time_that_the_caller_takes_is_not_counted_against_the_brokers(
    serve: Serve, clock: Clock
) -> None:
    cluster = Cluster(serve, {0: 1}, {1: [(0, 0), (0, ErrorCode.NONE), (0, 1)]})
    reader = read_topic("orders", cluster.address, columns=["value"])
    reader.read_next_batch()
    clock.now_s += PATIENCE_S + 1

    assert reader.read_all().column("value").to_pylist() == [b"0 at 1"]


def test_an_error_that_does_not_pass_ends_reading(serve: Serve) -> None:
    cluster = Cluster(serve, {0: 1}, {1: [(0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)]})
    with pytest.raises(KafkaError, match="orders-0") as refused:
        read(cluster)
    assert refused.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED

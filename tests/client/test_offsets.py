"""Committing from outside of a group, to a broker that has to make its topic of offsets first; the offsets of
partitions, with and without leaders that tell them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.offsets import (
    EARLIEST,
    LATEST,
    commit_until_done,
    committed_offsets,
    list_offsets,
    told_offsets,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from pykafka_broker.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.cli.conftest import RunningBroker, run_command
from tests.support.offline_partition import TOPIC, half_offline

E = ErrorCode


def test_offsets_are_committed_as_soon_as_there_is_a_coordinator(tmp_path: Path) -> None:
    with RunningBroker(tmp_path) as broker:
        assert run_command("produce", "t", "a", "b", "-b", broker.address).status == 0
        with Client(broker.address, 30.0) as client:
            commit_until_done(client, "g", {("t", 0): 1}, "from outside")
            assert committed_offsets(client, client.coordinator("g"), "g") == {("t", 0): 1}
            assert list_offsets(client, {("t", 0): EARLIEST}) == {("t", 0): 0}
            assert list_offsets(client, {("t", 0): LATEST}) == {("t", 0): 2}


def test_what_stays_wrong_is_an_error_at_once(tmp_path: Path) -> None:
    with RunningBroker(tmp_path) as broker, Client(broker.address, 30.0) as client:
        with pytest.raises(KafkaError) as error:
            commit_until_done(client, "g", {("t", 0): 1})
        assert error.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(KafkaError, match="Topic 'u' does not exist"):
            list_offsets(client, {("u", 0): LATEST})
        assert run_command("topics", "create", "v", "-b", broker.address).status == 0
        with pytest.raises(KafkaError, match="Topic 'v' has no partition 7"):
            list_offsets(client, {("v", 7): LATEST})
        assert list_offsets(client, {("u", 0): LATEST}, missing_ok=True) == {}


def test_the_offsets_of_an_offline_partition_are_an_error_only_for_who_needs_all() -> None:
    with half_offline() as half, Client(half.address, 1.0) as client:
        offline, led, gone = ((TOPIC, number) for number in (half.offline, half.led, 7))
        both = dict.fromkeys((offline, led), LATEST)
        with pytest.raises(KafkaError) as error:
            list_offsets(client, both, missing_ok=True)
        assert error.value.code is E.LEADER_NOT_AVAILABLE
        assert told_offsets(client, {**both, gone: LATEST, ("unknown", 0): LATEST}) == {led: 2}


class Electing(Client):
    """A cluster in which the partitions have these leaders, and others at each next look. What a broker
    answers to ListOffsets is an error of all its partitions, or that they end at the number of the broker.
    """

    def __init__(
        self, leaders: Iterable[Mapping[int, int]], failing: Mapping[int, Exception | ErrorCode]
    ) -> None:
        super().__init__("127.0.0.1:1")
        self._leaders = list(leaders)
        self._failing = failing

    def attempts(self) -> Iterator[bool]:
        yield from (False, True)

    def metadata(self, topics: Iterable[str] | None, *, auto_create: bool = False) -> MetadataResponse:
        partitions = [
            MetadataResponsePartition(
                error_code=0, partition_index=number, leader_id=leader, replica_nodes=[], isr_nodes=[]
            )
            for number, leader in self._leaders.pop(0).items()
        ]
        topic = MetadataResponseTopic(error_code=0, name="orders", partitions=partitions)
        return MetadataResponse(brokers=[], topics=[topic])

    def send(self, request: object, node_id: int | None = None, version: int | None = None) -> Any:
        assert isinstance(request, ListOffsetsRequest)
        assert node_id is not None
        code = self._failing.get(node_id, E.NONE)
        if isinstance(code, Exception):
            raise code
        [topic] = request.topics
        answers = [
            ListOffsetsPartitionResponse(partition_index=p.partition_index, error_code=code, offset=node_id)
            for p in topic.partitions
        ]
        answered = ListOffsetsTopicResponse(name="orders", partitions=answers)
        return ListOffsetsResponse(topics=[answered])


BOTH = {("orders", 0): LATEST, ("orders", 1): LATEST}
PASSING = [
    ConnectionError("broker 2 has just died"),
    KafkaError(E.BROKER_NOT_AVAILABLE),
    E.NOT_LEADER_OR_FOLLOWER,
    E.KAFKA_STORAGE_ERROR,
]


@pytest.mark.parametrize("failing", PASSING)
def test_a_leader_that_tells_nothing_is_waited_for_until_another_one_leads(
    failing: Exception | ErrorCode,
) -> None:
    before, after = {0: 1, 1: 2}, {0: 1, 1: 3}
    assert told_offsets(Electing([before, after], {2: failing}), BOTH) == {
        ("orders", 0): 1,
        ("orders", 1): 3,
    }


@pytest.mark.parametrize("failing", PASSING)
def test_where_no_other_one_leads_the_offsets_of_the_other_partitions_are_told(
    failing: Exception | ErrorCode,
) -> None:
    leaders = {0: 1, 1: 2}
    assert told_offsets(Electing([leaders, leaders], {2: failing}), BOTH) == {("orders", 0): 1}


def test_who_may_not_ask_is_told_so_at_once() -> None:
    client = Electing([{0: 1, 1: 2}], {2: E.TOPIC_AUTHORIZATION_FAILED})
    with pytest.raises(KafkaError) as error:
        told_offsets(client, BOTH)
    assert error.value.code is E.TOPIC_AUTHORIZATION_FAILED

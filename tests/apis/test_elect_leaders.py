"""ElectLeaders (43): on one node every partition has the leader it prefers, and a client is told so."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.elect_leaders import elect_leaders
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from pykafka_broker.testing.user import User
from tests.apis.asking import every

NOT_NEEDED = (ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.ELECTION_NOT_NEEDED.message)


def electing(*partitions: int, topic: str = "t", **fields: Any) -> ElectLeadersRequest:
    asked = TopicPartitions(topic=topic, partitions=list(partitions))
    return ElectLeadersRequest(**{"topic_partitions": [asked], "timeout_ms": 1_000, **fields})


async def results(user: User, request: ElectLeadersRequest, version: int = 2) -> dict[str, Any]:
    answer = await user.send(request, version)
    assert answer.error_code == 0
    return {
        result.topic: {
            partition.partition_id: (partition.error_code, partition.error_message)
            for partition in result.partition_result
        }
        for result in answer.replica_election_results
    }


@pytest.mark.parametrize("version", every(elect_leaders))
async def test_a_leader_that_is_preferred_stays(user: User, version: int) -> None:
    await user.create_topic("t", 2)

    assert await results(user, electing(0, 1), version) == {"t": {0: NOT_NEEDED, 1: NOT_NEEDED}}


async def test_each_partition_is_answered_on_its_own(user: User) -> None:
    await user.create_topic("t")

    assert await results(user, electing(0, 7, election_type=1)) == {
        "t": {0: NOT_NEEDED, 7: (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such partition as t-7")}
    }
    assert await results(user, electing(0, topic="u")) == {
        "u": {0: (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such topic as u")}
    }


async def test_of_all_partitions_those_that_need_no_election_are_not_named(user: User) -> None:
    await user.create_topic("t", 2)

    assert await results(user, ElectLeadersRequest(topic_partitions=None)) == {"t": {}}


async def test_nothing_asked_is_answered_with_nothing(user: User) -> None:
    assert await results(user, ElectLeadersRequest(topic_partitions=[], election_type=9)) == {}


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"election_type": 9}, ErrorCode.INVALID_REQUEST, "Unknown election type 9"),
        ({"timeout_ms": 0}, ErrorCode.REQUEST_TIMED_OUT, None),
    ],
)
async def test_a_request_refused_as_a_whole_tells_each_partition(
    user: User, fields: dict[str, Any], error: ErrorCode, message: str | None
) -> None:
    await user.create_topic("t")

    answer = await user.send(electing(0, **fields), 2)

    [result] = answer.replica_election_results
    [partition] = result.partition_result
    assert (answer.error_code, partition.error_code, partition.error_message) == (error, error, message)

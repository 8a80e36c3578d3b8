"""AlterPartitionReassignments (45): on one node a partition can only have the replica that it has."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.alter_partition_reassignments import alter_partition_reassignments
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from pykafka_broker.testing.user import User
from tests.apis.asking import every


def onto(*replicas: list[int] | None, topic: str = "t", **fields: Any) -> AlterPartitionReassignmentsRequest:
    """The replicas of partitions 0, 1, ... of one topic."""
    partitions = [
        ReassignablePartition(partition_index=index, replicas=each) for index, each in enumerate(replicas)
    ]
    topics = [ReassignableTopic(name=topic, partitions=partitions)]
    return AlterPartitionReassignmentsRequest(**{"topics": topics, "timeout_ms": 1_000, **fields})


async def results(user: User, request: AlterPartitionReassignmentsRequest, version: int = 1) -> list[Any]:
    answer = await user.send(request, version)
    assert (answer.error_code, answer.error_message) == (0, None)
    return [(p.error_code, p.error_message) for topic in answer.responses for p in topic.partitions]


@pytest.mark.parametrize("version", every(alter_partition_reassignments))
async def test_the_replicas_a_partition_has_are_taken_and_change_nothing(user: User, version: int) -> None:
    await user.create_topic("t", 2)

    assert await results(user, onto([1], [1]), version) == [(0, None), (0, None)]

    [topic] = (await user.metadata("t")).topics
    assert [(p.replica_nodes, p.leader_epoch) for p in topic.partitions] == [([1], 0), ([1], 0)]


async def test_each_partition_is_answered_on_its_own(user: User) -> None:
    await user.create_topic("t", 3)

    assert await results(user, onto([1], [9], None, [1])) == [
        (0, None),
        (
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition t:3."),
    ]


async def test_whether_the_replication_factor_may_change_is_said_again(user: User) -> None:
    await user.create_topic("t")

    answer = await user.send(onto([1], allow_replication_factor_change=False), 1)

    assert answer.allow_replication_factor_change is False


async def test_nothing_asked_is_answered_with_nothing(user: User) -> None:
    answer = await user.send(AlterPartitionReassignmentsRequest(topics=[]), 1)

    assert answer == AlterPartitionReassignmentsResponse(error_code=0, error_message="", responses=[])


async def test_a_caller_without_time_left_is_told_so_for_each_partition(user: User) -> None:
    await user.create_topic("t")

    answer = await user.send(onto([1], timeout_ms=0), 1)

    [topic] = answer.responses
    assert answer.error_code == topic.partitions[0].error_code == ErrorCode.REQUEST_TIMED_OUT

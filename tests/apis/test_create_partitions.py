"""CreatePartitions (37): more partitions for a topic, never fewer."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.create_partitions import create_partitions
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.java_hash import string_hash, walked
from pykafka_broker.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from pykafka_broker.testing.user import User
from tests.apis.asking import ends, every


def to(name: str, count: int, assigned: list[list[int]] | None = None) -> CreatePartitionsTopic:
    assignments = None
    if assigned is not None:
        assignments = [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assigned]
    return CreatePartitionsTopic(name=name, count=count, assignments=assignments)


async def results(
    user: User, *topics: CreatePartitionsTopic, version: int = 3, validate_only: bool = False
) -> dict[str, Any]:
    request = CreatePartitionsRequest(topics=list(topics), timeout_ms=1_000, validate_only=validate_only)
    answer = await user.send(request, version)
    return {result.name: (result.error_code, result.error_message) for result in answer.results}


async def partitions(user: User, name: str = "t") -> int:
    [topic] = (await user.metadata(name)).topics
    return len(topic.partitions)


@pytest.mark.parametrize("version", every(create_partitions))
async def test_new_partitions_can_be_used_and_old_ones_keep_their_records(user: User, version: int) -> None:
    await user.create_topic("t")
    await user.produce("t", b"old")

    assert await results(user, to("t", 3), version=version) == {"t": (0, None)}

    assert await user.produce("t", b"new", partition=2) == 0
    assert await user.values("t") == [b"old"]


async def test_new_partitions_may_be_placed_by_hand(user: User) -> None:
    await user.create_topic("t")

    assert await results(user, to("t", 2, [[1]])) == {"t": (0, None)}
    assert await partitions(user) == 2


async def test_validating_only_adds_nothing(user: User) -> None:
    await user.create_topic("t")

    assert await results(user, to("t", 2), validate_only=True) == {"t": (0, None)}
    assert await partitions(user) == 1


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        (to("t", 2), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (
            to("t", 1),
            ErrorCode.INVALID_PARTITIONS,
            "The topic t currently has 2 partition(s); 1 would not be an increase.",
        ),
        (
            to("t", 4, [[1]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            to("t", 3, [[9]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
    ],
    ids=["same", "fewer", "assignments", "broker"],
)
@pytest.mark.parametrize("version", ends(create_partitions))
async def test_what_cannot_be_is_refused_with_the_reason(
    user: User, version: int, wanted: CreatePartitionsTopic, error: ErrorCode, message: str
) -> None:
    await user.create_topic("t", 2)

    assert await results(user, wanted, version=version) == {"t": (error, message)}
    assert await partitions(user) == 2


async def test_one_topics_failure_does_not_touch_the_others(user: User) -> None:
    await user.create_topic("t")

    got = await results(user, to("missing", 3), to("t", 3))

    assert {name: error for name, (error, _) in got.items()} == {
        "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "t": 0,
    }


async def test_a_topic_named_twice_stays_as_it_is(user: User) -> None:
    await user.create_topic("t")

    assert await results(user, to("t", 2), to("t", 3)) == {
        "t": (ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    }
    assert await partitions(user) == 1


async def test_results_come_in_the_order_of_a_hash_set_of_names_those_given_twice_first(user: User) -> None:
    names = ["apple", "cherry", "fig", "kiwi", "plum", "twice", "again"]

    got = await results(user, *(to(name, 2) for name in (*names, "twice", "again")))

    assert list(got)[:2] == walked(["again", "twice"], string_hash)
    assert list(got)[2:] == walked(names[:5], string_hash) != names[:5]

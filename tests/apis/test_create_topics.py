"""CreateTopics (19): topics, counted or assigned by hand, each succeeding or failing on its own."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.create_topics import create_topics
from pykafka_broker.config.describe import ConfigSource
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import NO_ID, ends, every


def topic(
    name: str = "t",
    partitions: int = 1,
    replicas: int = 1,
    assigned: dict[int, list[int]] | None = None,
    **configs: str | None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=-1 if assigned else partitions,
        replication_factor=-1 if assigned else replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in (assigned or {}).items()
        ],
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )


async def created(user: User, *topics: CreatableTopic, version: int = 7, **details: Any) -> dict[str, Any]:
    """The answers by name."""
    answer = await user.send(CreateTopicsRequest(topics=list(topics), **details), version)
    return {result.name: result for result in answer.topics}


async def error_and_message(user: User, wanted: CreatableTopic, **details: Any) -> tuple[int, str | None]:
    [result] = (await created(user, wanted, **details)).values()
    return result.error_code, result.error_message


@pytest.mark.parametrize("version", every(create_topics))
async def test_a_new_topic_can_be_used_as_soon_as_it_is_answered(user: User, version: int) -> None:
    result = (await created(user, topic("t", 3), version=version))["t"]

    assert (result.error_code, result.error_message) == (0, None)
    assert (result.num_partitions, result.replication_factor) == ((3, 1) if version >= 5 else (-1, -1))
    assert result.topic_id == ((await user.topics())["t"] if version >= 7 else NO_ID)
    assert await user.produce("t", b"v", partition=2) == 0


@pytest.mark.parametrize("version", ends(create_topics, since=5))
async def test_the_answer_shows_every_config_by_name_and_where_it_comes_from(
    user: User, version: int
) -> None:
    result = (await created(user, topic(retention_ms="1000"), version=version))["t"]

    shown = {config.name: (config.value, config.config_source) for config in result.configs}
    assert list(shown) == sorted(shown)
    assert shown["retention.ms"] == ("1000", ConfigSource.TOPIC)
    assert shown["segment.bytes"] == ("1073741824", ConfigSource.DEFAULT)
    assert len(shown) > 30


async def test_minus_1_means_the_brokers_defaults(home: Home) -> None:
    home.overrides["num.partitions"] = "4"
    async with home.running() as user:
        result = (await created(user, topic(partitions=-1, replicas=-1)))["t"]

        assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 4, 1)


async def test_partitions_may_be_placed_by_hand(user: User) -> None:
    result = (await created(user, topic(assigned={0: [1], 1: [1]})))["t"]

    assert (result.error_code, result.num_partitions) == (0, 2)


@pytest.mark.parametrize("version", ends(create_topics))
async def test_validating_only_answers_as_usual_and_creates_nothing(user: User, version: int) -> None:
    good = (await created(user, topic("good"), version=version, validate_only=True))["good"]
    bad = (await created(user, topic("bad", 0), version=version, validate_only=True))["bad"]

    assert (good.error_code, bad.error_code) == (0, ErrorCode.INVALID_PARTITIONS)
    assert await user.topics() == {}


@pytest.mark.parametrize("version", ends(create_topics))
async def test_one_topics_failure_does_not_touch_the_others(user: User, version: int) -> None:
    await user.create_topic("there")

    results = await created(user, topic("there"), topic("new"), topic("two words"), version=version)

    assert {name: result.error_code for name, result in results.items()} == {
        "there": ErrorCode.TOPIC_ALREADY_EXISTS,
        "new": 0,
        "two words": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert (results["there"].configs, results["there"].num_partitions) == ([] if version >= 5 else None, -1)


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        pytest.param(
            topic(partitions=0),
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
            id="no partitions",
        ),
        pytest.param(
            topic(replicas=0),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
            id="no replicas",
        ),
        pytest.param(
            topic(replicas=2),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be "
            "reached because only 1 broker(s) are registered or some brokers have all their log directories "
            "cordoned.",
            id="more replicas than brokers",
        ),
        pytest.param(
            topic("two words"),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: 'two words' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'",
            id="name",
        ),
        pytest.param(
            topic("__cluster_metadata"),
            ErrorCode.INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
            id="the metadata log",
        ),
        pytest.param(
            topic(assigned={0: [1], 2: [1]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
            id="gap",
        ),
        pytest.param(
            topic(assigned={0: [9]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
            id="unknown broker",
        ),
        pytest.param(
            topic(assigned={0: [1, 1]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 1 more than once.",
            id="broker twice",
        ),
        pytest.param(
            topic(no_such_key="1"),
            ErrorCode.INVALID_CONFIG,
            "Unknown topic config name: no.such.key",
            id="unknown key",
        ),
        pytest.param(
            topic(retention_ms="soon"),
            ErrorCode.INVALID_CONFIG,
            "Invalid value soon for configuration retention.ms: Not a number of type LONG",
            id="value",
        ),
        pytest.param(
            topic(retention_ms=None),
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs: retention.ms",
            id="null",
        ),
    ],
)
@pytest.mark.parametrize("version", ends(create_topics))
async def test_a_topic_that_cannot_be_is_refused_with_the_reason(
    user: User, version: int, wanted: CreatableTopic, error: ErrorCode, message: str
) -> None:
    got = await error_and_message(user, wanted, version=version)

    assert got == (error, message)
    assert await user.topics() == {}


async def test_names_that_differ_only_in_dot_and_underscore_would_share_metrics(user: User) -> None:
    await user.create_topic("a.b")

    assert await error_and_message(user, topic("a_b")) == (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "Topic 'a_b' collides with existing topic: a.b",
    )


async def test_a_topic_named_twice_is_created_in_neither_shape(user: User) -> None:
    answer = await user.send(CreateTopicsRequest(topics=[topic("t"), topic("t", 2)]), 7)

    [result] = answer.topics
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    assert await user.topics() == {}


async def test_no_patience_is_a_timeout(user: User) -> None:
    assert (await error_and_message(user, topic(), timeout_ms=0))[0] == ErrorCode.REQUEST_TIMED_OUT


async def test_topics_outlive_a_restart(home: Home) -> None:
    async with home.running() as user:
        await created(user, topic("t", 2, retention_ms="1000"))
        before = await user.topics()
    async with home.running() as user:
        assert await user.topics() == before
        assert await user.config(2, "t", "retention.ms") == "1000"

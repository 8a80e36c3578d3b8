"""DescribeTopicPartitions (75): topics and partitions, a page at a time."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User

TOPIC_OPERATIONS = 3576


def asking(
    *names: str, limit: int = 2_000, after: tuple[str, int] | None = None
) -> DescribeTopicPartitionsRequest:
    cursor = None if after is None else Cursor(topic_name=after[0], partition_index=after[1])
    topics = [TopicRequest(name=name) for name in names]
    return DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=cursor)


def shown(answer: Any) -> tuple[dict[str, list[int]], tuple[str, int] | None]:
    """Partitions by topic, and where the next page starts."""
    cursor = answer.next_cursor
    return (
        {topic.name: [p.partition_index for p in topic.partitions] for topic in answer.topics},
        cursor and (cursor.topic_name, cursor.partition_index),
    )


@pytest.fixture
async def topics(user: User) -> None:
    """Three topics: a with 3 partitions, b with 2, c with 1."""
    for name, partitions in (("b", 2), ("c", 1), ("a", 3)):
        await user.create_topic(name, partitions)


async def test_a_topic_is_described_with_who_may_be_elected(user: User) -> None:
    topic_id = await user.create_topic("t")

    answer = await user.send(asking("t"), 0)

    assert answer.topics == [
        DescribeTopicPartitionsResponseTopic(
            error_code=0,
            name="t",
            topic_id=topic_id,
            partitions=[
                DescribeTopicPartitionsResponsePartition(
                    error_code=0,
                    partition_index=0,
                    leader_id=1,
                    leader_epoch=0,
                    replica_nodes=[1],
                    isr_nodes=[1],
                    eligible_leader_replicas=[],
                    last_known_elr=[],
                    offline_replicas=[],
                )
            ],
            topic_authorized_operations=TOPIC_OPERATIONS,
        )
    ]


@pytest.mark.usefixtures("topics")
async def test_topics_come_in_the_order_of_the_alphabet_and_none_named_means_all(user: User) -> None:
    everything = {"a": [0, 1, 2], "b": [0, 1], "c": [0]}

    assert shown(await user.send(asking(), 0)) == (everything, None)
    assert shown(await user.send(asking("c", "b", "a", "b"), 0)) == (everything, None)


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7])
async def test_following_the_cursor_shows_everything_once(user: User, limit: int) -> None:
    seen: list[tuple[str, int]] = []
    after: tuple[str, int] | None = None
    while True:
        page, after = shown(await user.send(asking("a", "b", "c", limit=limit, after=after), 0))
        on_page = [(name, index) for name, indexes in page.items() for index in indexes]
        assert len(on_page) <= limit
        seen += on_page
        if after is None:
            break

    assert seen == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("c", 0)]


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("limit", [0, -1])
async def test_a_limit_below_1_acts_as_1(user: User, limit: int) -> None:
    assert shown(await user.send(asking("a", limit=limit), 0)) == ({"a": [0]}, ("a", 1))


async def test_the_brokers_limit_holds_as_well(home: Home) -> None:
    home.overrides["max.request.partition.size.limit"] = "2"
    async with home.running() as user:
        await user.create_topic("a", 3)

        assert shown(await user.send(asking("a"), 0)) == ({"a": [0, 1]}, ("a", 2))


@pytest.mark.usefixtures("topics")
async def test_a_cursor_on_a_topic_that_is_gone_goes_on_with_the_next(user: User) -> None:
    await user.delete_topic("b")

    assert shown(await user.send(asking(after=("b", 1)), 0)) == ({"c": [0]}, None)


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("request_of_none", [asking("a", after=("b", 0)), asking("a", after=("a", -1))])
async def test_a_cursor_that_points_nowhere_is_refused(user: User, request_of_none: Any) -> None:
    answer = await user.send(request_of_none, 0)

    assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]


@pytest.mark.usefixtures("topics")
async def test_unknown_topics_are_named_with_an_error(user: User) -> None:
    answer = await user.send(asking("a", "missing", "two words"), 0)

    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("a", 0),
        ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("two words", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]

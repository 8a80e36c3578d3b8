"""DescribeProducers (61): which producers a partition remembers."""

from __future__ import annotations

from typing import Any

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)
from pykafka_broker.testing.user import User
from tests.apis.asking import partitions_of


async def described(user: User, topic: str, *partitions: int) -> list[Any]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=list(partitions))])
    return partitions_of(await user.send(request, 0))


async def test_a_producer_is_described_by_its_last_batch(user: User) -> None:
    await user.create_topic("t")
    for sequence in (0, 1):
        batch = {"producer_id": 7, "producer_epoch": 2, "base_sequence": sequence}
        await user.produce("t", b"v", timestamp=1000 + sequence, **batch)

    assert await described(user, "t", 0) == [
        PartitionResponse(
            partition_index=0,
            error_code=0,
            active_producers=[
                ProducerState(
                    producer_id=7,
                    producer_epoch=2,
                    last_sequence=1,
                    last_timestamp=1001,
                    coordinator_epoch=-1,
                    current_txn_start_offset=-1,
                )
            ],
        )
    ]


async def test_who_writes_without_an_id_is_not_remembered(user: User) -> None:
    await user.create_topic("t")
    await user.produce("t", b"v")

    [answer] = await described(user, "t", 0)
    assert (answer.error_code, answer.active_producers) == (0, [])


async def test_a_missing_partition_and_a_missing_topic_are_told_apart_by_the_message(user: User) -> None:
    await user.create_topic("t")

    [partition] = await described(user, "t", 9)
    [topic] = await described(user, "missing", 0)

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (partition.error_code, partition.error_message) == (unknown, None)
    assert (topic.error_code, topic.error_message) == (unknown, unknown.message)


async def test_what_cannot_be_a_topic_is_said_to_be_that(user: User) -> None:
    [answer] = await described(user, "two words", 0)

    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert answer.error_message.startswith("Topic name is invalid: 'two words' contains")

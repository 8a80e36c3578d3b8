"""Where partitions end: told by their leaders, this node and others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pykafka_broker.cluster.image import NO_LEADER, ClusterImage, PartitionRegistration, TopicImage
from pykafka_broker.coordinator.end_offsets import EndOffsets
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, ProtocolError
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.testing.clock import VirtualClock, settle
from tests.support.other_brokers import Others

NONE = ErrorCode.NONE
HERE, THERE = 0, 1
#: The leaders of the partitions of topic t.
LEADERS = (HERE, HERE, THERE, THERE, NO_LEADER, 9)


class Metadata:
    def __init__(self) -> None:
        partitions = {
            index: PartitionRegistration(index, (0, 1), (0, 1), leader)
            for index, leader in enumerate(LEADERS)
        }
        self.image = ClusterImage(topics={"t": TopicImage("t", b"t" * 16, partitions)})


class State(NamedTuple):
    high_watermark: int


class Log(NamedTuple):
    state: State


class Led(NamedTuple):
    """A partition that is led here, as far as its end goes."""

    log: Log
    is_end_known: bool = True


class Here:
    """The partitions that this node leads."""

    def __init__(self) -> None:
        self.partitions = {0: Led(Log(State(7)))}

    def led(self, topic: str, partition: int) -> Any:
        return self.partitions.get(partition)

    def why_not_led(self, topic: str, partition: int) -> ErrorCode:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER


class Node:
    def __init__(self, answer: Any) -> None:
        self.clock = VirtualClock()
        self.others = Others(answer)
        self.others.dead = {9}
        self.here = Here()
        self.ends = EndOffsets(HERE, Metadata(), self.here, self.others, WallTimers(self.clock))

    async def latest(self, *partitions: int) -> dict[int, tuple[ErrorCode, int]]:
        ends = await self.ends.latest(("t", partition) for partition in partitions)
        return {partition: end for (_, partition), end in ends.items()}


def told(*partitions: tuple[int, ErrorCode, int]) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name="t",
                partitions=[
                    ListOffsetsPartitionResponse(partition_index=index, error_code=int(error), offset=offset)
                    for index, error, offset in partitions
                ],
            )
        ]
    )


async def test_each_leader_tells_where_its_partitions_end() -> None:
    node = Node(lambda _: told((2, NONE, 20), (3, ErrorCode.OFFSET_NOT_AVAILABLE, -1)))
    none, not_led = ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert await node.latest(0, 1, 2, 3, 4, 5, 6) == {
        0: (NONE, 7),
        1: (not_led, -1),
        2: (NONE, 20),
        3: (ErrorCode.OFFSET_NOT_AVAILABLE, -1),
        4: (none, -1),
        # Its leader is not alive, and there is no such partition.
        5: (none, -1),
        6: (none, -1),
    }
    [(broker_id, request, _)] = node.others.asked
    assert (broker_id, request) == (
        THERE,
        ListOffsetsRequest(
            replica_id=-1,
            isolation_level=0,
            topics=[
                ListOffsetsTopic(
                    name="t",
                    partitions=[
                        ListOffsetsPartition(partition_index=index, timestamp=-1) for index in (2, 3)
                    ],
                )
            ],
        ),
    )


async def test_a_new_leader_says_nothing_before_it_knows_the_end() -> None:
    node = Node(lambda _: told())
    node.here.partitions[0] = Led(Log(State(7)), is_end_known=False)
    assert await node.latest(0) == {0: (ErrorCode.OFFSET_NOT_AVAILABLE, -1)}


async def test_a_partition_that_its_leader_leaves_out_is_not_known_there() -> None:
    node = Node(lambda _: told((2, NONE, 20), (7, NONE, 1)))
    assert await node.latest(2, 3) == {2: (NONE, 20), 3: (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)}


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (ConnectionError("reset"), ErrorCode.NETWORK_EXCEPTION),
        (ProtocolError("noise"), ErrorCode.NETWORK_EXCEPTION),
        (TimeoutError("late"), ErrorCode.REQUEST_TIMED_OUT),
    ],
)
async def test_a_leader_without_an_answer_is_asked_five_times_more(
    failure: Exception, error: ErrorCode
) -> None:
    node = Node(lambda _: failure)
    asking = asyncio.ensure_future(node.latest(2))
    for pause_ms in (2_000, 4_000, 8_000, 16_000, 30_000):
        await settle()
        assert not asking.done()
        await node.clock.pass_time(pause_ms)
    assert await asking == {2: (error, -1)}
    assert len(node.others.asked) == 6


async def test_a_leader_that_answers_at_last_is_believed() -> None:
    answers: list[Any] = [told((2, NONE, 20)), ConnectionError("reset")]
    node = Node(lambda _: answers.pop())
    asking = asyncio.ensure_future(node.latest(2))
    await node.clock.pass_time(2_000)
    assert await asking == {2: (NONE, 20)}


async def test_a_leader_that_cannot_be_asked_is_not_asked_again() -> None:
    node = Node(lambda _: KafkaError(ErrorCode.UNSUPPORTED_VERSION))
    assert await node.latest(2) == {2: (ErrorCode.UNKNOWN_SERVER_ERROR, -1)}
    assert len(node.others.asked) == 1

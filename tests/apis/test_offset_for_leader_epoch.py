"""OffsetForLeaderEpoch (23): where a leader epoch ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pykafka_broker.apis.offset_for_leader_epoch import offset_for_leader_epoch
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import ends, partitions_of

VERSIONS = ends(offset_for_leader_epoch)


def end_of(topic: str, epoch: int, partition: int = 0, current: int = -1) -> Any:
    asked = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
    return OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])])


async def answered(user: User, request: Any, version: int) -> EpochEndOffset:
    [answer] = partitions_of(await user.send(request, version))
    assert isinstance(answer, EpochEndOffset)
    return answer


def ending(epoch: int, offset: int) -> EpochEndOffset:
    return EpochEndOffset(error_code=0, partition=0, leader_epoch=epoch, end_offset=offset)


@pytest.fixture
async def later(home: Home) -> AsyncIterator[User]:
    """A user of a broker that has started again: epoch 0 has two records, the epoch since then one."""
    async with home.running() as user:
        await user.create_topic("t")
        await user.produce("t", b"a", b"b")
    async with home.running() as user:
        await user.produce("t", b"c")
        yield user


async def epoch_now(user: User) -> int:
    [topic] = (await user.metadata("t")).topics
    epoch: int = topic.partitions[0].leader_epoch
    return epoch


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_epoch_ends_where_the_next_one_starts_and_the_last_at_the_logs_end(
    later: User, version: int
) -> None:
    now = await epoch_now(later)

    assert await answered(later, end_of("t", 0), version) == ending(0, 2)
    assert await answered(later, end_of("t", now), version) == ending(now, 3)


@pytest.mark.parametrize("epoch", [-1, 99])
@pytest.mark.parametrize("version", VERSIONS)
async def test_no_epoch_and_an_epoch_to_come_end_nowhere(later: User, version: int, epoch: int) -> None:
    assert await answered(later, end_of("t", epoch), version) == ending(-1, -1)


async def test_an_epoch_without_a_record_has_begun_all_the_same(user: User) -> None:
    await user.create_topic("t")

    assert await answered(user, end_of("t", 0), 4) == ending(0, 0)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_client_of_another_leader_epoch_is_refused(later: User, version: int) -> None:
    now = await epoch_now(later)

    fenced = await answered(later, end_of("t", 0, current=now - 1), version)
    ahead = await answered(later, end_of("t", 0, current=now + 1), version)

    assert fenced == EpochEndOffset(error_code=ErrorCode.FENCED_LEADER_EPOCH, partition=0)
    assert ahead == EpochEndOffset(error_code=ErrorCode.UNKNOWN_LEADER_EPOCH, partition=0)


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_unknown_partition_has_no_epochs(user: User, version: int) -> None:
    await user.create_topic("t")

    for topic, partition in (("t", 7), ("missing", 0)):
        answer = await answered(user, end_of(topic, 0, partition), version)
        assert answer == EpochEndOffset(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partition=partition)

"""DescribeShareGroupOffsets (90): where share groups start reading, and their lag."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.describe_share_group_offsets import describe_share_group_offsets
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import coordinated, every
from tests.apis.share_members import altered, described, emptied, offsets_in, without_share_groups


@pytest.mark.parametrize("version", every(describe_share_group_offsets))
async def test_all_partitions_with_a_state_are_described(home: Home, user: User, version: int) -> None:
    topic_id = await emptied(home, user)
    for _ in range(3):
        await user.produce("t", b"record", partition=1)
    await altered(user, {"t": {1: 2}})

    asked = DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)
    answer = await user.send(DescribeShareGroupOffsetsRequest(groups=[asked]), version)

    assert answer.groups == [
        DescribeShareGroupOffsetsResponseGroup(
            group_id="g",
            error_code=0,
            topics=[
                DescribeShareGroupOffsetsResponseTopic(
                    topic_name="t",
                    topic_id=topic_id,
                    partitions=[
                        # No leader has decided yet where to begin.
                        DescribeShareGroupOffsetsResponsePartition(
                            partition_index=0, start_offset=-1, leader_epoch=0, lag=-1, error_code=0
                        ),
                        DescribeShareGroupOffsetsResponsePartition(
                            partition_index=1,
                            start_offset=2,
                            leader_epoch=0,
                            lag=1 if version else -1,
                            error_code=0,
                        ),
                    ],
                )
            ],
        )
    ]


async def test_partitions_are_described_by_name_whether_there_is_such_a_group_or_not(
    home: Home, user: User
) -> None:
    await emptied(home, user)
    await altered(user, {"t": {0: 0}})
    none = ErrorCode.NONE
    assert offsets_in(await described(user, {"t": [0, 1], "u": [0]})) == {
        ("t", 0): (0, 0, none),
        ("t", 1): (-1, -1, none),
        ("u", 0): (-1, -1, none),
    }
    assert offsets_in(await described(user, {"t": [0]}, group_id="none")) == {("t", 0): (-1, -1, none)}
    assert (await described(user, None, group_id="none")).topics == []
    assert (await described(user, {})).topics == []


async def test_partitions_that_there_are_not_have_no_offset_and_cost_nothing(home: Home, user: User) -> None:
    """Share coordinators were asked about each for half a minute: about a million, if a client liked."""
    await emptied(home, user)
    await altered(user, {"t": {1: 0}})
    none = ErrorCode.NONE
    assert offsets_in(await described(user, {"t": [7]})) == {("t", 7): (-1, -1, none)}

    topic = (await described(user, {"t": [*range(100_000, 1, -1), 1]})).topics[0]
    assert len(topic.partitions) == 100_000
    [known] = [each for each in topic.partitions if each.start_offset != -1]
    assert (known.partition_index, known.start_offset, known.lag) == (1, 0, 0)


@pytest.mark.parametrize(("group_id", "partitions"), [("g", []), ("g", [-1]), ("", [0])])
async def test_what_cannot_be_asked_is_an_error_of_the_group(
    home: Home, user: User, group_id: str, partitions: list[int]
) -> None:
    await emptied(home, user)
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    assert await described(user, {"t": partitions}, group_id=group_id) == (
        DescribeShareGroupOffsetsResponseGroup(
            group_id=group_id, error_code=error, error_message=error.message, topics=[]
        )
    )


async def test_without_the_feature_there_are_no_share_groups(user: User) -> None:
    await coordinated(user)
    await without_share_groups(user)
    assert (await described(user)).error_code == ErrorCode.UNSUPPORTED_VERSION

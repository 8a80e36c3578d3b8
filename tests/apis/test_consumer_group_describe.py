"""ConsumerGroupDescribe (69): consumer groups and their members."""

from __future__ import annotations

import pytest

from pykafka_broker.apis.consumer_group_describe import consumer_group_describe
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka_broker.protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from pykafka_broker.testing.user import User
from tests.apis.asking import coordinated, every, only_member
from tests.apis.test_consumer_group_heartbeat import beat

GROUP_OPERATIONS = 3400


async def described(user: User, *groups: str, version: int = 1) -> list[DescribedGroup]:
    answer = await user.send(
        ConsumerGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=True), version
    )
    found: list[DescribedGroup] = answer.groups
    return found


@pytest.mark.parametrize("version", every(consumer_group_describe))
async def test_a_group_is_shown_with_what_its_members_have_and_are_to_have(user: User, version: int) -> None:
    topic_id = await user.create_topic("t", partitions=2)
    await coordinated(user)
    await beat(user, rack_id="r", instance_id="pod")

    both = Assignment(
        topic_partitions=[TopicPartitions(topic_id=topic_id, topic_name="t", partitions=[0, 1])]
    )
    assert await described(user, "g", version=version) == [
        DescribedGroup(
            error_code=0,
            group_id="g",
            group_state="Stable",
            group_epoch=2,
            assignment_epoch=2,
            assignor_name="uniform",
            members=[
                Member(
                    member_id="m",
                    instance_id="pod",
                    rack_id="r",
                    member_epoch=2,
                    client_id="test-client",
                    client_host="/127.0.0.1",
                    subscribed_topic_names=["t"],
                    subscribed_topic_regex="",
                    assignment=both,
                    target_assignment=both,
                    member_type=1 if version >= 1 else -1,
                )
            ],
            authorized_operations=GROUP_OPERATIONS,
        )
    ]


async def test_groups_of_another_kind_are_not_found_here_and_the_other_way_round(user: User) -> None:
    await user.create_topic("t")
    await only_member(user, "classic")
    await beat(user)

    groups = await described(user, "classic", "unknown", "")
    assert [(group.error_code, group.error_message) for group in groups] == [
        (ErrorCode.GROUP_ID_NOT_FOUND, "Group classic is not a consumer group."),
        (ErrorCode.GROUP_ID_NOT_FOUND, "Group unknown not found."),
        (ErrorCode.INVALID_GROUP_ID, None),
    ]
    [group] = (await user.send(DescribeGroupsRequest(groups=["g"]), 6)).groups
    assert (group.error_code, group.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group g is not a classic group.",
    )


async def test_groups_are_listed_by_type_and_state(user: User) -> None:
    await user.create_topic("t")
    await only_member(user, "classic")
    await beat(user)

    async def listed(states: list[str], types: list[str]) -> list[ListedGroup]:
        answer = await user.send(ListGroupsRequest(states_filter=states, types_filter=types), 5)
        found: list[ListedGroup] = answer.groups
        return found

    consumer = ListedGroup(
        group_id="g", protocol_type="consumer", group_state="Stable", group_type="consumer"
    )
    assert await listed([], ["Consumer"]) == [consumer]
    assert [group.group_id for group in await listed(["stable"], [])] == ["classic", "g"]
    assert [group.group_id for group in await listed([], ["classic"])] == ["classic"]
    assert await listed(["reconciling"], ["consumer"]) == []

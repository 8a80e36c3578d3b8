"""ShareGroupDescribe (77): share groups and their members."""

from __future__ import annotations

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    TopicPartitions,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import coordinated, only_member
from tests.apis.share_members import beat, emptied, sharing, without_share_groups

GROUP_OPERATIONS = 3400


async def described(user: User, *groups: str, operations: bool = True) -> list[DescribedGroup]:
    answer = await user.send(
        ShareGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=operations), 1
    )
    found: list[DescribedGroup] = answer.groups
    return found


def refused(group_id: str, error: ErrorCode, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
    )


async def test_a_group_is_shown_with_its_members(home: Home, user: User) -> None:
    topic_id = await sharing(home, user)
    assert await described(user, "g") == [
        DescribedGroup(
            error_code=0,
            group_id="g",
            group_state="Stable",
            group_epoch=3,
            assignment_epoch=3,
            assignor_name="simple",
            members=[
                Member(
                    member_id="m",
                    member_epoch=3,
                    client_id="test-client",
                    client_host="/127.0.0.1",
                    subscribed_topic_names=["t"],
                    assignment=Assignment(
                        topic_partitions=[
                            TopicPartitions(topic_id=topic_id, topic_name="t", partitions=[0, 1])
                        ]
                    ),
                )
            ],
            authorized_operations=GROUP_OPERATIONS,
        )
    ]
    [group] = await described(user, "g", operations=False)
    assert group.authorized_operations == -0x80000000


async def test_a_group_without_members_is_empty(home: Home, user: User) -> None:
    await emptied(home, user)
    [group] = await described(user, "g")
    assert (group.group_state, group.group_epoch, group.members) == ("Empty", 4, [])


async def test_what_is_no_share_group_is_not_found(user: User) -> None:
    await user.create_topic("t")
    await only_member(user, "classic")
    not_found = ErrorCode.GROUP_ID_NOT_FOUND
    assert await described(user, "classic", "none", "") == [
        refused("classic", not_found, "Group classic is not a share group."),
        refused("none", not_found, "Group none not found."),
        refused("", ErrorCode.INVALID_GROUP_ID),
    ]


async def test_without_the_feature_there_are_no_share_groups(user: User) -> None:
    await coordinated(user)
    await beat(user)
    await without_share_groups(user)
    assert await described(user, "g") == [refused("g", ErrorCode.UNSUPPORTED_VERSION)]

"""ConsumerGroupHeartbeat (68): join, stay in and leave groups whose partitions the broker assigns."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.consumer_group_heartbeat import consumer_group_heartbeat
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import committing_of, coordinated, every

GROUP_RESOURCE = 32


def beating(member_id: str = "m", member_epoch: int = 0, **said: Any) -> ConsumerGroupHeartbeatRequest:
    """A heartbeat; one that joins says everything it must."""
    if member_epoch == 0:
        said = {
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": ["t"],
            "topic_partitions": [],
            **said,
        }
    return ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=member_epoch, **said)


async def beat(user: User, *args: Any, version: int = 1, **said: Any) -> ConsumerGroupHeartbeatResponse:
    answer: ConsumerGroupHeartbeatResponse = await user.send(beating(*args, **said), version)
    return answer


def refused(error: ErrorCode, message: str | None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=error, error_message=message, member_epoch=0, heartbeat_interval_ms=0
    )


@pytest.mark.parametrize("version", every(consumer_group_heartbeat))
async def test_a_member_gets_its_partitions_with_the_answer_to_its_first_heartbeat(
    user: User, version: int
) -> None:
    topic_id = await user.create_topic("t", partitions=3)
    await coordinated(user)

    assert await beat(user, version=version) == ConsumerGroupHeartbeatResponse(
        error_code=0,
        member_id="m",
        member_epoch=2,
        heartbeat_interval_ms=5_000,
        assignment=Assignment(topic_partitions=[TopicPartitions(topic_id=topic_id, partitions=[0, 1, 2])]),
    )
    assert await beat(user, "m", 2, version=version) == ConsumerGroupHeartbeatResponse(
        error_code=0, member_id="m", member_epoch=2, heartbeat_interval_ms=5_000
    )


async def test_version_0_gives_a_member_its_id(user: User) -> None:
    await user.create_topic("t")
    await coordinated(user)

    answer = await beat(user, "", version=0)

    assert answer.member_id is not None
    assert len(answer.member_id) == 22
    assert (await beat(user, answer.member_id, 2, version=0)).error_code == 0


async def test_version_1_wants_the_client_to_have_made_one(user: User) -> None:
    await coordinated(user)

    assert await beat(user, "") == refused(ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")


async def news(home: Home, user: User, member_epoch: int) -> ConsumerGroupHeartbeatResponse:
    """Heartbeats until one brings an assignment; a group is assigned again after a second at the earliest."""
    for _ in range(10):
        await home.clock.pass_time(1_000)
        answer = await beat(user, "m", member_epoch)
        if answer.assignment is not None:
            break
    return answer


async def test_a_regular_expression_is_resolved_beside_the_heartbeats(home: Home, user: User) -> None:
    orders = await user.create_topic("orders-1")
    await user.create_topic("payments")
    await coordinated(user)

    joined = await beat(user, subscribed_topic_names=None, subscribed_topic_regex="orders-.*")
    assert joined.assignment == Assignment(topic_partitions=[])

    # No topic is known yet, so there is nothing to begin an epoch for.
    found = await news(home, user, joined.member_epoch)
    assert (joined.member_epoch, found.member_epoch, found.assignment) == (
        1,
        2,
        Assignment(topic_partitions=[TopicPartitions(topic_id=orders, partitions=[0])]),
    )


async def test_an_expression_that_cannot_be_read_is_refused(user: User) -> None:
    await coordinated(user)

    answer = await beat(user, subscribed_topic_names=None, subscribed_topic_regex="a(")

    assert answer == refused(
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        "SubscribedTopicRegex `a(` is not a valid regular expression: missing ).",
    )


async def test_a_new_topic_reaches_those_who_wait_for_it(home: Home, user: User) -> None:
    await coordinated(user)
    assert (await beat(user)).assignment == Assignment(topic_partitions=[])

    topic_id = await user.create_topic("t")

    assert (await news(home, user, 2)).assignment == Assignment(
        topic_partitions=[TopicPartitions(topic_id=topic_id, partitions=[0])]
    )


async def test_a_group_may_have_settings_of_its_own(user: User) -> None:
    await user.create_topic("t")
    await coordinated(user)
    longer = AlterableConfig(name="consumer.heartbeat.interval.ms", config_operation=0, value="7000")
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name="g", configs=[longer])
    changed = await user.send(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
    assert [each.error_code for each in changed.responses] == [0]

    assert (await beat(user)).heartbeat_interval_ms == 7_000


async def test_a_member_commits_in_its_epoch(user: User) -> None:
    topic_id = await user.create_topic("t")
    await coordinated(user)
    await beat(user)

    async def commit(member_epoch: int, version: int = 9) -> int:
        request = committing_of("g", "t" if version < 10 else topic_id, 5)
        request.member_id, request.generation_id_or_member_epoch = "m", member_epoch
        answer = await user.send(request, version)
        return int(answer.topics[0].partitions[0].error_code)

    assert await commit(2) == 0
    assert await commit(2, version=10) == 0
    assert await commit(3) == ErrorCode.STALE_MEMBER_EPOCH
    assert await commit(1) == ErrorCode.STALE_MEMBER_EPOCH
    assert await commit(2, version=8) == ErrorCode.UNSUPPORTED_VERSION


async def test_it_is_not_served_where_its_protocol_is_switched_off(home: Home) -> None:
    home.overrides["group.coordinator.rebalance.protocols"] = "classic"
    async with home.running() as user:
        await coordinated(user)

        error = ErrorCode.UNSUPPORTED_VERSION
        assert await beat(user) == refused(error, None)


@pytest.mark.parametrize("group_id", ["", " "])
async def test_a_group_without_a_name_is_refused_by_every_broker(user: User, group_id: str) -> None:
    request = beating()
    request.group_id = group_id
    assert await user.send(request, 1) == refused(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")


async def test_without_the_offsets_topic_there_is_no_coordinator(user: User) -> None:
    assert (await beat(user)).error_code == ErrorCode.NOT_COORDINATOR

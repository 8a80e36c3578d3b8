"""Short words for what members of share groups, and those who look after them, ask the group coordinator."""

from __future__ import annotations

from typing import Any

from pykafka_broker.protocol.messages import alter_share_group_offsets as altering
from pykafka_broker.protocol.messages import delete_share_group_offsets as forgetting
from pykafka_broker.protocol.messages import describe_share_group_offsets as offsets
from pykafka_broker.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from pykafka_broker.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.user import User
from tests.apis.asking import coordinated

#: (start offset, lag, error) by (topic, partition).
Offsets = dict[tuple[str, int], tuple[int, int, int]]


def beating(member_id: str = "m", member_epoch: int = 0, **said: Any) -> ShareGroupHeartbeatRequest:
    """A heartbeat; one that joins says everything it must."""
    if member_epoch == 0:
        said = {"subscribed_topic_names": ["t"], **said}
    return ShareGroupHeartbeatRequest(
        **{"group_id": "g", "member_id": member_id, "member_epoch": member_epoch, **said}
    )


async def beat(user: User, *args: Any, **said: Any) -> ShareGroupHeartbeatResponse:
    """The answer to a heartbeat."""
    answer: ShareGroupHeartbeatResponse = await user.send(beating(*args, **said), 1)
    return answer


async def sharing(home: Home, user: User, *, partitions: int = 2) -> bytes:
    """Make topic t, and a member m of share group g that has all its partitions; the topic's id."""
    topic_id = await user.create_topic("t", partitions=partitions)
    await coordinated(user)
    joined = await beat(user)
    await states_made(home)
    await home.clock.pass_time(1_000)
    answer = await beat(user, "m", joined.member_epoch)
    assert answer.assignment is not None and answer.assignment.topic_partitions, answer
    return topic_id


async def states_made(home: Home) -> None:
    """Wait until the share coordinator has made the states that share group g has asked for."""
    groups = home.broker.node.broker.coordinators.groups

    def is_so() -> bool:
        group = groups.shards.shard_of(groups.partition_for("g")).state.share("g")
        return group is not None and group.states is not None and not group.states.initializing

    await until(is_so)


async def emptied(home: Home, user: User, **topic: int) -> bytes:
    """Share group g with states of all partitions of topic t, and without members; the topic's id."""
    topic_id = await sharing(home, user, **topic)
    left = await beat(user, "m", -1)
    assert not left.error_code
    return topic_id


async def described(
    user: User, topics: dict[str, list[int]] | None = None, group_id: str = "g"
) -> offsets.DescribeShareGroupOffsetsResponseGroup:
    """Where a group starts reading, in the newest version."""
    named = None if topics is None else list(topics.items())
    asked = offsets.DescribeShareGroupOffsetsRequestGroup(
        group_id=group_id,
        topics=None
        if named is None
        else [
            offsets.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=partitions)
            for name, partitions in named
        ],
    )
    answer = await user.send(offsets.DescribeShareGroupOffsetsRequest(groups=[asked]), 1)
    [group] = answer.groups
    found: offsets.DescribeShareGroupOffsetsResponseGroup = group
    return found


def offsets_in(group: offsets.DescribeShareGroupOffsetsResponseGroup) -> Offsets:
    """What was found out about each partition."""
    return {
        (topic.topic_name, each.partition_index): (each.start_offset, each.lag, each.error_code)
        for topic in group.topics
        for each in topic.partitions
    }


async def altered(
    user: User, topics: dict[str, dict[int, int]], group_id: str = "g"
) -> altering.AlterShareGroupOffsetsResponse:
    """The answer to new start offsets, by topic and partition."""
    answer: altering.AlterShareGroupOffsetsResponse = await user.send(
        altering.AlterShareGroupOffsetsRequest(
            group_id=group_id,
            topics=[
                altering.AlterShareGroupOffsetsRequestTopic(
                    topic_name=name,
                    partitions=[
                        altering.AlterShareGroupOffsetsRequestPartition(
                            partition_index=partition, start_offset=offset
                        )
                        for partition, offset in partitions.items()
                    ],
                )
                for name, partitions in topics.items()
            ],
        ),
        0,
    )
    return answer


async def forgotten(
    user: User, *topics: str, group_id: str = "g"
) -> forgetting.DeleteShareGroupOffsetsResponse:
    """The answer to a request to forget topics."""
    asked = [forgetting.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
    answer: forgetting.DeleteShareGroupOffsetsResponse = await user.send(
        forgetting.DeleteShareGroupOffsetsRequest(group_id=group_id, topics=asked), 0
    )
    return answer


async def without_share_groups(user: User) -> None:
    """Lower share.version to 0."""
    update = FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)
    answer = await user.send(UpdateFeaturesRequest(timeout_ms=1_000, feature_updates=[update]), 1)
    assert not answer.error_code, answer

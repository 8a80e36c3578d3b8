"""ShareGroupDescribe: the state of a share group, and the partitions of its members."""

from __future__ import annotations

from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.share.events import (
    DescribedShareGroup,
    DescribedShareMember,
    DescribeShareGroup,
)
from pykafka_broker.coordinator.groups.core.share.state import ShareMember
from pykafka_broker.coordinator.groups.core.share.turn import share_group
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.coordinator.groups.core.turn import refuse
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.java_hash import string_hash, walked


def on_describe(groups: Groups, event: DescribeShareGroup, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Describe a group. Partitions of deleted topics are left out."""
    try:
        group = share_group(groups, event.group_id)
    except KafkaError as error:
        return refuse(groups, event.token, DescribedShareGroup(error.code, event.group_id, error.message))
    described = DescribedShareGroup(
        ErrorCode.NONE,
        group.group_id,
        state=group.state.value,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor=config.share_group_assignors[0],
        members=tuple(_member(member, groups.topics) for member in group.members.values()),
    )
    return refuse(groups, event.token, described)


def _member(member: ShareMember, topics: TopicDirectory) -> DescribedShareMember:
    return DescribedShareMember(
        member.member_id,
        member.rack_id,
        member.member_epoch,
        member.client_id,
        member.client_host,
        tuple(walked(sorted(member.subscribed_topic_names), string_hash, sized=True)),
        tuple(
            (topic_id, topic.name, partitions)
            for topic_id, partitions in member.assigned.items()
            if (topic := topics.topic_by_id(topic_id)) is not None
        ),
    )

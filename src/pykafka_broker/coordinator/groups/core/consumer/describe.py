"""ConsumerGroupDescribe: the state of a consumer group, and the partitions and targets of its members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.consumer.heartbeat import consumer_group
from pykafka_broker.coordinator.groups.core.consumer.state import ConsumerGroup, ConsumerMember
from pykafka_broker.coordinator.groups.core.consumer.target import preferred_assignor
from pykafka_broker.coordinator.groups.core.events import (
    DescribeConsumerGroup,
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedPartitions,
)
from pykafka_broker.coordinator.groups.core.state import Groups
from pykafka_broker.coordinator.groups.core.topics import TopicDirectory
from pykafka_broker.coordinator.groups.core.turn import refuse
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.java_hash import string_hash, walked


def on_describe(groups: Groups, event: DescribeConsumerGroup, config: GroupCoordinatorConfig) -> Step[Groups]:
    """Describe a group."""
    try:
        group = consumer_group(groups, event.group_id)
    except KafkaError as error:
        return refuse(groups, event.token, DescribedConsumerGroup(error.code, event.group_id, error.message))
    described = DescribedConsumerGroup(
        ErrorCode.NONE,
        group.group_id,
        state=group.state.value,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor=preferred_assignor(group, config.consumer_group_assignors[0]),
        members=tuple(_member(group, member, groups.topics) for member in group.members.values()),
    )
    return refuse(groups, event.token, described)


def _member(group: ConsumerGroup, member: ConsumerMember, topics: TopicDirectory) -> DescribedConsumer:
    has: dict[bytes, list[int]] = {}
    for owned in (member.assigned, member.pending_revocation):
        for topic_id, epochs in owned.items():
            has.setdefault(topic_id, []).extend(epochs)
    return DescribedConsumer(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.member_epoch,
        member.client_id,
        member.client_host,
        tuple(walked(member.subscribed_topic_names, string_hash, sized=True)),
        member.subscribed_topic_regex,
        _named(has, topics),
        _named(group.target_of(member.member_id), topics),
        member.classic is not None,
    )


def _named(partitions: Mapping[bytes, Iterable[int]], topics: TopicDirectory) -> DescribedPartitions:
    return tuple(
        (topic_id, topic.name, tuple(sorted(partitions[topic_id])))
        for topic_id in partitions
        if (topic := topics.topic_by_id(topic_id)) is not None
    )

"""Groups of the newer kind (KIP-848) as conversations need them: heartbeats in few words."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from interop.conformance.groups import a_group
from interop.conformance.normalise import learn
from interop.conformance.talk import PAUSE_S, SET_UP_TIMEOUT_S, SetUpError, Talk, Topic
from pykafka_broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

CONFIG_OF_GROUP, SET = 32, 0
#: Member epochs that say goodbye.
LEAVE, LEAVE_FOR_A_WHILE = -1, -2


def joining(
    group: str,
    member_id: str,
    *topics: Topic,
    names: Sequence[str] | None = (),
    owned: Mapping[Topic, Sequence[int]] | None = {},
    rebalance_timeout_ms: int = 30_000,
    **more: Any,
) -> ConsumerGroupHeartbeatRequest:
    """The first heartbeat of a member: what it subscribes to, and that it owns nothing."""
    subscription = None if names is None else [*(topic.name for topic in topics), *names]
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=rebalance_timeout_ms,
        subscribed_topic_names=subscription,
        topic_partitions=_partitions(owned),
        **more,
    )


def beating(
    group: str,
    member_id: str,
    epoch: int,
    *,
    names: Sequence[str] | None = None,
    owned: Mapping[Topic, Sequence[int]] | None = None,
    **more: Any,
) -> ConsumerGroupHeartbeatRequest:
    """A later heartbeat, which says only what is new."""
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        subscribed_topic_names=None if names is None else list(names),
        topic_partitions=_partitions(owned),
        **more,
    )


def _partitions(owned: Mapping[Topic, Sequence[int]] | None) -> list[TopicPartitions] | None:
    if owned is None:
        return None
    return [TopicPartitions(topic_id=topic.id, partitions=list(each)) for topic, each in owned.items()]


def owning(answer: ConsumerGroupHeartbeatResponse) -> list[tuple[bytes, int]]:
    """The partitions that a member is told to own."""
    if answer.assignment is None:
        return []
    return [
        (topic.topic_id, partition)
        for topic in answer.assignment.topic_partitions
        for partition in topic.partitions
    ]


def joined(
    talk: Talk, group: str, member_id: str, topic: Topic, *, instance_id: str | None = None, **more: Any
) -> int:
    """Join, and wait until there are partitions; the epoch of the member. Nothing of it is compared.

    The epochs on the way are not met: a coordinator that hears late of the topic counts one more.
    """
    deadline = time.monotonic() + SET_UP_TIMEOUT_S
    request = joining(group, member_id, topic, instance_id=instance_id, **more)
    while True:
        answer = talk.send(request, version=1).receive()
        if answer.error_code:
            raise SetUpError(f"{answer} to {request}")
        if owning(answer):
            learn(answer, 1, talk.names)
            epoch: int = answer.member_epoch
            return epoch
        if time.monotonic() > deadline:
            raise SetUpError(f"{member_id} never got a partition: {answer}")
        time.sleep(PAUSE_S)
        request = beating(group, member_id, answer.member_epoch, owned={}, instance_id=instance_id)


def assigns_at_once(talk: Talk, group: str) -> None:
    """The outcome of a change does not depend on the time since the last one. Who knows a later topic knows
    this config.
    """
    at_once = AlterableConfig(name="consumer.assignment.interval.ms", config_operation=SET, value="0")
    resource = AlterConfigsResource(resource_type=CONFIG_OF_GROUP, resource_name=group, configs=[at_once])
    talk.do(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False))
    known(talk, a_group(talk, "probe"), talk.topic(f"after-{group}"))


def known(talk: Talk, group: str, topic: Topic) -> None:
    """Wait until the coordinator knows a topic; nothing of it is compared. `group` has no other member."""
    deadline = time.monotonic() + SET_UP_TIMEOUT_S
    while not owning(talk.send(joining(group, "probe", topic), version=1).receive()):
        if time.monotonic() > deadline:
            raise SetUpError(f"{topic.name} never became known")
        talk.send(beating(group, "probe", LEAVE), version=1).receive()
        time.sleep(PAUSE_S)

"""Share groups (KIP-932) as conversations need them: heartbeats of members in few words, and groups that have
states of partitions at the share coordinator.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from interop.conformance.consumer_groups import known
from interop.conformance.groups import a_group
from interop.conformance.normalise import learn
from interop.conformance.shares import SHARE
from interop.conformance.talk import PAUSE_S, SET_UP_TIMEOUT_S, SetUpError, Talk, Topic
from pykafka_broker.protocol.messages import alter_share_group_offsets as altering
from pykafka_broker.protocol.messages import delete_share_group_offsets as forgetting
from pykafka_broker.protocol.messages import describe_share_group_offsets as describing
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

#: The member epoch that says goodbye.
LEAVE = -1


def joining(
    group: str, member_id: str, *topics: Topic, names: Sequence[str] | None = (), **more: Any
) -> ShareGroupHeartbeatRequest:
    """The first heartbeat of a member: what it subscribes to."""
    subscription = None if names is None else [*(topic.name for topic in topics), *names]
    return ShareGroupHeartbeatRequest(
        group_id=group, member_id=member_id, member_epoch=0, subscribed_topic_names=subscription, **more
    )


def beating(
    group: str, member_id: str, epoch: int, *, names: Sequence[str] | None = None, **more: Any
) -> ShareGroupHeartbeatRequest:
    """A later heartbeat, which says only what is new."""
    return ShareGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        subscribed_topic_names=None if names is None else list(names),
        **more,
    )


def owning(answer: ShareGroupHeartbeatResponse) -> list[tuple[bytes, int]]:
    """The partitions that a member is told to read."""
    if answer.assignment is None:
        return []
    return [
        (topic.topic_id, partition)
        for topic in answer.assignment.topic_partitions
        for partition in topic.partitions
    ]


def a_share_group(talk: Talk, label: str = "group") -> str:
    """The name of a group that there is not yet; its coordinator is ready, and share coordinators are too."""
    group = a_group(talk, label)
    # The topic of share states is created when a coordinator is looked for.
    key = f"{group}:{'A' * 22}:0"
    talk.do(FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key]), version=6)
    return group


def a_known_topic(talk: Talk, label: str = "topic", partitions: int = 1) -> Topic:
    """A new topic that coordinators of groups know."""
    topic = talk.topic(label, partitions=partitions)
    known(talk, a_group(talk, f"probe-{label}"), topic)
    return topic


def joined(talk: Talk, group: str, member_id: str, *topics: Topic, partitions: int = 1, **more: Any) -> int:
    """Join, and wait until there are so many partitions; the epoch of the member. Nothing of it is compared.

    The epochs on the way are not met: a coordinator that hears late of the topic counts one more.
    """
    deadline = time.monotonic() + SET_UP_TIMEOUT_S
    request = joining(group, member_id, *topics, **more)
    while True:
        answer = talk.send(request, version=1).receive()
        if answer.error_code:
            raise SetUpError(f"{answer} to {request}")
        if len(owning(answer)) >= partitions:
            learn(answer, 1, talk.names)
            epoch: int = answer.member_epoch
            return epoch
        if time.monotonic() > deadline:
            raise SetUpError(f"{member_id} never got its partitions: {answer}")
        time.sleep(PAUSE_S)
        request = beating(group, member_id, answer.member_epoch)


def emptied(talk: Talk, *topics: Topic, partitions: int = 1) -> str:
    """A share group without members that has states of so many partitions."""
    group = a_share_group(talk)
    joined(talk, group, "m", *topics, partitions=partitions)
    talk.do(beating(group, "m", LEAVE), version=1)
    return group


# ---- offsets ----


def where(
    group: str, topics: Mapping[str, Iterable[int]] | None = None
) -> describing.DescribeShareGroupOffsetsRequestGroup:
    """A group in a request for offsets: partitions by topic, or None for all."""
    return describing.DescribeShareGroupOffsetsRequestGroup(
        group_id=group,
        topics=None
        if topics is None
        else [
            describing.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=list(partitions))
            for name, partitions in topics.items()
        ],
    )


def asking_where(
    *groups: describing.DescribeShareGroupOffsetsRequestGroup,
) -> describing.DescribeShareGroupOffsetsRequest:
    return describing.DescribeShareGroupOffsetsRequest(groups=list(groups))


def setting(group: str, *topics: tuple[str, Mapping[int, int]]) -> altering.AlterShareGroupOffsetsRequest:
    """New start offsets: by topic, and by partition."""
    return altering.AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            altering.AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[
                    altering.AlterShareGroupOffsetsRequestPartition(
                        partition_index=partition, start_offset=offset
                    )
                    for partition, offset in offsets.items()
                ],
            )
            for name, offsets in topics
        ],
    )


def forgetting_topics(group: str, *names: str) -> forgetting.DeleteShareGroupOffsetsRequest:
    topics = [forgetting.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
    return forgetting.DeleteShareGroupOffsetsRequest(group_id=group, topics=topics)

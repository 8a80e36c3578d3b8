"""The state of share groups (KIP-932), as their coordinators describe and change it: members, and where a
group starts reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pykafka_broker.cli.group_state import Coordinator, address_of
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.system.named_tuple import NamedTuple


class ShareMember(NamedTuple):
    """A member and its assignment."""

    consumer_id: str
    host: str
    client_id: str
    rack: str | None
    member_epoch: int
    assignment: tuple[TopicPartition, ...]


class StartOffset(NamedTuple):
    """Where a group starts reading a partition; None: not decided yet, or not known."""

    topic: str
    partition: int
    start_offset: int | None
    leader_epoch: int | None
    lag: int | None


class ShareGroup(NamedTuple):
    """The description of a share group; `offsets` is None if they were not asked for."""

    group: str
    state: str
    assignor: str
    group_epoch: int
    assignment_epoch: int
    coordinator: Coordinator
    members: tuple[ShareMember, ...]
    offsets: tuple[StartOffset, ...] | None = None


def describe_share_group(client: Client, name: str) -> ShareGroup:
    """A share group, without its offsets.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, also for a group of another kind; or another error of the coordinator.
    """
    return client.at_coordinator(name, lambda node_id: _described(client, node_id, name))


def _described(client: Client, coordinator: int, name: str) -> ShareGroup:
    from pykafka_broker.protocol.messages.share_group_describe import ShareGroupDescribeRequest

    request = ShareGroupDescribeRequest(group_ids=[name], include_authorized_operations=False)
    [answer] = client.send(request, coordinator).groups
    check(answer.error_code, answer.error_message)
    members = tuple(
        ShareMember(
            m.member_id,
            m.client_host,
            m.client_id,
            m.rack_id,
            m.member_epoch,
            tuple(
                TopicPartition(t.topic_name, p) for t in m.assignment.topic_partitions for p in t.partitions
            ),
        )
        for m in sorted(answer.members, key=lambda member: str(member.member_id))
    )
    return ShareGroup(
        name,
        answer.group_state,
        answer.assignor_name,
        answer.group_epoch,
        answer.assignment_epoch,
        address_of(client, coordinator),
        members,
    )


def start_offsets(client: Client, name: str) -> tuple[StartOffset, ...]:
    """Where a group starts reading each partition that it knows.

    Raises:
        KafkaError: the coordinator's error.
    """
    return client.at_coordinator(name, lambda node_id: _start_offsets(client, node_id, name))


def _start_offsets(client: Client, coordinator: int, name: str) -> tuple[StartOffset, ...]:
    from pykafka_broker.protocol.messages.describe_share_group_offsets import (
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsRequestGroup,
    )

    asked = DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None)
    [group] = client.send(DescribeShareGroupOffsetsRequest(groups=[asked]), coordinator).groups
    check(group.error_code, group.error_message)
    return tuple(
        sorted(_offset(topic.topic_name, each) for topic in group.topics for each in topic.partitions)
    )


def _offset(topic: str, answer: Any) -> StartOffset:
    # Without a leader there is no lag, and the coordinator tells nothing of the partition.
    is_leaderless = answer.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    if not is_leaderless:
        check(answer.error_code, answer.error_message)
    if is_leaderless or answer.start_offset < 0:
        return StartOffset(topic, answer.partition_index, None, None, None)
    lag = None if answer.lag < 0 else answer.lag
    return StartOffset(topic, answer.partition_index, answer.start_offset, answer.leader_epoch, lag)


def set_start_offsets(client: Client, name: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Let a group without members start reading elsewhere; it is created if there is none.

    Raises:
        KafkaError: NON_EMPTY_GROUP, or another error of the coordinator; if it has set some of the offsets,
            the error of the first that it has refused.
    """
    client.at_coordinator(name, lambda node_id: _set(client, node_id, name, offsets))


def _set(client: Client, coordinator: int, name: str, offsets: Mapping[tuple[str, int], int]) -> None:
    from pykafka_broker.protocol.messages.alter_share_group_offsets import (
        AlterShareGroupOffsetsRequest,
        AlterShareGroupOffsetsRequestPartition,
        AlterShareGroupOffsetsRequestTopic,
    )

    topics: dict[str, AlterShareGroupOffsetsRequestTopic] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        if topic not in topics:
            topics[topic] = AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[])
        topics[topic].partitions.append(
            AlterShareGroupOffsetsRequestPartition(partition_index=partition, start_offset=offset)
        )
    request = AlterShareGroupOffsetsRequest(group_id=name, topics=list(topics.values()))
    answer = client.send(request, coordinator)
    check(answer.error_code, answer.error_message)
    for told in answer.responses:
        for each in told.partitions:
            if each.error_code:
                where = f"{told.topic_name}-{each.partition_index}"
                raise KafkaError(ErrorCode(each.error_code), f"{where}: {each.error_message}")


def forget_topics(client: Client, name: str, topics: Iterable[str]) -> dict[str, KafkaError | None]:
    """Let a group without members forget topics; the error of each, None for those that are forgotten.

    Raises:
        KafkaError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, or another error of the coordinator.
    """
    return client.at_coordinator(name, lambda node_id: _forgotten(client, node_id, name, topics))


def _forgotten(
    client: Client, coordinator: int, name: str, topics: Iterable[str]
) -> dict[str, KafkaError | None]:
    from pykafka_broker.protocol.messages.delete_share_group_offsets import (
        DeleteShareGroupOffsetsRequest,
        DeleteShareGroupOffsetsRequestTopic,
    )

    asked = [DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in dict.fromkeys(topics)]
    answer = client.send(DeleteShareGroupOffsetsRequest(group_id=name, topics=asked), coordinator)
    check(answer.error_code, answer.error_message)
    return {
        each.topic_name: KafkaError(ErrorCode(each.error_code), each.error_message or "")
        if each.error_code
        else None
        for each in answer.responses
    }

"""Classic groups as conversations need them: requests of a member in few words, and groups in a state.

`a_group` makes sure that the group has a coordinator. `a_member` joins and syncs, so that the group is
stable; what happens in these steps is not compared. The requests are made by functions named like what a
member does. Members of one group are told apart by what they subscribe with.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interop.conformance.normalise import learn
from interop.conformance.talk import PAUSE_S, SET_UP_TIMEOUT_S, E, Pending, SetUpError, Talk, Topic
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.heartbeat import HeartbeatRequest
from pykafka_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pykafka_broker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pykafka_broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykafka_broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from pykafka_broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment


@dataclass
class Member:
    group: str
    id: str
    generation: int
    instance: str | None = None


# ---- requests ----


def subscribed(user_data: bytes = b"", *topics: str) -> bytes:
    """The subscription in a consumer's JoinGroup; members that differ bring different `user_data`."""
    subscription = ConsumerProtocolSubscription(topics=list(topics), user_data=user_data)
    return struct.pack(">h", 0) + encode(subscription, 0)


def joining(
    group: str,
    member_id: str = "",
    *,
    instance: str | None = None,
    protocols: Mapping[str, bytes] | None = None,
    protocol_type: str = "consumer",
    session_timeout_ms: int = 30_000,
    rebalance_timeout_ms: int = 30_000,
    reason: str | None = None,
) -> JoinGroupRequest:
    offered = {"range": subscribed()} if protocols is None else protocols
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in offered.items()],
        reason=reason,
    )


def assigned(**partitions: list[int]) -> bytes:
    """The assignments that the leader of a group of consumers puts into SyncGroup, by topic."""
    topics = [TopicPartition(topic=topic, partitions=each) for topic, each in partitions.items()]
    return struct.pack(">h", 0) + encode(ConsumerProtocolAssignment(assigned_partitions=topics), 0)


def following(group: str, member_id: str = "", **more: Any) -> JoinGroupRequest:
    """Join as the second of `two_members`."""
    return joining(group, member_id, protocols={"range": subscribed(b"follower")}, **more)


def syncing(
    member: Member,
    assignments: Mapping[str, bytes] | None = None,
    *,
    protocol_type: str | None = "consumer",
    protocol_name: str | None = "range",
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=member.group,
        generation_id=member.generation,
        member_id=member.id,
        group_instance_id=member.instance,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        assignments=[
            SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
            for member_id, assignment in (assignments or {}).items()
        ],
    )


def beating(member: Member) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=member.group,
        generation_id=member.generation,
        member_id=member.id,
        group_instance_id=member.instance,
    )


def leaving(group: str, *members: MemberIdentity) -> LeaveGroupRequest:
    """The one member stands in both places: v0 to v2 know no list."""
    return LeaveGroupRequest(
        group_id=group, member_id=members[0].member_id if members else "", members=list(members)
    )


def one(member: Member) -> MemberIdentity:
    return MemberIdentity(member_id=member.id, group_instance_id=member.instance)


def committing(
    group: str,
    topic: Topic,
    offsets: Mapping[int, int],
    *,
    member_id: str = "",
    generation: int = -1,
    instance: str | None = None,
    metadata: str | None = "",
    leader_epoch: int = -1,
) -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=leader_epoch,
            committed_metadata=metadata,
        )
        for partition, offset in offsets.items()
    ]
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance,
        topics=[OffsetCommitRequestTopic(name=topic.name, topic_id=topic.id, partitions=partitions)],
    )


def fetching(
    talk: Talk, group: str, wanted: Mapping[Topic, list[int]] | None, *, stable: bool = False, **member: Any
) -> OffsetFetchRequest:
    """Of one group, in the shape of the version under test; `wanted` None asks for every topic."""
    if talk.version < 8:
        topics = (
            None
            if wanted is None
            else [
                OffsetFetchRequestTopic(name=topic.name, partition_indexes=indexes)
                for topic, indexes in wanted.items()
            ]
        )
        return OffsetFetchRequest(group_id=group, topics=topics, require_stable=stable)
    return OffsetFetchRequest(groups=[of_group(group, wanted, **member)], require_stable=stable)


def of_group(group: str, wanted: Mapping[Topic, list[int]] | None, **member: Any) -> OffsetFetchRequestGroup:
    topics = (
        None
        if wanted is None
        else [
            OffsetFetchRequestTopics(name=topic.name, topic_id=topic.id, partition_indexes=indexes)
            for topic, indexes in wanted.items()
        ]
    )
    return OffsetFetchRequestGroup(group_id=group, topics=topics, **member)


def every_topic(version: int) -> dict[str, str]:
    """The arrays that are `in_any_order` where OffsetFetch asks for all topics: Apache has a hash map."""
    return {"topics": "name" if version < 8 else "name/topic_id"}


# ---- set-up ----


def a_group(talk: Talk, label: str = "group") -> str:
    """The name of an empty group whose coordinator is ready."""
    group = talk.name(label)
    talk.do(FindCoordinatorRequest(coordinator_keys=[group], key_type=0))
    talk.do(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)]))
    return group


def joined(talk: Talk, group: str, *, instance: str | None = None, **more: Any) -> tuple[Member, list[str]]:
    """Join as a new member, which is answered when the join phase ends; the member and all members' ids."""
    # From v4 on a member without instance id would have to ask twice.
    answer = talk.do(joining(group, instance=instance, **more), version=5 if instance else 3)
    member = Member(group, answer.member_id, answer.generation_id, instance)
    return member, [each.member_id for each in answer.members]


def a_member(
    talk: Talk, group: str, *, instance: str | None = None, share: bytes = b"assignment", **more: Any
) -> Member:
    """The only member of a group, and its leader: the group is stable."""
    member, _ = joined(talk, group, instance=instance, **more)
    talk.do(syncing(member, {member.id: share}), version=3)
    return member


def two_members(talk: Talk, group: str, **more: Any) -> tuple[Member, Member, Talk]:
    """A stable group of a leader, who talks through `talk`, and a follower with a connection of its own."""
    leader = a_member(talk, group, **more)
    other = talk.another()
    follower_joins = other.send(following(group, **more), version=3)
    rebalancing(talk, leader)
    answer = talk.do(joining(group, leader.id, **more), version=3)
    leader = Member(group, answer.member_id, answer.generation_id)
    follower = met(other, follower_joins, group)
    follower_syncs = other.send(syncing(follower), version=3)
    talk.do(syncing(leader, {leader.id: b"first", follower.id: b"second"}), version=3)
    follower_syncs.receive()
    return leader, follower, other


def met(talk: Talk, joins: Pending, group: str, instance: str | None = None) -> Member:
    """The member that a parked JoinGroup has made, its answer not compared."""
    answer = joins.receive()
    learn(answer, joins.version, talk.names)
    return Member(group, answer.member_id, answer.generation_id, instance)


def rebalancing(talk: Talk, member: Member) -> None:
    """Wait until the coordinator tells a member that the group rebalances."""
    deadline = time.monotonic() + SET_UP_TIMEOUT_S
    while talk.send(beating(member), version=4).receive().error_code != E.REBALANCE_IN_PROGRESS:
        if time.monotonic() > deadline:
            raise SetUpError(f"{member} never heard of a rebalance")
        time.sleep(PAUSE_S)

"""Requests that name a group of another kind, share groups and others: the errors of Apache Kafka 4.3.

`python -m interop.share_group_errors` has stored what Apache Kafka 4.3.1 answers.
"""

from __future__ import annotations

import json
from pathlib import Path

from pykafka_broker.coordinator.groups.core.events import (
    CommitTransactionalOffsets,
    ConsumerGroupHeartbeatResult,
    DeleteOffsets,
    DeleteOffsetsResult,
    DescribeConsumerGroup,
    DescribedGroup,
    DescribeGroup,
    JoinResult,
    LeavingMember,
    ListedGroup,
    ListGroups,
    PartitionCommit,
    TopicCommit,
    TopicPartitions,
)
from pykafka_broker.coordinator.groups.core.share.events import DescribedShareGroup, DescribeShareGroup
from pykafka_broker.coordinator.groups.core.topics import TopicInfo
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.members import Member
from tests.support.share_groups import ShareWorld

GOLDEN = Path(__file__).parent / "golden" / "share-group-errors.json"
T = b"t" * 16
NOT_FOUND = ErrorCode.GROUP_ID_NOT_FOUND


def world() -> ShareWorld:
    share = ShareWorld()
    share.set_topics(TopicInfo("t", T, 1))
    share.join_share("a", "t")
    return share


def test_a_classic_client_that_joins_is_told_that_the_protocol_is_another() -> None:
    share = world()
    before = share.state

    joined = share.joined(share.join("g"))

    assert joined == JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    assert share.state is before


def test_a_classic_client_that_believes_it_is_a_member_is_not() -> None:
    share = world()
    unknown = ErrorCode.UNKNOWN_MEMBER_ID

    assert share.synced(share.sync("a", 1)).error is unknown
    assert share.heartbeat("a", 1) is unknown
    assert share.leave("a").members == ((LeavingMember("a"), unknown),)


def test_a_consumer_of_the_new_protocol_finds_no_group_of_its_own() -> None:
    share = world()

    for member_epoch in (0, 1, -1):
        heard = share.join_consumer("c", "t") if member_epoch == 0 else share.consumer("c", member_epoch)
        assert heard == ConsumerGroupHeartbeatResult(NOT_FOUND, "Group g is not a consumer group.")
    described = share.ask(DescribeConsumerGroup, "g")
    assert (described.error, described.error_message) == (NOT_FOUND, "Group g is not a consumer group.")


def test_nothing_is_committed_and_nothing_found() -> None:
    share = world()
    one = (TopicCommit("t", (PartitionCommit(0, 5),)),)

    assert share.commit({("t", 0): 5}) == {("t", 0): NOT_FOUND}
    assert share.commit({("t", 0): 5}, Member("a", 2), version=9) == {("t", 0): NOT_FOUND}
    answer = share.ask(CommitTransactionalOffsets, share.now_ms, "g", one, 7, 0, 0)
    assert answer == (("t", bytes(16), ((0, NOT_FOUND),)),)
    assert share.fetch() == {}
    deleted = share.ask(DeleteOffsets, "g", (TopicPartitions("t", (0,)),))
    assert deleted == DeleteOffsetsResult(NOT_FOUND)


def test_describe_groups_shows_a_dead_group_and_newer_versions_why() -> None:
    share = world()

    assert share.ask(DescribeGroup, 5, "g") == DescribedGroup(ErrorCode.NONE, "g", "Dead")
    assert share.ask(DescribeGroup, 6, "g") == DescribedGroup(
        NOT_FOUND, "g", "Dead", error_message="Group g is not a classic group."
    )


def test_groups_are_listed_with_their_kind_and_state() -> None:
    share = world()
    share.join_consumer("c", "t", group_id="consumers")
    mine = ListedGroup("g", "share", "Stable", "share")

    assert share.ask(ListGroups, (), ("Share",)) == (mine,)
    assert share.ask(ListGroups, ("stable",), ("share",)) == (mine,)
    share.beat("a", -1)
    assert share.ask(ListGroups, ("Empty",), ("share",)) == (mine._replace(state="Empty"),)


def test_other_groups_are_no_share_groups_to_be_described() -> None:
    share = world()
    share.join_consumer("c", "t", group_id="consumers")

    for group_id, message in (
        ("consumers", "Group consumers is not a share group."),
        ("none", "Group none not found."),
    ):
        described = share.ask(DescribeShareGroup, group_id)
        assert described == DescribedShareGroup(NOT_FOUND, group_id, message)


def test_the_errors_are_those_of_apache_kafka() -> None:
    share = world()
    joined = share.joined(share.join("g"))
    left = share.leave("a")
    consumed = share.join_consumer("c", "t")
    described = share.ask(DescribeGroup, 6, "g")
    before = share.ask(DescribeGroup, 5, "g")
    by_nobody = share.commit({("t", 0): 5}, version=9)
    by_a_member = share.commit({("t", 0): 5}, Member("a", 2), version=9)

    assert json.loads(GOLDEN.read_text()) == {
        "JoinGroup": [joined.error, joined.member_id],
        "SyncGroup": share.synced(share.sync("a", 1)).error,
        "Heartbeat": share.heartbeat("a", 1),
        "LeaveGroup": [left.error, [error for _, error in left.members]],
        "OffsetCommit": [by_nobody["t", 0], by_a_member["t", 0]],
        "ConsumerGroupHeartbeat": [consumed.error, consumed.error_message],
        "DescribeGroups": [described.error, described.state, described.error_message],
        "DescribeGroups v5": [before.error, before.state],
        "ListGroups": [list(listed) for listed in share.ask(ListGroups, (), ("Share",))],
        "OffsetDelete": share.ask(DeleteOffsets, "g", (TopicPartitions("t", (0,)),)).error,
    }

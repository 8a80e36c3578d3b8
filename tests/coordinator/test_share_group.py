"""Share groups: joining, epochs, targets that follow the states of partitions, leaving, and refusals."""

from __future__ import annotations

import pytest

from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig, ShareGroupSettings
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.share.events import (
    InitializeShareState,
    ShareGroupHeartbeatResult,
    ShareStateInitialized,
)
from pykafka_broker.coordinator.groups.core.share.state import NamedPartitions, ShareGroup, StatePartitions
from pykafka_broker.coordinator.groups.core.topics import TopicInfo
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records import group as m
from tests.support.share_groups import ShareWorld

T, U = b"t" * 16, b"u" * 16
TOPIC_T, TOPIC_U = TopicInfo("t", T, 2), TopicInfo("u", U, 3)


def world(config: GroupCoordinatorConfig | None = None) -> ShareWorld:
    """A group's shard in a cluster with the topics t and u; targets are made at once."""
    made = ShareWorld(
        config or GroupCoordinatorConfig(share_group=ShareGroupSettings(assignment_interval_ms=0))
    )
    made.set_topics(TOPIC_T, TOPIC_U)
    return made


def kinds(records: tuple[object, ...]) -> list[str]:
    return [type(record.key).__name__ for record in records if isinstance(record, Record)]


def test_the_first_member_gets_nothing_until_the_partitions_have_states() -> None:
    share = world()

    joined = share.join_share("a", "t")

    assert joined == ShareGroupHeartbeatResult(
        member_id="a", member_epoch=2, heartbeat_interval_ms=5_000, assignment=()
    )
    assert kinds(share.last_records) == [
        "ShareGroupMemberMetadataKey",
        "ShareGroupMetadataKey",
        "ShareGroupTargetAssignmentMemberKey",
        "ShareGroupTargetAssignmentMetadataKey",
        "ShareGroupCurrentMemberAssignmentKey",
        "ShareGroupStatePartitionMetadataKey",
    ]
    asked = InitializeShareState("g", 2, ((T, ((0, -1), (1, -1))),))
    assert share.asked == [asked]
    assert share.share_group().states == StatePartitions(initializing={T: NamedPartitions("t", (0, 1))})

    share.initialize()

    assert share.share_group().states == StatePartitions(initialized={T: NamedPartitions("t", (0, 1))})
    assert share.beat("a", 2) == ShareGroupHeartbeatResult(
        member_id="a", member_epoch=3, heartbeat_interval_ms=5_000, assignment=((T, (0, 1)),)
    )


def test_a_member_without_news_hears_nothing_and_nothing_is_written() -> None:
    share = world()
    epoch = share.stable("a")

    share.beat("a", epoch)
    heard = share.beat("a", epoch)

    assert heard == ShareGroupHeartbeatResult(member_id="a", member_epoch=epoch, heartbeat_interval_ms=5_000)
    assert share.last_records == ()


def test_partitions_are_shared_by_more_members_than_there_are_partitions() -> None:
    share = world()

    share.stable("a", "b", "c")

    assert sorted(
        partition for name in "abc" for partition in share.share_group().members[name].assigned[T]
    ) == [0, 0, 1, 1]


def test_a_member_that_repeats_its_previous_epoch_is_let_in_and_others_are_fenced() -> None:
    share = world()
    epoch = share.stable("a")

    assert share.beat("a", epoch - 1).error is ErrorCode.NONE
    assert share.beat("a", epoch + 1) == ShareGroupHeartbeatResult(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a greater member epoch ({epoch + 1}) than the one known by the group "
        f"coordinator ({epoch}). The member must abandon all its partitions and rejoin.",
    )
    share.share("a", epoch, topics=("t", "u"))
    assert share.beat("a", 1) == ShareGroupHeartbeatResult(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a smaller member epoch (1) than the one known by the group coordinator "
        f"({epoch + 1}), and it does not match the previous member epoch ({epoch}). The member must abandon "
        "all its partitions and rejoin.",
    )


def test_a_changed_subscription_takes_the_partitions_at_once_and_gives_others_when_they_have_states() -> None:
    share = world()
    epoch = share.stable("a")

    changed = share.share("a", epoch, topics=("u",))

    assert (changed.member_epoch, changed.assignment) == (epoch + 1, ())
    share.initialize()
    moved = share.beat("a", epoch + 1)
    assert (moved.member_epoch, moved.assignment) == (epoch + 2, ((U, (0, 1, 2)),))


def test_new_partitions_of_a_topic_are_given_once_they_have_states() -> None:
    share = world()
    epoch = share.stable("a")
    share.set_topics(TOPIC_T._replace(partition_count=3), TOPIC_U)

    bumped = share.beat("a", epoch)
    assert (bumped.member_epoch, bumped.assignment) == (epoch + 1, None)
    assert share.asked == [InitializeShareState("g", epoch + 1, ((T, ((2, -1),)),))]

    share.initialize()
    assert share.beat("a", epoch + 1).assignment == ((T, (0, 1, 2)),)


def test_the_states_of_a_topic_that_was_deleted_unseen_do_not_move_the_group_on_and_on() -> None:
    # No shard served the group when the topic was deleted, and nothing told the next one. The group then had
    # a new epoch with every heartbeat, as in Apache Kafka 4.3.
    share = world()
    share.stable("a")
    share.set_topics(TopicInfo("t", b"T" * 16, 2), TOPIC_U)
    share = share.reload()
    for _ in range(4):
        share.beat("a", share.share_group().members["a"].member_epoch)
        share.initialize()

    epoch = share.share_group().group_epoch
    share.beat("a", epoch)
    assert (share.last_records, share.share_group().group_epoch) == ((), epoch)
    assert share.share_group().members["a"].assigned == {b"T" * 16: (0, 1)}


def test_targets_are_made_no_more_often_than_the_interval_says() -> None:
    share = world(GroupCoordinatorConfig(share_group=ShareGroupSettings(assignment_interval_ms=1_000)))
    first = share.join_share("a", "t")
    share.initialize()

    assert share.beat("a", first.member_epoch).member_epoch == 2
    assert share.share_group().group_epoch == 3
    share.advance(1_000)
    assert share.beat("a", 2).assignment == ((T, (0, 1)),)
    assert share.share_group().group_epoch == 3


def test_states_that_could_not_be_made_are_asked_for_with_the_next_heartbeat() -> None:
    share = world()
    share.join_share("a", "t")

    share.initialize(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)

    assert share.share_group().states == StatePartitions()
    share.beat("a", 2)
    assert share.asked == [InitializeShareState("g", 2, ((T, ((0, -1), (1, -1))),))]


def test_states_are_asked_for_again_when_no_answer_comes() -> None:
    share = world()
    share.join_share("a", "t")
    share.asked.clear()

    share.advance(29_999)
    share.beat("a", 2)
    assert share.asked == []
    share.advance(1)
    share.beat("a", 2)
    assert share.asked == [InitializeShareState("g", 2, ((T, ((0, -1), (1, -1))),))]


def test_an_answer_about_a_group_that_is_gone_changes_nothing() -> None:
    share = world()
    work = InitializeShareState("g", 2, ((T, ((0, -1),)),))

    share.submit(ShareStateInitialized(share.now_ms, work, ((T, ((0, ErrorCode.NONE, None),)),)))

    assert share.state.share("g") is None
    assert share.last_records == ()


def test_a_member_that_leaves_is_gone_and_its_partitions_go_to_others() -> None:
    share = world()
    share.stable("a", "b")
    group_epoch = share.share_group().group_epoch

    left = share.beat("b", -1)

    assert left == ShareGroupHeartbeatResult(member_id="b", member_epoch=-1)
    assert [(type(record.key).__name__, record.value is None) for record in share.last_records] == [  # type: ignore[union-attr]
        ("ShareGroupCurrentMemberAssignmentKey", True),
        ("ShareGroupTargetAssignmentMemberKey", True),
        ("ShareGroupMemberMetadataKey", True),
        ("ShareGroupMetadataKey", False),
    ]
    assert share.share_group().group_epoch == group_epoch + 1
    assert ("share-session", "g", "b") not in share.timers
    member = share.share_group().members["a"]
    assert share.beat("a", member.member_epoch).assignment == ((T, (0, 1)),)


def test_a_silent_member_is_expelled_when_its_session_ends() -> None:
    share = world()
    epoch = share.stable("a")
    share.advance(44_999)
    share.beat("a", epoch)

    share.advance(44_999)
    assert "a" in share.share_group().members
    share.advance(1)
    assert share.share_group() == share.share_group()._replace(group_epoch=epoch + 1)
    assert not share.share_group().members
    assert share.beat("a", epoch).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_may_have_its_own_session_and_heartbeat_times() -> None:
    share = world(GroupCoordinatorConfig(share_group_overrides={"g": ShareGroupSettings(50_000, 9_000, 0)}))

    assert share.join_share("a", "t").heartbeat_interval_ms == 9_000
    assert share.timers["share-session", "g", "a"] == share.now_ms + 50_000
    assert share.join_share("a", "t", group_id="h").heartbeat_interval_ms == 5_000


@pytest.mark.parametrize(
    ("member_id", "epoch", "group_id", "topics", "rack", "message"),
    [
        ("", 0, "g", ("t",), None, "MemberId can't be empty."),
        (" ", 0, "", ("t",), None, "MemberId can't be empty."),
        ("a", 0, "", ("t",), None, "GroupId can't be empty."),
        ("a", 0, "g", (), "", "RackId can't be empty."),
        ("a", 0, "g", None, None, "SubscribedTopicNames must be set in first request."),
        ("a", 0, "g", (), None, "SubscribedTopicNames must be set in first request."),
        ("a", -2, "g", None, None, "MemberEpoch is invalid."),
    ],
)
def test_a_heartbeat_that_says_too_little_is_refused(
    member_id: str, epoch: int, group_id: str, topics: tuple[str, ...] | None, rack: str | None, message: str
) -> None:
    share = world()

    refused = share.share(member_id, epoch, topics=topics, group_id=group_id, rack=rack)

    assert refused == ShareGroupHeartbeatResult(ErrorCode.INVALID_REQUEST, message)
    assert not share.state.groups


def test_who_names_a_group_or_a_member_that_is_not_there_is_told_which() -> None:
    share = world()
    share.join_share("a", "t")
    share.join_consumer("c", "t", group_id="consumers")
    not_found, unknown = ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_MEMBER_ID

    assert share.beat("a", 1, group_id="none") == (not_found, "Share group none not found.", None, 0, 0, None)
    assert share.beat("a", -1, group_id="none") == (not_found, "Group none not found.", None, 0, 0, None)
    for epoch in (0, 1, -1):
        refused = share.share("a", epoch, topics=("t",), group_id="consumers")
        assert refused == (not_found, "Group consumers is not a share group.", None, 0, 0, None)
    for epoch in (1, -1):
        refused = share.beat("b", epoch)
        assert refused == (unknown, "Member b is not a member of group g.", None, 0, 0, None)


def test_a_full_group_takes_no_more_members_and_says_so_before_anything_else() -> None:
    share = world(GroupCoordinatorConfig(share_group_max_size=1))
    share.join_share("a", "t")
    full = ShareGroupHeartbeatResult(
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        "The share group has reached its maximum capacity of 1 members.",
    )

    assert share.join_share("b", "t") == full
    assert share.beat("b", 5) == full
    assert share.join_share("a", "t").error is ErrorCode.NONE


def test_a_member_keeps_its_rack_until_it_says_another_and_a_new_host_is_written_down() -> None:
    share = world()
    share.share("a", 0, topics=("t",), rack="r1")
    share.share("a", 2, host="/10.0.0.9")

    assert share.last_records[0] == Record(
        m.ShareGroupMemberMetadataKey(group_id="g", member_id="a"),
        m.ShareGroupMemberMetadataValue(
            rack_id="r1", client_id="client", client_host="/10.0.0.9", subscribed_topic_names=["t"]
        ),
    )
    assert share.share_group().group_epoch == 2


def test_a_new_coordinator_goes_on_with_the_members_and_gives_each_a_new_session() -> None:
    share = world()
    epoch = share.stable("a")
    before = share.share_group()

    after = share.reload()

    assert after.share_group() == before._replace(
        refresh_deadline_ms=0, states_written_ms=share.now_ms, is_settled=False
    )
    assert after.timers["share-session", "g", "a"] == after.now_ms + 45_000
    assert after.beat("a", epoch).error is ErrorCode.NONE
    assert isinstance(after.state.groups["g"], ShareGroup)

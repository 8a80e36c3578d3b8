"""Where share groups start reading: described, set and forgotten; and what goes with the group and its
topics.
"""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig, ShareGroupSettings
from pykafka_broker.coordinator.groups.core.events import DeleteGroup, TopicsDeleted
from pykafka_broker.coordinator.groups.core.share.events import (
    AlteredShareOffsets,
    AlterShareOffsets,
    DeletedShareOffsets,
    DeletedShareTopic,
    DeleteShareOffsets,
    DeleteShareState,
    DeletionPurpose,
    DescribedShareOffsets,
    DescribeShareOffsets,
    EndOffsetsListed,
    InitializeShareState,
    ListEndOffsets,
    ReadShareSummary,
    ShareOffset,
    ShareOutcomeRefused,
    ShareStateDeleted,
    ShareStateInitialized,
    ShareSummary,
    ShareSummaryRead,
)
from pykafka_broker.coordinator.groups.core.share.state import NamedPartitions, StatePartitions
from pykafka_broker.coordinator.groups.core.topics import TopicInfo
from pykafka_broker.coordinator.groups.core.transitions import transition
from pykafka_broker.machine.step import Reply
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from tests.support.share_groups import ShareWorld

T, U = b"t" * 16, b"u" * 16
NONE, REFUSED = ErrorCode.NONE, ErrorCode.NOT_COORDINATOR
NOT_HOSTED = "This server does not host this topic-partition."
NO_ID = bytes(16)


def world(*members: str) -> ShareWorld:
    """A group that shares the topic t, whose members have left unless they are named."""
    share = ShareWorld(GroupCoordinatorConfig(share_group=ShareGroupSettings(assignment_interval_ms=0)))
    share.set_topics(TopicInfo("t", T, 2), TopicInfo("u", U, 1))
    share.stable(*(members or ("a",)))
    if not members:
        share.beat("a", -1)
    return share


def asked(share: ShareWorld, event: Any, *fields: Any) -> int:
    """Submit an event without waiting for its answer; its token."""
    token = share.token()
    share.submit(event(token, *fields))
    return token


def done(work: Any, error: ErrorCode = NONE, message: str | None = None) -> Any:
    """The same outcome for all partitions of the work."""
    return tuple(
        (
            topic_id,
            tuple((each[0] if isinstance(each, tuple) else each, error, message) for each in partitions),
        )
        for topic_id, partitions in work.topics
    )


# ---- describing ----


def test_all_offsets_of_a_group_are_those_of_partitions_with_states() -> None:
    share = world("a")
    token = asked(share, DescribeShareOffsets, "g", None)

    (work,) = share.asked
    named = (("t", T, (0, 1)),)
    assert work == ReadShareSummary(token, "g", named, named=named)
    read = ShareSummaryRead(work, ((T, (ShareSummary(0, NONE, 7, 3, 2), ShareSummary(1))),))
    share.asked.clear()
    share.submit(read)

    (listing,) = share.asked
    assert listing == ListEndOffsets(read, (("t", 0),))
    share.submit(EndOffsetsListed(listing, (("t", 0, NONE, 20),)))
    assert share.answers[token] == DescribedShareOffsets(
        topics=(("t", T, (ShareOffset(0, 7, 3, lag=11), ShareOffset(1, -1, 0, lag=-1))),)
    )


def test_named_topics_are_described_whatever_the_group_and_missing_ones_have_no_offset() -> None:
    share = world()

    assert share.ask(DescribeShareOffsets, "nobody", (("none", (0, 3)),)) == DescribedShareOffsets(
        topics=(("none", NO_ID, (ShareOffset(0), ShareOffset(3))),)
    )
    token = asked(share, DescribeShareOffsets, "nobody", (("none", (0,)), ("t", (1,))))
    (work,) = share.asked
    assert work.topics == (("t", T, (1,)),)
    share.submit(ShareSummaryRead(work, ((T, (ShareSummary(1, REFUSED, 5, 5),)),)))
    assert share.answers[token].topics == (
        ("t", T, (ShareOffset(1),)),
        ("none", NO_ID, (ShareOffset(0),)),
    )


def test_a_group_without_states_has_no_offsets_to_describe() -> None:
    assert world().ask(DescribeShareOffsets, "nobody", None) == DescribedShareOffsets()


def test_a_partition_whose_end_is_not_told_shows_the_error() -> None:
    share = world("a")
    token = asked(share, DescribeShareOffsets, "g", (("t", (0,)),))
    (work,) = share.asked
    read = ShareSummaryRead(work, ((T, (ShareSummary(0, NONE, 7, 3, 0),)),))
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER

    share.submit(read)
    share.submit(EndOffsetsListed(ListEndOffsets(read, (("t", 0),)), (("t", 0, error, -1),)))

    ((_, _, (offset,)),) = share.answers[token].topics
    assert (offset.error, offset.start_offset, offset.lag) == (error, 0, -1)


def test_a_lag_wraps_around_as_in_java_where_a_start_offset_is_that_low() -> None:
    share = world("a")
    token = asked(share, DescribeShareOffsets, "g", (("t", (0,)),))
    (work,) = share.asked
    read = ShareSummaryRead(work, ((T, (ShareSummary(0, NONE, -(2**63), 3, 2),)),))

    share.submit(read)
    share.submit(EndOffsetsListed(ListEndOffsets(read, (("t", 0),)), (("t", 0, NONE, 20),)))

    ((_, _, (offset,)),) = share.answers[token].topics
    assert offset == ShareOffset(0, -(2**63), 3, lag=-(2**63) + 18)


# ---- setting ----


def test_offsets_are_set_by_making_the_states_anew() -> None:
    share = world()
    token = asked(share, AlterShareOffsets, share.now_ms, "g", (("t", ((0, 5), (9, 1))), ("none", ((0, 1),))))

    (work,) = share.asked
    answer = AlteredShareOffsets(
        topics=(
            ("t", T, ((0, NONE, None), (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED))),
            ("none", NO_ID, ((0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED),)),
        )
    )
    epoch = share.share_group().group_epoch
    assert work == InitializeShareState("g", epoch, ((T, ((0, 5),)),), token, answer)
    assert share.share_group().states == StatePartitions(
        {T: NamedPartitions("t", (0,))}, {T: NamedPartitions("t", (0, 1))}
    )
    assert token not in share.answers

    share.submit(ShareStateInitialized(share.now_ms, work, done(work)))

    assert share.answers[token] == answer
    assert share.share_group().states == StatePartitions(initialized={T: NamedPartitions("t", (0, 1))})


def test_offsets_that_could_not_be_set_show_why_and_their_states_stay_to_be_made() -> None:
    share = world()
    token = asked(share, AlterShareOffsets, share.now_ms, "g", (("t", ((0, 5), (1, 6))),))
    (work,) = share.asked

    outcome = ((T, ((0, NONE, None), (1, REFUSED, "not here"))),)
    share.submit(ShareStateInitialized(share.now_ms, work, outcome))

    assert share.answers[token].topics == (("t", T, ((0, NONE, None), (1, REFUSED, "not here"))),)
    assert share.last_records == ()
    states = share.share_group().states
    assert states is not None
    assert states.initializing == {T: NamedPartitions("t", (0, 1))}


def test_setting_offsets_makes_a_group_and_the_topic_is_not_deleted_any_more() -> None:
    share = world()
    asked(share, AlterShareOffsets, share.now_ms, "new", (("u", ((0, 5),)),))
    assert share.share_group("new").group_epoch == 1

    asked(share, DeleteShareOffsets, share.now_ms, "g", ("t",))
    asked(share, AlterShareOffsets, share.now_ms, "g", (("t", ((0, 5),)),))
    assert share.share_group().states == StatePartitions(initializing={T: NamedPartitions("t", (0,))})


def test_where_nothing_exists_the_answer_comes_at_once_and_there_is_no_group() -> None:
    share = world()

    answer = share.ask(AlterShareOffsets, share.now_ms, "new", (("none", ((0, 5),)),))

    assert answer.topics == (("none", NO_ID, ((0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED),)),)
    assert share.state.share("new") is None


# ---- forgetting ----


def test_offsets_of_topics_are_deleted_and_others_are_told_why_not() -> None:
    share = world()
    token = asked(share, DeleteShareOffsets, share.now_ms, "g", ("u", "t", "none"))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    refused = (
        DeletedShareTopic("u", NO_ID, unknown, "There is no offset information to delete."),
        DeletedShareTopic("none", NO_ID, unknown, NOT_HOSTED),
    )

    (work,) = share.asked
    assert work == DeleteShareState(token, "g", DeletionPurpose.OFFSETS, ((T, (0, 1)),), refused)
    assert share.share_group().states == StatePartitions(deleting=(T,))

    share.submit(ShareStateDeleted(share.now_ms, work, done(work)))

    assert share.answers[token] == DeletedShareOffsets(topics=(DeletedShareTopic("t", T), *refused))
    assert share.share_group().states == StatePartitions()


def test_offsets_that_could_not_be_deleted_can_be_asked_for_again() -> None:
    share = world()
    token = asked(share, DeleteShareOffsets, share.now_ms, "g", ("t",))
    (work,) = share.asked
    share.asked.clear()
    share.submit(ShareStateDeleted(share.now_ms, work, done(work, REFUSED)))

    assert share.answers[token].topics == (DeletedShareTopic("t", T, REFUSED, REFUSED.message),)
    assert share.share_group().states == StatePartitions(deleting=(T,))
    asked(share, DeleteShareOffsets, share.now_ms, "g", ("t",))
    assert share.asked[0].topics == ((T, (0, 1)),)


@pytest.mark.parametrize("fields", [(DeleteShareOffsets, ("t",)), (AlterShareOffsets, (("t", ((0, 1),)),))])
def test_offsets_of_a_group_with_members_stay(fields: tuple[Any, Any]) -> None:
    share = world("a")
    event, what = fields

    answer = share.ask(event, share.now_ms, "g", what)

    assert (answer.error, answer.error_message) == (ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")


def test_offsets_of_other_kinds_of_groups_are_none_of_its_business() -> None:
    share = world()
    share.join_consumer("c", "t", group_id="consumers")
    not_found = ErrorCode.GROUP_ID_NOT_FOUND

    for event, what in ((DeleteShareOffsets, ("t",)), (AlterShareOffsets, (("t", ((0, 1),)),))):
        answer = share.ask(event, share.now_ms, "consumers", what)
        assert (answer.error, answer.error_message) == (
            not_found,
            "Group consumers is not a share group.",
        )
    answer = share.ask(DeleteShareOffsets, share.now_ms, "none", ("t",))
    assert (answer.error, answer.error_message) == (not_found, "Group none not found.")


def test_a_partition_that_cannot_be_one_is_refused_with_all_others() -> None:
    share = world()
    topics = (("t", ((0, 5), (-1, 5))),)
    assert share.ask(AlterShareOffsets, share.now_ms, "g", topics) == AlteredShareOffsets(
        ErrorCode.UNKNOWN_SERVER_ERROR,
        "Initialize share group parameters has invalid partitionId - g dHR0dHR0dHR0dHR0dHR0dA -1",
    )
    assert not share.work


@pytest.mark.parametrize(("group_id", "partitions"), [("g", ()), ("g", (0, -1)), ("", (0,))])
def test_what_share_coordinators_cannot_be_asked_is_refused(
    group_id: str, partitions: tuple[int, ...]
) -> None:
    share = world()
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    asked = (("u", (0,)), ("t", partitions))
    assert share.ask(DescribeShareOffsets, group_id, asked) == DescribedShareOffsets(error, error.message)
    assert share.ask(DescribeShareOffsets, group_id, (("none", partitions),)).error is NONE
    assert not share.work


def test_who_waits_for_an_outcome_that_the_log_refuses_is_answered() -> None:
    share = world()
    full = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    altered = AlteredShareOffsets(topics=(("t", T, ((0, NONE, None),)),))
    made = InitializeShareState("g", 1, ((T, ((0, 5),)),), 7, altered)
    gone = DeleteShareState(8, "g", DeletionPurpose.OFFSETS, ((T, (0,)),))
    outcomes = ShareStateInitialized(5, made, ()), ShareStateDeleted(5, gone, ())
    steps = [
        transition(share.state, ShareOutcomeRefused(outcome, full), share.config) for outcome in outcomes
    ]
    # The offsets are altered, and the states may be there still.
    assert [step.effects for step in steps] == [(Reply(7, altered),), (Reply(8, full),)]
    assert all(step.state is share.state and not step.records for step in steps)


# ---- with the group, and with topics ----


def test_a_group_goes_after_its_states() -> None:
    share = world()
    token = asked(share, DeleteGroup, "g")
    (work,) = share.asked
    assert work == DeleteShareState(token, "g", DeletionPurpose.GROUP, ((T, (0, 1)),))
    assert share.share_group().states == StatePartitions(deleting=(T,))

    share.submit(ShareStateDeleted(share.now_ms, work, done(work)))

    assert share.answers[token] is NONE
    assert share.state.share("g") is None
    assert share.reload().state.share("g") is None


def test_a_group_whose_states_could_not_be_deleted_stays_and_is_asked_to_go_again() -> None:
    share = world()
    token = asked(share, DeleteGroup, "g")
    (work,) = share.asked
    share.asked.clear()
    share.submit(ShareStateDeleted(share.now_ms, work, done(work, REFUSED)))
    assert share.answers[token] is REFUSED

    asked(share, DeleteGroup, "g")
    assert share.asked[0].topics == ((T, (0, 1)),)


def test_a_group_that_a_member_has_joined_meanwhile_stays() -> None:
    share = world()
    token = asked(share, DeleteGroup, "g")
    (work,) = share.asked
    share.join_share("b", "t")

    share.submit(ShareStateDeleted(share.now_ms, work, done(work)))

    assert share.answers[token] is ErrorCode.NON_EMPTY_GROUP
    assert set(share.share_group().members) == {"b"}


def test_a_group_with_members_or_without_states_is_answered_at_once() -> None:
    share = world("a")
    assert share.ask(DeleteGroup, "g") is ErrorCode.NON_EMPTY_GROUP
    share.set_topics()
    share.join_share("b", "t", group_id="h")
    share.beat("b", -1, group_id="h")

    assert share.ask(DeleteGroup, "h") is NONE
    assert share.asked == []


def test_states_of_a_deleted_topic_are_forgotten() -> None:
    share = world("a")
    share.share("a", share.share_group().group_epoch, topics=("t", "u"))
    share.set_topics(TopicInfo("u", U, 1))

    share.submit(TopicsDeleted((("t", T),), share.now_ms))

    assert share.share_group().states == StatePartitions(initializing={U: NamedPartitions("u", (0,))})
    assert share.reload().share_group().states == share.share_group().states
    assert share.beat("a", share.share_group().members["a"].member_epoch).assignment == ()


def test_a_group_without_members_is_never_too_old() -> None:
    share = world()

    share.advance(30 * 24 * 60 * 60 * 1000)

    assert share.state.share("g") is not None

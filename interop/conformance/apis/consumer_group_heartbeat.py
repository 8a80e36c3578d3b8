"""ConsumerGroupHeartbeat: members of the newer kind of group come, own partitions and go (KIP-848)."""

from __future__ import annotations

from interop.conformance.consumer_groups import (
    LEAVE,
    LEAVE_FOR_A_WHILE,
    assigns_at_once,
    beating,
    joined,
    joining,
    owning,
)
from interop.conformance.conversation import LATEST, conversation
from interop.conformance.groups import a_group, a_member, assigned, committing, leaving, one, subscribed
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest


@conversation
def the_first_member_gets_everything(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=3)
    talk.ask(joining(group, "m", topic), until=lambda answer: bool(owning(answer)))


@conversation
def a_member_that_says_nothing_new_is_told_nothing_new(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=3)
    epoch = joined(talk, group, "m", topic)
    talk.ask(beating(group, "m", epoch))
    talk.ask(beating(group, "m", epoch))


@conversation
def a_member_that_tells_what_it_owns_is_told_its_assignment(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=3)
    epoch = joined(talk, group, "m", topic)
    talk.ask(beating(group, "m", epoch, owned={topic: [0, 1, 2]}))
    talk.ask(beating(group, "m", epoch, owned={}))


@conversation
def a_topic_that_does_not_exist_has_nothing_to_assign(talk: Talk) -> None:
    group = a_group(talk)
    talk.ask(joining(group, "m", names=[talk.name("missing")]))


@conversation
def a_member_may_subscribe_to_nothing(talk: Talk) -> None:
    talk.ask(joining(a_group(talk), "m", names=[]))


@conversation("1+")
def a_member_has_to_bring_its_id(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.ask(joining(group, "", topic), E.INVALID_REQUEST)


@conversation
def what_a_first_heartbeat_must_say(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.ask(joining("", "m", topic), E.INVALID_REQUEST)
    talk.ask(joining(group, "m", topic, instance_id=""), E.INVALID_REQUEST)
    talk.ask(joining(group, "m", topic, rack_id=""), E.INVALID_REQUEST)
    talk.ask(joining(group, "m", topic, rebalance_timeout_ms=-1), E.INVALID_REQUEST)
    talk.ask(joining(group, "m", names=None), E.INVALID_REQUEST)
    talk.ask(joining(group, "m", topic, owned=None), E.INVALID_REQUEST)
    talk.ask(joining(group, "m", topic, owned={topic: [0]}), E.INVALID_REQUEST)


@conversation
def an_epoch_below_minus_two_is_invalid(talk: Talk) -> None:
    talk.ask(beating(a_group(talk), "m", -3), E.INVALID_REQUEST)


@conversation
def an_assignor_that_does_not_exist_is_refused(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.ask(joining(group, "m", topic, server_assignor="sticky"), E.UNSUPPORTED_ASSIGNOR)


@conversation
def the_range_assignor_may_be_asked_for(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=3)
    talk.ask(joining(group, "m", topic, server_assignor="range"), until=lambda answer: bool(owning(answer)))


@conversation
def an_unknown_group_has_no_members(talk: Talk) -> None:
    group = a_group(talk)
    talk.ask(beating(group, "m", 3), E.GROUP_ID_NOT_FOUND)
    talk.ask(beating(group, "m", LEAVE), E.GROUP_ID_NOT_FOUND)


@conversation
def a_stranger_is_unknown(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    joined(talk, group, "m", topic)
    talk.ask(beating(group, "stranger", 1), E.UNKNOWN_MEMBER_ID)
    talk.ask(beating(group, "stranger", LEAVE), E.UNKNOWN_MEMBER_ID)


@conversation
def another_epoch_is_fenced(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    epoch = joined(talk, group, "m", topic)
    talk.ask(beating(group, "m", epoch + 1), E.FENCED_MEMBER_EPOCH)


@conversation
def a_member_leaves(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    epoch = joined(talk, group, "m", topic)
    talk.ask(beating(group, "m", LEAVE))
    talk.ask(beating(group, "m", epoch), E.UNKNOWN_MEMBER_ID)


@conversation
def a_member_that_joins_again_begins_anew(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=2)
    joined(talk, group, "m", topic)
    talk.ask(joining(group, "m", topic))


@conversation
def two_members_share_when_the_first_has_let_go(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=2)
    epoch = joined(talk, group, "m", topic)
    talk.ask(joining(group, "n", topic))
    talk.ask(
        beating(group, "m", epoch, owned={topic: [0, 1]}),
        until=lambda answer: answer.assignment is not None and len(owning(answer)) == 1,
    )
    talk.ask(joining(group, "n", topic))


@conversation
def the_partitions_of_who_leaves_are_free_at_once(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=2)
    joined(talk, group, "m", topic)
    talk.do(joining(group, "n", topic))
    talk.ask(beating(group, "m", LEAVE))
    talk.ask(joining(group, "n", topic), until=lambda answer: len(owning(answer)) == 2)


@conversation
def a_subscription_changes(talk: Talk) -> None:
    group, topic, other = a_group(talk), talk.topic(), talk.topic("other", partitions=2)
    epoch = joined(talk, group, "m", topic)
    talk.ask(
        beating(group, "m", epoch, names=[topic.name, other.name], owned={topic: [0]}),
        until=lambda answer: len(owning(answer)) == 3,
    )


@conversation(LATEST)
def a_member_without_topics_comes_when_another_has_just_left(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=2)
    assigns_at_once(talk, group)
    epoch = joined(talk, group, "a", topic)
    talk.ask(joining(group, "b", topic))
    talk.ask(beating(group, "b", LEAVE))
    talk.ask(joining(group, "c", names=[]))
    talk.ask(beating(group, "a", epoch, owned={topic: [0, 1]}))


@conversation
def an_instance_goes_for_a_while_and_comes_back(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=2)
    joined(talk, group, "m", topic, instance_id="i")
    talk.ask(beating(group, "m", LEAVE_FOR_A_WHILE, instance_id="i"))
    talk.ask(joining(group, "n", topic, instance_id="i"), until=lambda answer: len(owning(answer)) == 2)


@conversation
def an_instance_that_is_there_is_not_released(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    joined(talk, group, "m", topic, instance_id="i")
    talk.ask(joining(group, "n", topic, instance_id="i"), E.UNRELEASED_INSTANCE_ID)


@conversation
def an_instance_with_another_member_id_is_fenced(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    epoch = joined(talk, group, "m", topic, instance_id="i")
    talk.ask(beating(group, "n", epoch, instance_id="i"), E.FENCED_INSTANCE_ID)
    talk.ask(beating(group, "n", epoch, instance_id="other"), E.UNKNOWN_MEMBER_ID)
    talk.ask(beating(group, "n", LEAVE_FOR_A_WHILE, instance_id="i"), E.FENCED_INSTANCE_ID)


@conversation
def going_for_a_while_needs_an_instance(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    joined(talk, group, "m", topic)
    talk.ask(beating(group, "m", LEAVE_FOR_A_WHILE), E.INVALID_REQUEST)


@conversation("1+")
def topics_are_matched_by_an_expression(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=2)
    talk.ask(
        joining(group, "m", names=None, subscribed_topic_regex=f"{topic.name[:-2]}..?"),
        until=lambda answer: len(owning(answer)) == 2,
    )


@conversation("1+")
def an_expression_that_is_none_is_refused(talk: Talk) -> None:
    group = a_group(talk)
    talk.ask(joining(group, "m", names=None, subscribed_topic_regex="a("), E.INVALID_REGULAR_EXPRESSION)
    talk.ask(joining(group, "m", names=None, subscribed_topic_regex="(?=a)"), E.INVALID_REGULAR_EXPRESSION)


@conversation("1+")
def an_empty_expression_matches_nothing(talk: Talk) -> None:
    talk.ask(joining(a_group(talk), "m", names=None, subscribed_topic_regex=""))


@conversation(LATEST)
def a_classic_group_without_members_becomes_one_of_the_newer_kind(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=2)
    talk.do(committing(group, topic, {0: 5}))
    talk.ask(joining(group, "m", topic), until=lambda answer: len(owning(answer)) == 2)


@conversation(LATEST)
def a_classic_group_of_consumers_is_upgraded_by_a_newer_member(talk: Talk) -> None:
    """Of another topic: which member gets which partition of the same one follows from their random ids."""
    group, topic, another = a_group(talk), talk.topic(partitions=2), talk.topic("another", partitions=2)
    a_member(talk, group, protocols={"range": subscribed(b"", topic.name)}, share=assigned())
    talk.ask(joining(group, "m", another))


@conversation(LATEST)
def a_classic_group_with_an_unreadable_assignment_is_not_upgraded(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=2)
    a_member(talk, group, protocols={"range": subscribed(b"", topic.name)}, share=b"no assignment")
    talk.ask(joining(group, "m", topic), E.UNKNOWN_SERVER_ERROR)


@conversation(LATEST)
def a_classic_group_of_another_protocol_is_not_upgraded(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    a_member(talk, group, protocol_type="connect")
    talk.ask(joining(group, "m", topic), E.GROUP_ID_NOT_FOUND)


@conversation(LATEST)
def an_empty_classic_group_is_replaced(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.do(leaving(group, one(a_member(talk, group))))
    talk.ask(joining(group, "m", topic))


@conversation(LATEST)
def a_group_that_has_members_is_not_deleted(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    joined(talk, group, "m", topic)
    talk.ask(DeleteGroupsRequest(groups_names=[group]), E.NON_EMPTY_GROUP)
    talk.do(beating(group, "m", LEAVE))
    talk.ask(DeleteGroupsRequest(groups_names=[group]))


@conversation(LATEST)
def offsets_are_committed_with_the_epoch_of_the_member(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    epoch = joined(talk, group, "m", topic)
    talk.ask(committing(group, topic, {0: 5}, member_id="m", generation=epoch))
    talk.ask(committing(group, topic, {0: 6}, member_id="m", generation=epoch + 1), E.STALE_MEMBER_EPOCH)
    talk.ask(committing(group, topic, {0: 7}, member_id="x", generation=epoch), E.UNKNOWN_MEMBER_ID)
    talk.ask(committing(group, topic, {0: 8}), E.UNKNOWN_MEMBER_ID)


@conversation(LATEST)
def a_subscription_that_is_larger_than_a_batch_may_be(talk: Talk) -> None:
    group = a_group(talk)
    many = [f"{number:0249}" for number in range(5_000)]
    talk.ask(joining(group, "m", names=many), E.UNKNOWN_SERVER_ERROR)
    talk.ask(joining(group, "m", names=many[:1]))

"""ConsumerGroupDescribe: state and members of the newer kind of group (KIP-848)."""

from __future__ import annotations

from interop.conformance.consumer_groups import LEAVE, beating, joined, joining
from interop.conformance.conversation import conversation
from interop.conformance.groups import a_group, a_member, assigned, committing, subscribed
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest

#: Apache keeps the members of a group in a hash map.
BY_ID = {"members": "member_id"}


def describing(*groups: str, operations: bool = False) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=operations)


@conversation
def a_group_with_one_member(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=2)
    joined(talk, group, "m", topic, instance_id="i", rack_id="r")
    talk.ask(describing(group), in_any_order=BY_ID)


@conversation
def a_group_that_moves_partitions_from_one_member_to_the_other(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=2)
    epoch = joined(talk, group, "m", topic)
    # The partitions are dealt out anew a second after the last time, at the next heartbeat of a member.
    talk.ask(joining(group, "n", topic), until=lambda answer: answer.member_epoch > epoch)
    talk.ask(describing(group), in_any_order=BY_ID)


@conversation
def a_group_whose_members_are_gone(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    joined(talk, group, "m", topic)
    talk.do(beating(group, "m", LEAVE))
    talk.ask(describing(group), in_any_order=BY_ID)


@conversation
def an_unknown_group_is_not_found(talk: Talk) -> None:
    talk.ask(describing(a_group(talk)), E.GROUP_ID_NOT_FOUND)


@conversation
def a_classic_group_is_not_found_here(talk: Talk) -> None:
    classic, simple = a_group(talk, "classic"), a_group(talk, "simple")
    a_member(talk, classic)
    talk.do(committing(simple, talk.topic(), {0: 5}))
    talk.ask(describing(classic, simple), E.GROUP_ID_NOT_FOUND, E.GROUP_ID_NOT_FOUND)


@conversation
def an_empty_group_id_is_invalid(talk: Talk) -> None:
    a_group(talk)
    talk.ask(describing(""), E.INVALID_GROUP_ID)


@conversation
def no_groups_are_asked_for(talk: Talk) -> None:
    a_group(talk)
    talk.ask(describing())


@conversation
def a_group_is_asked_for_twice(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    joined(talk, group, "m", topic)
    talk.ask(describing(group, group), in_any_order=BY_ID)


@conversation
def what_may_be_done_with_a_group_is_told_when_asked(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    joined(talk, group, "m", topic)
    talk.ask(describing(group, operations=True), in_any_order=BY_ID)


@conversation("1+")
def a_classic_member_in_a_newer_group_is_told_apart(talk: Talk) -> None:
    # Each has a topic of its own: who gets which partition of a common one hangs on the generated member id.
    group, old, new = a_group(talk), talk.topic("a", partitions=2), talk.topic("b")
    a_member(talk, group, instance="i", protocols={"range": subscribed(b"", old.name)}, share=assigned())
    talk.do(joining(group, "m", new))
    talk.ask(describing(group), in_any_order=BY_ID)

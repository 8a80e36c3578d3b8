"""ShareGroupDescribe: state and members of share groups (KIP-932)."""

from __future__ import annotations

from interop.conformance.consumer_groups import joined as joined_consumer_group
from interop.conformance.conversation import conversation
from interop.conformance.groups import a_group, a_member, committing
from interop.conformance.share_groups import LEAVE, a_share_group, beating, emptied, joined, joining, owning
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka_broker.protocol.messages.share_group_describe import ShareGroupDescribeRequest

#: Apache keeps the members of a group in a hash map.
BY_ID = {"members": "member_id"}


def describing(*groups: str, operations: bool = False) -> ShareGroupDescribeRequest:
    return ShareGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=operations)


@conversation
def a_group_with_one_member(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic(partitions=2)
    joined(talk, group, "m", topic, partitions=2, rack_id="r")
    talk.ask(describing(group), in_any_order=BY_ID)


@conversation
def a_group_whose_members_share(talk: Talk) -> None:
    # With more partitions than members, which of them each has depends on the topic's random id.
    group, topic = a_share_group(talk), talk.topic(partitions=1)
    joined(talk, group, "m", topic)
    talk.ask(joining(group, "n", topic), until=lambda answer: len(owning(answer)) == 1)
    talk.ask(joining(group, "m", topic), until=lambda answer: len(owning(answer)) == 1)
    talk.ask(describing(group), in_any_order=BY_ID)


@conversation
def a_group_that_reads_several_topics(talk: Talk) -> None:
    group, topics = a_share_group(talk), [talk.topic(f"topic-{number}", partitions=2) for number in range(3)]
    joined(talk, group, "m", *topics, partitions=6)
    talk.ask(describing(group), in_any_order={**BY_ID, "topic_partitions": "topic_name"})


@conversation
def a_group_whose_members_are_gone(talk: Talk) -> None:
    talk.ask(describing(emptied(talk, talk.topic())), in_any_order=BY_ID)


@conversation
def a_group_whose_topic_is_unknown(talk: Talk) -> None:
    group = a_share_group(talk)
    talk.do(joining(group, "m", names=[talk.name("missing")]), version=1)
    talk.ask(describing(group), in_any_order=BY_ID)


@conversation
def an_unknown_group_is_not_found(talk: Talk) -> None:
    talk.ask(describing(a_share_group(talk)), E.GROUP_ID_NOT_FOUND)


@conversation
def groups_of_other_kinds_are_not_found_here(talk: Talk) -> None:
    a_share_group(talk)
    classic, simple, consumers = a_group(talk, "classic"), a_group(talk, "simple"), a_group(talk, "consumer")
    a_member(talk, classic)
    talk.do(committing(simple, talk.topic(), {0: 5}))
    joined_consumer_group(talk, consumers, "m", talk.topic("read"))
    for group in (classic, simple, consumers):
        talk.ask(describing(group), E.GROUP_ID_NOT_FOUND)


@conversation
def a_share_group_is_not_found_where_other_kinds_are(talk: Talk) -> None:
    group = emptied(talk, talk.topic())
    talk.ask(
        ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False),
        E.GROUP_ID_NOT_FOUND,
    )
    talk.ask(DescribeGroupsRequest(groups=[group]), E.GROUP_ID_NOT_FOUND)


@conversation
def an_empty_group_id_is_invalid(talk: Talk) -> None:
    a_share_group(talk)
    talk.ask(describing(""), E.INVALID_GROUP_ID)


@conversation
def no_groups_are_asked_for(talk: Talk) -> None:
    a_share_group(talk)
    talk.ask(describing())


@conversation
def a_group_is_asked_for_twice(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic()
    joined(talk, group, "m", topic)
    talk.ask(describing(group, group), in_any_order=BY_ID)


@conversation
def what_may_be_done_with_a_group_is_told_when_asked(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic()
    joined(talk, group, "m", topic)
    talk.ask(describing(group, operations=True), in_any_order=BY_ID)
    talk.do(beating(group, "m", LEAVE), version=1)
    talk.ask(describing(group, operations=True))

"""AlterShareGroupOffsets: where share groups without members start reading is set (KIP-932)."""

from __future__ import annotations

from interop.conformance.consumer_groups import joined as joined_consumer_group
from interop.conformance.conversation import conversation
from interop.conformance.groups import a_group, a_member, committing
from interop.conformance.share_groups import (
    a_known_topic,
    a_share_group,
    asking_where,
    emptied,
    joined,
    setting,
    where,
)
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest
from pykafka_broker.protocol.messages.share_group_describe import ShareGroupDescribeRequest


@conversation
def a_group_begins_elsewhere(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    talk.produce(topic, b"one", b"two")
    group = emptied(talk, topic, partitions=2)
    talk.ask(setting(group, (topic.name, {1: 7, 0: 1})))
    talk.ask(asking_where(where(group)))
    talk.ask(setting(group, (topic.name, {0: 0})))
    talk.ask(asking_where(where(group)))


@conversation
def a_group_is_created(talk: Talk) -> None:
    group, topic = a_share_group(talk), a_known_topic(talk, partitions=2)
    talk.ask(setting(group, (topic.name, {0: 5})))
    talk.ask(asking_where(where(group)))
    talk.ask(ShareGroupDescribeRequest(group_ids=[group], include_authorized_operations=False))


@conversation
def several_topics(talk: Talk) -> None:
    topics = [a_known_topic(talk, f"topic-{number}", partitions=2) for number in range(4)]
    group = a_share_group(talk)
    talk.ask(setting(group, *((topic.name, {1: 1, 0: 2}) for topic in topics)))


@conversation
def what_there_is_not_is_refused_alone(talk: Talk) -> None:
    group, topic = a_share_group(talk), a_known_topic(talk)
    missing, other = talk.name("missing"), talk.name("other")
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION
    talk.ask(
        setting(group, (topic.name, {0: 5, 1: 6}), (missing, {0: 1, 1: 2}), (other, {})),
        *[unknown] * 3,
    )
    talk.ask(setting(group, (missing, {0: 1})), unknown)
    talk.ask(setting(group, (topic.name, {3: 1})), unknown)
    talk.ask(asking_where(where(group)))


@conversation
def nothing_is_set(talk: Talk) -> None:
    group, topic = a_share_group(talk), a_known_topic(talk)
    talk.ask(setting(group))
    talk.ask(setting(group, (topic.name, {})))
    talk.ask(
        ShareGroupDescribeRequest(group_ids=[group], include_authorized_operations=False),
    )


@conversation
def nothing_is_set_in_a_group_that_there_is_not(talk: Talk) -> None:
    group = a_share_group(talk)
    talk.ask(setting(group))
    talk.ask(
        ShareGroupDescribeRequest(group_ids=[group], include_authorized_operations=False),
        E.GROUP_ID_NOT_FOUND,
    )


@conversation
def offsets_below_zero(talk: Talk) -> None:
    group, topic = a_share_group(talk), a_known_topic(talk, partitions=2)
    talk.ask(setting(group, (topic.name, {0: -1, 1: -7})))
    talk.ask(asking_where(where(group)))


@conversation
def partitions_below_zero(talk: Talk) -> None:
    group, topic = a_share_group(talk), a_known_topic(talk, partitions=2)
    talk.ask(setting(group, (topic.name, {-1: 5, 0: 5})), E.UNKNOWN_SERVER_ERROR)
    talk.ask(asking_where(where(group)))


@conversation
def a_topic_is_named_twice(talk: Talk) -> None:
    group, topic = a_share_group(talk), a_known_topic(talk, partitions=2)
    talk.ask(setting(group, (topic.name, {0: 1}), (topic.name, {1: 2, 0: 3})))
    talk.ask(asking_where(where(group)))


@conversation
def a_group_with_members_keeps_its_offsets(talk: Talk) -> None:
    group, topic = a_share_group(talk), a_known_topic(talk)
    joined(talk, group, "m", topic)
    talk.ask(setting(group, (topic.name, {0: 5})), E.NON_EMPTY_GROUP)
    talk.ask(setting(group, (talk.name("missing"), {0: 5})), E.NON_EMPTY_GROUP)


@conversation
def a_group_of_another_kind_has_no_such_offsets(talk: Talk) -> None:
    a_share_group(talk)
    topic = talk.topic()
    classic, simple, consumers = a_group(talk, "classic"), a_group(talk, "simple"), a_group(talk, "consumer")
    a_member(talk, classic)
    talk.do(committing(simple, topic, {0: 5}))
    joined_consumer_group(talk, consumers, "m", topic)
    for group in (classic, simple, consumers):
        talk.ask(setting(group, (topic.name, {0: 5})), E.GROUP_ID_NOT_FOUND)


@conversation
def an_empty_group_id_is_invalid(talk: Talk) -> None:
    a_share_group(talk)
    talk.ask(setting("", (talk.topic().name, {0: 5})), E.INVALID_GROUP_ID)
    talk.ask(setting("", (talk.name("missing"), {0: 5})), E.INVALID_GROUP_ID)


@conversation(alone=True)
def a_group_is_listed_by_its_kind(talk: Talk) -> None:
    topic = talk.topic()
    emptied(talk, topic)
    joined(talk, a_share_group(talk, "stable"), "m", topic)
    talk.ask(ListGroupsRequest(types_filter=["share"]), in_any_order={"groups": "group_id"})
    talk.ask(ListGroupsRequest(types_filter=["SHARE"], states_filter=["Stable"]))
    talk.ask(ListGroupsRequest(types_filter=["share"], states_filter=["empty"]))

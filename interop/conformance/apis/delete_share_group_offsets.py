"""DeleteShareGroupOffsets: share groups without members forget topics (KIP-932)."""

from __future__ import annotations

from interop.conformance.consumer_groups import joined as joined_consumer_group
from interop.conformance.conversation import conversation
from interop.conformance.groups import a_group, a_member, committing
from interop.conformance.share_groups import (
    a_known_topic,
    a_share_group,
    asking_where,
    emptied,
    forgetting_topics,
    joined,
    joining,
    owning,
    setting,
    where,
)
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.share_group_describe import ShareGroupDescribeRequest


@conversation
def a_topic_is_forgotten(talk: Talk) -> None:
    topic, other = talk.topic(partitions=2), talk.topic("other")
    group = emptied(talk, topic, other, partitions=3)
    talk.ask(forgetting_topics(group, topic.name))
    talk.ask(asking_where(where(group)))
    talk.ask(forgetting_topics(group, topic.name), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def several_topics_are_forgotten(talk: Talk) -> None:
    topics = [talk.topic(f"topic-{number}", partitions=2) for number in range(4)]
    group = emptied(talk, *topics, partitions=8)
    talk.ask(
        forgetting_topics(group, *(topic.name for topic in topics)),
        in_any_order={"responses": "topic_name"},
    )
    talk.ask(asking_where(where(group)))
    talk.ask(ShareGroupDescribeRequest(group_ids=[group], include_authorized_operations=False))


@conversation
def a_topic_that_is_forgotten_may_be_read_again(talk: Talk) -> None:
    topic = talk.topic()
    group = emptied(talk, topic)
    talk.do(setting(group, (topic.name, {0: 5})))
    talk.ask(forgetting_topics(group, topic.name))
    talk.ask(joining(group, "n", topic), until=lambda answer: len(owning(answer)) == 1)
    talk.ask(asking_where(where(group)))


@conversation
def what_there_is_not_is_refused_alone(talk: Talk) -> None:
    topic, unread = talk.topic(), a_known_topic(talk, "unread")
    group = emptied(talk, topic)
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION
    talk.ask(forgetting_topics(group, talk.name("missing"), topic.name, unread.name), unknown, unknown)


@conversation
def nothing_is_forgotten(talk: Talk) -> None:
    group = emptied(talk, talk.topic())
    talk.ask(forgetting_topics(group))
    talk.ask(asking_where(where(group)))


@conversation
def a_topic_is_named_twice(talk: Talk) -> None:
    topic = talk.topic()
    group = emptied(talk, topic)
    talk.ask(forgetting_topics(group, topic.name, topic.name))


@conversation
def a_group_that_has_only_been_set(talk: Talk) -> None:
    group, topic = a_share_group(talk), a_known_topic(talk, partitions=2)
    talk.do(setting(group, (topic.name, {0: 5})))
    talk.ask(forgetting_topics(group, topic.name))
    talk.ask(asking_where(where(group)))


@conversation
def a_group_with_members_keeps_its_offsets(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic()
    joined(talk, group, "m", topic)
    talk.ask(forgetting_topics(group, topic.name), E.NON_EMPTY_GROUP)


@conversation
def an_unknown_group_is_not_found(talk: Talk) -> None:
    talk.ask(forgetting_topics(a_share_group(talk), talk.topic().name), E.GROUP_ID_NOT_FOUND)


@conversation
def a_group_of_another_kind_is_not_found(talk: Talk) -> None:
    a_share_group(talk)
    topic = talk.topic()
    classic, simple, consumers = a_group(talk, "classic"), a_group(talk, "simple"), a_group(talk, "consumer")
    a_member(talk, classic)
    talk.do(committing(simple, topic, {0: 5}))
    joined_consumer_group(talk, consumers, "m", topic)
    for group in (classic, simple, consumers):
        talk.ask(forgetting_topics(group, topic.name), E.GROUP_ID_NOT_FOUND)


@conversation
def an_empty_group_id_is_invalid(talk: Talk) -> None:
    a_share_group(talk)
    talk.ask(forgetting_topics("", talk.topic().name), E.INVALID_GROUP_ID)

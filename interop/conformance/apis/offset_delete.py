"""OffsetDelete: a group forgets its positions in some partitions."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.groups import (
    a_group,
    a_member,
    committing,
    every_topic,
    leaving,
    of_group,
    one,
    subscribed,
)
from interop.conformance.talk import E, Talk, Topic
from interop.conformance.versions import latest_version
from pykafka_broker.protocol.fields import ZERO_UUID, api_key_of
from pykafka_broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from pykafka_broker.protocol.messages.offset_fetch import OffsetFetchRequest


def forgetting(group: str, topic: Topic, *partitions: int) -> OffsetDeleteRequest:
    indexes = [OffsetDeleteRequestPartition(partition_index=index) for index in partitions]
    return OffsetDeleteRequest(
        group_id=group, topics=[OffsetDeleteRequestTopic(name=topic.name, partitions=indexes)]
    )


def everything_is_read(talk: Talk, group: str) -> None:
    request = OffsetFetchRequest(groups=[of_group(group, None)])
    talk.ask(request, in_any_order=every_topic(latest_version(api_key_of(request))))


@conversation
def one_partition_is_forgotten_the_other_is_not(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=2)
    talk.do(committing(group, topic, {0: 5, 1: 6}))
    talk.ask(forgetting(group, topic, 0))
    everything_is_read(talk, group)


@conversation
def what_was_never_committed_is_forgotten_without_an_error(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=2)
    talk.do(committing(group, topic, {0: 5}))
    talk.ask(forgetting(group, topic, 1))
    everything_is_read(talk, group)


@conversation
def the_group_outlives_its_last_offset(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.do(committing(group, topic, {0: 5}))
    talk.ask(forgetting(group, topic, 0))
    talk.ask(forgetting(group, topic, 0))


@conversation
def an_unknown_group_is_not_found(talk: Talk) -> None:
    talk.ask(forgetting(a_group(talk), talk.topic(), 0), E.GROUP_ID_NOT_FOUND)


@conversation
def an_empty_group_id_is_not_found(talk: Talk) -> None:
    a_group(talk)
    talk.ask(forgetting("", talk.topic(), 0), E.INVALID_GROUP_ID)


@conversation
def an_unknown_topic_or_partition_is_refused(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.do(committing(group, topic, {0: 5}))
    request = forgetting(group, topic, 0, 9, -1)
    request.topics += forgetting(group, Topic(talk.name("missing"), ZERO_UUID), 0).topics
    talk.ask(request, *[E.UNKNOWN_TOPIC_OR_PARTITION] * 3)


@conversation
def a_topic_that_members_are_subscribed_to_is_kept(talk: Talk) -> None:
    group, topic, other = a_group(talk), talk.topic(), talk.topic("other")
    member = a_member(talk, group, protocols={"range": subscribed(b"", topic.name)})
    for each, offset in ((topic, 5), (other, 6)):
        talk.do(committing(group, each, {0: offset}, member_id=member.id, generation=member.generation))
    request = forgetting(group, topic, 0)
    request.topics += forgetting(group, other, 0).topics
    talk.ask(request, E.GROUP_SUBSCRIBED_TO_TOPIC)
    everything_is_read(talk, group)


@conversation
def nothing_is_forgotten_while_members_of_another_protocol_are_there(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    a_member(talk, group, protocol_type="connect")
    talk.ask(forgetting(group, topic, 0), E.NON_EMPTY_GROUP)


@conversation
def everything_is_forgotten_when_the_members_are_gone(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    member = a_member(talk, group, protocols={"range": subscribed(b"", topic.name)})
    talk.do(committing(group, topic, {0: 5}, member_id=member.id, generation=member.generation))
    talk.do(leaving(group, one(member)))
    talk.ask(forgetting(group, topic, 0))


@conversation
def a_partition_is_named_twice(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=2)
    talk.do(committing(group, topic, {0: 5, 1: 6}))
    talk.ask(forgetting(group, topic, 0, 0))


@conversation
def nothing_is_named(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.do(committing(group, topic, {0: 5}))
    talk.ask(OffsetDeleteRequest(group_id=group, topics=[]))
    talk.ask(forgetting(group, topic))

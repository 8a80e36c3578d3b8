"""OffsetFetch: a group's stored positions are read."""

from __future__ import annotations

from interop.conformance.conversation import LATEST, conversation
from interop.conformance.groups import a_group, a_member, committing, every_topic, fetching, of_group
from interop.conformance.talk import E, Talk, Topic
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka_broker.protocol.messages.offset_fetch import OffsetFetchRequest


@conversation
def what_was_committed_is_read(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=3)
    talk.do(committing(group, topic, {0: 5, 2: 7}, metadata="note", leader_epoch=0))
    talk.ask(fetching(talk, group, {topic: [2, 0]}))


@conversation
def topics_are_answered_in_the_order_of_the_request(talk: Talk) -> None:
    group = a_group(talk)
    topics = [talk.topic(label) for label in ("one", "two", "three", "four")]
    for topic in topics[:3]:
        talk.do(committing(group, topic, {0: 5}))
    for order in (topics, topics[::-1]):
        talk.ask(fetching(talk, group, {topic: [0] for topic in order}))


@conversation
def what_was_not_committed_is_minus_one(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=2)
    talk.do(committing(group, topic, {0: 5}))
    talk.ask(fetching(talk, group, {topic: [0, 1, 9, -1]}))


@conversation
def an_unknown_group_has_no_offsets(talk: Talk) -> None:
    talk.ask(fetching(talk, a_group(talk), {talk.topic(): [0]}))


@conversation("1-9")
def a_topic_that_does_not_exist_has_no_offsets(talk: Talk) -> None:
    group = a_group(talk)
    talk.ask(fetching(talk, group, {Topic(talk.name("missing"), ZERO_UUID): [0, 1]}))


@conversation("10+")
def a_topic_id_that_does_not_exist_is_an_error(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.do(committing(group, topic, {0: 5}))
    unknown = Topic("", b"\x03" * 16)
    talk.ask(fetching(talk, group, {unknown: [0, 1], topic: [0]}), *[E.UNKNOWN_TOPIC_ID] * 2)


@conversation("2+")
def every_topic_of_a_group_is_read(talk: Talk) -> None:
    group, topic, other = a_group(talk), talk.topic(partitions=2), talk.topic("other")
    talk.do(committing(group, topic, {0: 5, 1: 6}))
    talk.do(committing(group, other, {0: 7}, metadata=None))
    talk.ask(fetching(talk, group, None), in_any_order=every_topic(talk.version))


@conversation("2+")
def every_topic_of_an_unknown_group(talk: Talk) -> None:
    talk.ask(fetching(talk, a_group(talk), None), in_any_order=every_topic(talk.version))


@conversation
def no_topics_are_asked_for(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.do(committing(group, topic, {0: 5}))
    talk.ask(fetching(talk, group, {}))
    talk.ask(fetching(talk, group, {topic: []}))


@conversation
def a_partition_is_asked_for_twice(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.do(committing(group, topic, {0: 5}))
    talk.ask(fetching(talk, group, {topic: [0, 0]}))


@conversation("1-7")
def an_empty_group_id_has_offsets_like_any_other(talk: Talk) -> None:
    a_group(talk)
    talk.ask(fetching(talk, "", {talk.topic(): [0]}))


@conversation("8+")
def an_empty_group_id_has_offsets_like_any_other_among_many(talk: Talk) -> None:
    group = a_group(talk)
    topic = talk.topic()
    talk.ask(OffsetFetchRequest(groups=[of_group("", {topic: [0]}), of_group(group, {topic: [0]})]))


@conversation("7+")
def stable_offsets_need_no_wait_without_transactions(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.do(committing(group, topic, {0: 5}))
    talk.ask(fetching(talk, group, {topic: [0]}, stable=True))
    talk.ask(fetching(talk, group, None, stable=True), in_any_order=every_topic(talk.version))


@conversation("8+")
def several_groups_are_answered_in_their_order(talk: Talk) -> None:
    one, two = a_group(talk, "one"), a_group(talk, "two")
    topic = talk.topic(partitions=2)
    talk.do(committing(one, topic, {0: 5}))
    talk.do(committing(two, topic, {1: 6}))
    wanted = {topic: [0, 1]}
    talk.ask(
        OffsetFetchRequest(groups=[of_group(two, wanted), of_group("none", wanted), of_group(one, None)])
    )


@conversation("8+")
def a_group_is_asked_for_twice(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.do(committing(group, topic, {0: 5}))
    talk.ask(OffsetFetchRequest(groups=[of_group(group, None), of_group(group, {topic: [0]})]))


@conversation("8+")
def no_groups_are_asked_for(talk: Talk) -> None:
    a_group(talk)
    talk.ask(OffsetFetchRequest(groups=[]))


@conversation("9+")
def the_member_of_a_classic_group_is_not_checked(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    member = a_member(talk, group)
    talk.ask(fetching(talk, group, {topic: [0]}, member_id=member.id, member_epoch=member.generation))
    talk.ask(fetching(talk, group, {topic: [0]}, member_id="stranger", member_epoch=9))


@conversation("9+")
def a_member_of_an_unknown_group(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.ask(fetching(talk, group, {topic: [0]}, member_id="stranger", member_epoch=9))


@conversation(LATEST)
def the_offsets_of_a_deleted_topic_are_forgotten(talk: Talk) -> None:
    group, topic, kept = a_group(talk), talk.topic("gone"), talk.topic("kept")
    talk.do(committing(group, topic, {0: 5}))
    talk.do(committing(group, kept, {0: 6}))
    deleted = DeleteTopicState(name=topic.name, topic_id=ZERO_UUID)
    talk.do(DeleteTopicsRequest(topics=[deleted], topic_names=[], timeout_ms=10_000))
    talk.ask(fetching(talk, group, None), until=lambda answer: len(answer.groups[0].topics) == 1)

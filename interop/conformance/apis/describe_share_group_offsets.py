"""DescribeShareGroupOffsets: where share groups start reading, and their lag (KIP-932)."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.groups import a_group, a_member
from interop.conformance.share_groups import a_share_group, asking_where, emptied, joined, setting, where
from interop.conformance.talk import E, Talk

#: The partitions that Apache Kafka keeps in hash maps.
ANY_ORDER = {"topics": "topic_name", "partitions": "partition_index"}


@conversation
def partitions_without_an_offset(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    group = emptied(talk, topic, partitions=2)
    talk.ask(asking_where(where(group)))
    talk.ask(asking_where(where(group, {topic.name: [1, 0]})))


@conversation
def offsets_that_were_set_and_the_lag(talk: Talk) -> None:
    topic = talk.topic(partitions=3)
    talk.produce(topic, b"one", b"two", b"three")
    talk.produce(topic, b"four", partition=1)
    group = emptied(talk, topic, partitions=3)
    talk.do(setting(group, (topic.name, {0: 1, 1: 9})))
    talk.ask(asking_where(where(group)))
    talk.ask(asking_where(where(group, {topic.name: [0, 2]})))


@conversation
def a_group_with_members(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic(partitions=2)
    joined(talk, group, "m", topic, partitions=2)
    talk.ask(asking_where(where(group)))


@conversation
def several_topics(talk: Talk) -> None:
    topics = [talk.topic(f"topic-{number}", partitions=2) for number in range(4)]
    group = emptied(talk, *topics, partitions=8)
    talk.ask(asking_where(where(group)), in_any_order=ANY_ORDER)
    talk.ask(asking_where(where(group, {topic.name: [0, 1] for topic in topics})), in_any_order=ANY_ORDER)


@conversation
def topics_that_there_are_not(talk: Talk) -> None:
    topic = talk.topic()
    group = emptied(talk, topic)
    missing, other = talk.name("missing"), talk.name("other")
    talk.ask(asking_where(where(group, {missing: [0, 3]})))
    talk.ask(asking_where(where(group, {missing: [0], topic.name: [0], other: []})))


@conversation
def groups_that_there_are_not(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic()
    classic = a_group(talk, "classic")
    a_member(talk, classic)
    for name in (group, classic):
        talk.ask(asking_where(where(name)))
        talk.ask(asking_where(where(name, {topic.name: [0]})))


@conversation
def nothing_is_asked_for(talk: Talk) -> None:
    group = emptied(talk, talk.topic())
    talk.ask(asking_where())
    talk.ask(asking_where(where(group, {})))
    talk.ask(asking_where(where("", {})))
    talk.ask(asking_where(where("")))


@conversation
def what_cannot_be_asked(talk: Talk) -> None:
    topic = talk.topic()
    group = emptied(talk, topic)
    broken = E.UNKNOWN_SERVER_ERROR
    talk.ask(asking_where(where(group, {topic.name: []})), broken)
    talk.ask(asking_where(where(group, {topic.name: [0, -1]})), broken)
    talk.ask(asking_where(where("", {topic.name: [0]})), broken)
    talk.ask(asking_where(where(group), where(group, {topic.name: []}), where(group)), broken)


@conversation
def a_partition_is_named_twice(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    group = emptied(talk, topic, partitions=2)
    talk.ask(asking_where(where(group, {topic.name: [0, 1, 0]})))
    twice = where(group, {topic.name: [1]})
    assert twice.topics is not None
    twice.topics += where(group, {topic.name: [0, 1]}).topics or []
    talk.ask(asking_where(twice))

"""DescribeTopicPartitions: topics page by page."""

from __future__ import annotations

from typing import Any

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest


def asking(*names: str, limit: int = 2000, cursor: Cursor | None = None) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names], response_partition_limit=limit, cursor=cursor
    )


@conversation
def a_topic_is_described_with_its_partitions(talk: Talk) -> None:
    talk.ask(asking(talk.topic(partitions=3).name))


@conversation
def topics_are_described_in_the_order_of_their_names(talk: Talk) -> None:
    names = [talk.topic(label).name for label in ("b", "c", "a")]
    talk.ask(asking(*names))


@conversation
def a_topic_named_twice_is_described_once(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(asking(name, name))


@conversation
def an_unknown_topic_stands_in_its_place(talk: Talk) -> None:
    names = [talk.topic("a").name, talk.name("b"), talk.topic("c").name]
    talk.ask(asking(*names), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def what_cannot_be_a_name_is_refused(talk: Talk) -> None:
    for name in (".", "..", "two words", "x" * 250):
        talk.ask(asking(name), E.INVALID_TOPIC_EXCEPTION)


@conversation
def an_empty_name(talk: Talk) -> None:
    talk.ask(asking(""), E.UNKNOWN_SERVER_ERROR)


@conversation("0+", alone=True)
def no_names_mean_all_topics(talk: Talk) -> None:
    names = {talk.topic("b", partitions=2).name, talk.topic("a").name}
    talk.ask(
        asking(),
        until=lambda answer: {t.name for t in answer.topics if not t.name.startswith("__")} == names,
    )


@conversation
def a_page_ends_at_the_limit_and_the_cursor_leads_to_the_next(talk: Talk) -> None:
    names = [talk.topic("a", partitions=3).name, talk.topic("b", partitions=2).name]
    cursor = None
    while True:
        answer = talk.ask(asking(*names, limit=2, cursor=cursor))
        cursor = answer.next_cursor
        if cursor is None:
            break


@conversation
def a_page_that_ends_with_a_topic_points_to_the_next(talk: Talk) -> None:
    names = [talk.topic("a", partitions=2).name, talk.topic("b").name]
    talk.ask(asking(*names, limit=2))


@conversation
def a_limit_that_is_met_exactly_leaves_no_cursor(talk: Talk) -> None:
    talk.ask(asking(talk.topic(partitions=2).name, limit=2))


@conversation
def a_limit_below_one_is_taken_as_one(talk: Talk) -> None:
    name = talk.topic(partitions=3).name
    for limit in (1, 0, -1, -(2**31)):
        talk.ask(asking(name, limit=limit))


@conversation
def a_limit_above_the_brokers_is_cut(talk: Talk) -> None:
    talk.ask(asking(talk.topic(partitions=3).name, limit=2**31 - 1))


@conversation
def unknown_topics_do_not_count_against_the_limit(talk: Talk) -> None:
    names = [talk.name("a"), talk.topic("b", partitions=2).name, talk.name("c")]
    talk.ask(asking(*names, limit=1), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def a_cursor_inside_a_topic(talk: Talk) -> None:
    name = talk.topic(partitions=4).name
    for index in (0, 2, 3):
        talk.ask(asking(name, cursor=Cursor(topic_name=name, partition_index=index)))


@conversation
def a_cursor_beyond_the_last_partition(talk: Talk) -> None:
    names = [talk.topic("a", partitions=2).name, talk.topic("b").name]
    for index in (2, 99):
        talk.ask(asking(*names, cursor=Cursor(topic_name=names[0], partition_index=index)))


@conversation
def a_negative_partition_in_a_cursor_is_refused(talk: Talk) -> None:
    name = talk.topic().name
    talk.ask(asking(name, cursor=Cursor(topic_name=name, partition_index=-1)), E.INVALID_REQUEST)


@conversation
def topics_before_the_cursor_are_left_out(talk: Talk) -> None:
    names = [talk.topic(label).name for label in ("a", "b", "c")]
    talk.ask(asking(*names, cursor=Cursor(topic_name=names[1], partition_index=0)))


@conversation
def a_cursor_at_a_topic_that_is_not_asked_for(talk: Talk) -> None:
    names = [talk.topic(label).name for label in ("a", "b", "c")]
    asked = asking(names[0], names[2], cursor=Cursor(topic_name=names[1], partition_index=0))
    talk.ask(asked, E.INVALID_REQUEST, E.INVALID_REQUEST)


@conversation
def a_cursor_at_an_unknown_topic(talk: Talk) -> None:
    names = [talk.topic("a").name, talk.topic("c").name]
    cursor = Cursor(topic_name=talk.name("b"), partition_index=0)
    talk.ask(asking(*names, cursor=cursor), E.INVALID_REQUEST, E.INVALID_REQUEST)
    talk.ask(asking(*names, talk.name("b"), cursor=cursor), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def a_cursor_behind_every_topic(talk: Talk) -> None:
    talk.ask(asking(talk.topic().name, cursor=Cursor(topic_name="zzz", partition_index=0)), E.INVALID_REQUEST)


@conversation
def the_offsets_topic_is_internal(talk: Talk) -> None:
    talk.do(FindCoordinatorRequest(key_type=0, coordinator_keys=["group"]), version=4)
    talk.ask(asking("__consumer_offsets"), until=has_partitions)


def has_partitions(answer: Any) -> bool:
    return bool(answer.topics[0].partitions)

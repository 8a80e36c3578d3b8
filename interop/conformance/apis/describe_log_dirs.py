"""DescribeLogDirs: the log directories and the size of every partition in them."""

from __future__ import annotations

from typing import Any

from interop.conformance.conversation import conversation
from interop.conformance.talk import Talk
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka_broker.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

#: Logs are kept in hash maps.
BY_NAME = {"topics": "name", "partitions": "partition_index"}


def of(*topics: tuple[str, list[int]]) -> DescribeLogDirsRequest:
    asked = [DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in topics]
    return DescribeLogDirsRequest(topics=asked)


def ask(talk: Talk, request: DescribeLogDirsRequest, until: Any = None) -> None:
    talk.ask(request, until=until, in_any_order=BY_NAME)


@conversation
def the_size_of_empty_partitions(talk: Talk) -> None:
    ask(talk, of((talk.topic(partitions=2).name, [0, 1])))


@conversation
def the_size_of_what_was_written(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    talk.produce(topic, b"one", b"two", partition=1)
    ask(talk, of((topic.name, [1])))


@conversation
def some_partitions_of_a_topic(talk: Talk) -> None:
    ask(talk, of((talk.topic(partitions=3).name, [2, 0])))


@conversation
def partitions_that_do_not_exist(talk: Talk) -> None:
    ask(talk, of((talk.topic().name, [0, 7, -1]), (talk.name("missing"), [0])))


@conversation
def a_topic_without_partitions(talk: Talk) -> None:
    ask(talk, of((talk.topic().name, [])))


@conversation
def no_topics(talk: Talk) -> None:
    ask(talk, of())


@conversation
def a_topic_named_twice(talk: Talk) -> None:
    name = talk.topic(partitions=2).name
    ask(talk, of((name, [0]), (name, [0, 1])))


@conversation
def a_deleted_topic(talk: Talk) -> None:
    name = talk.topic().name
    gone = [DeleteTopicState(name=name, topic_id=ZERO_UUID)]
    talk.do(DeleteTopicsRequest(topics=gone, timeout_ms=10_000))
    ask(talk, of((name, [0])), until=lambda answer: not answer.results[0].topics)


@conversation
def the_metadata_log(talk: Talk) -> None:
    ask(talk, of(("__cluster_metadata", [0])))


@conversation("1+", alone=True)
def no_list_means_every_partition(talk: Talk) -> None:
    name = talk.topic(partitions=2).name

    def only_mine(answer: Any) -> bool:
        return {t.name for t in answer.results[0].topics if not t.name.startswith("__")} == {name}

    ask(talk, DescribeLogDirsRequest(topics=None), until=only_mine)

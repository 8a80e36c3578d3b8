"""OffsetForLeaderEpoch: where an epoch of a partition's leaders ends."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk, Topic
from interop.conformance.topics import without_start
from pykafka_broker.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


def end_of(epoch: int, partition: int = 0, current: int = -1) -> OffsetForLeaderPartition:
    return OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)


def of(topic: Topic | str, *partitions: OffsetForLeaderPartition) -> OffsetForLeaderTopic:
    name = topic if isinstance(topic, str) else topic.name
    return OffsetForLeaderTopic(topic=name, partitions=list(partitions))


def asking(*topics: OffsetForLeaderTopic, replica_id: int = -1) -> OffsetForLeaderEpochRequest:
    return OffsetForLeaderEpochRequest(replica_id=replica_id, topics=list(topics))


def written(talk: Talk) -> Topic:
    topic = talk.topic()
    talk.produce(topic, b"a", b"b", b"c")
    return topic


@conversation
def the_present_epoch_ends_with_the_log(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(asking(of(topic, end_of(0))))
    talk.produce(topic, b"more")
    talk.ask(asking(of(topic, end_of(0))))


@conversation
def an_epoch_without_records(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(asking(of(topic, end_of(0))))
    talk.ask(asking(of(topic, end_of(0, current=0))))


@conversation
def an_epoch_that_never_was(talk: Talk) -> None:
    topic = written(talk)
    for epoch in (1, 7, 2**31 - 1):
        talk.ask(asking(of(topic, end_of(epoch))))


@conversation
def negative_epochs(talk: Talk) -> None:
    topic = written(talk)
    for epoch in (-1, -2, -(2**31)):
        talk.ask(asking(of(topic, end_of(epoch))))


@conversation
def an_epoch_whose_records_were_deleted(talk: Talk) -> None:
    topic = written(talk)
    without_start(talk, topic, 2)
    talk.ask(asking(of(topic, end_of(0))))
    without_start(talk, topic, 3)
    talk.ask(asking(of(topic, end_of(0), end_of(1))))


@conversation
def the_leaders_epoch_has_to_be_the_present_one(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(asking(of(topic, end_of(0, current=0))))
    talk.ask(asking(of(topic, end_of(0, current=1))), E.UNKNOWN_LEADER_EPOCH)
    talk.ask(asking(of(topic, end_of(5, current=2**31 - 1))), E.UNKNOWN_LEADER_EPOCH)
    talk.ask(asking(of(topic, end_of(0, current=-2))), E.FENCED_LEADER_EPOCH)


@conversation
def unknown_topics_and_partitions(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(
        asking(
            of(talk.name("missing"), end_of(0), end_of(0, 4)),
            of(topic, end_of(0, 1), end_of(0), end_of(0, -1)),
        ),
        *[E.UNKNOWN_TOPIC_OR_PARTITION] * 4,
    )


@conversation
def a_missing_partition_is_noticed_before_a_wrong_epoch(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(asking(of(topic, end_of(0, 3, current=9))), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def names_that_no_topic_can_have(talk: Talk) -> None:
    for name in ("", "not valid!", "n" * 300):
        talk.ask(asking(of(name, end_of(0))), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def several_topics_in_the_order_of_the_request(talk: Talk) -> None:
    a, b = talk.topic("a", partitions=3), talk.topic("b")
    talk.produce(a, b"x", partition=1)
    talk.ask(asking(of(b, end_of(0)), of(a, end_of(0, 2), end_of(0, 0), end_of(0, 1))))


@conversation
def nothing_asked_nothing_answered(talk: Talk) -> None:
    talk.ask(asking())
    talk.ask(asking(of(written(talk))))


@conversation
def a_partition_named_twice_is_answered_twice(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(asking(of(topic, end_of(0), end_of(1), end_of(0))))


@conversation
def a_topic_named_twice(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(asking(of(topic, end_of(0)), of(topic, end_of(1))))


@conversation("3+")
def the_replica_id_does_not_matter(talk: Talk) -> None:
    topic = written(talk)
    for replica_id in (-2, -1, 0, 1, 9):
        talk.ask(asking(of(topic, end_of(0)), replica_id=replica_id))

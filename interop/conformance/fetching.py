"""Fetch requests of conversations, and the topics that they read."""

from __future__ import annotations

from typing import Any

from interop.conformance.talk import E, Talk, Topic
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

#: Of the cluster in whose metadata the topics of conversations are led for the first time.
LEADER_EPOCH = 0


def at(offset: int, partition: int = 0, max_bytes: int = 1_000_000, **more: Any) -> FetchPartition:
    return FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes, **more)


def of(topic: Topic, *partitions: FetchPartition) -> FetchTopic:
    return FetchTopic(topic=topic.name, topic_id=topic.id, partitions=list(partitions or (at(0),)))


def fetching(*topics: FetchTopic, **more: Any) -> FetchRequest:
    return FetchRequest(
        **{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 10_000_000, "topics": list(topics), **more}
    )


def written(talk: Talk, *, batches: int = 3, **more: Any) -> Topic:
    """A topic with some batches of two records."""
    topic = talk.topic(**more)
    for number in range(batches):
        talk.produce(topic, b"%d a" % number, b"%d b" % number)
    return topic


class Session:
    """A consumer with a fetch session."""

    def __init__(self, talk: Talk) -> None:
        self.talk, self.session_id, self.epoch = talk, 0, 0

    def fetches(self, *topics: FetchTopic, errors: tuple[E, ...] = (), **more: Any) -> None:
        request = fetching(*topics, session_id=self.session_id, session_epoch=self.epoch, **more)
        answer = self.talk.ask(request, *errors)
        self.session_id = answer.session_id
        self.epoch += 1

    def forgets(self, topic: Topic, *partitions: int, **more: Any) -> None:
        forgotten = ForgottenTopic(topic=topic.name, topic_id=topic.id, partitions=list(partitions))
        self.fetches(forgotten_topics_data=[forgotten], **more)

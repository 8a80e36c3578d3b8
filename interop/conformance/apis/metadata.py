"""Metadata: which brokers exist and who leads which partition."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic


def asking(*names: str, **more: bool) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False, **more)


@conversation
def a_topic_is_described_with_its_partitions(talk: Talk) -> None:
    topic = talk.topic(partitions=3)
    talk.ask(asking(topic.name))


@conversation("4+")
def an_unknown_topic_is_named_with_an_error_beside_the_known_ones(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(asking(topic.name, talk.name("missing"), topic.name), E.UNKNOWN_TOPIC_OR_PARTITION)

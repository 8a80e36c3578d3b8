"""InitProducerId: an identity for a producer that wants its batches written once."""

from __future__ import annotations

from typing import Any

from interop.conformance.batches import batch
from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk, Topic
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def asking(
    transactional_id: str | None = None, timeout_ms: int = 60_000, **more: Any
) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms, **more)


@conversation
def every_producer_gets_an_id_of_its_own(talk: Talk) -> None:
    talk.ask(asking())
    talk.ask(asking())
    talk.another().ask(asking())


@conversation
def the_timeout_does_not_matter_without_transactions(talk: Talk) -> None:
    for timeout_ms in (0, -1, 2**31 - 1, -(2**31)):
        talk.ask(asking(timeout_ms=timeout_ms))


@conversation("3+")
def an_id_without_an_epoch_is_invalid(talk: Talk) -> None:
    talk.ask(asking(producer_id=5, producer_epoch=-1), E.INVALID_REQUEST)
    talk.ask(asking(producer_id=-1, producer_epoch=0), E.INVALID_REQUEST)
    talk.ask(asking(producer_id=-1, producer_epoch=-2), E.INVALID_REQUEST)


@conversation("3+")
def a_producer_that_has_an_id_gets_another(talk: Talk) -> None:
    mine = talk.ask(asking())
    talk.ask(asking(producer_id=mine.producer_id, producer_epoch=mine.producer_epoch))
    talk.ask(asking(producer_id=2**50, producer_epoch=7))
    talk.ask(asking(producer_id=-5, producer_epoch=-5))


@conversation
def what_was_given_out_can_be_used(talk: Talk) -> None:
    mine = talk.ask(asking())
    topic: Topic = talk.topic()
    data = batch(b"x", producer_id=mine.producer_id, producer_epoch=mine.producer_epoch, base_sequence=0)
    partitions = [PartitionProduceData(index=0, records=data)]
    topics = [TopicProduceData(name=topic.name, topic_id=topic.id, partition_data=partitions)]
    talk.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics))
    talk.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics))


@conversation
def an_empty_transactional_id_is_invalid(talk: Talk) -> None:
    talk.ask(asking(""), E.INVALID_REQUEST)

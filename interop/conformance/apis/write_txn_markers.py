"""WriteTxnMarkers: what coordinators tell the leaders of partitions, and admins of hung ones."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk, Topic
from interop.conformance.transactions import Producer
from pykafka_broker.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykafka_broker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)


def marker(
    producer_id: int,
    epoch: int,
    *topics: tuple[str, list[int]],
    commit: bool = True,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=commit,
        topics=[WritableTxnMarkerTopic(name=name, partition_indexes=indexes) for name, indexes in topics],
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )


def seen(talk: Talk, topic: Topic) -> None:
    """Compare what readers of committed records get, and what the leader knows of producers."""
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    topics = [FetchTopic(topic=topic.name, topic_id=topic.id, partitions=[asked])]
    talk.ask(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1_000_000, topics=topics, isolation_level=1))
    talk.ask(DescribeProducersRequest(topics=[TopicRequest(name=topic.name, partition_indexes=[0])]))


@conversation
def markers_end_what_a_producer_has_open(talk: Talk) -> None:
    for commit in (True, False):
        topic = talk.topic(f"topic-{commit}")
        producer = Producer(talk, f"transaction-{commit}")
        producer.adds(topic)
        producer.writes(topic, b"one", b"two")
        seen(talk, topic)
        request = marker(producer.producer_id, producer.epoch, (topic.name, [0]), commit=commit)
        talk.ask(WriteTxnMarkersRequest(markers=[request]))
        seen(talk, topic)


@conversation
def a_marker_of_an_unknown_producer(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(WriteTxnMarkersRequest(markers=[marker(2**50, 3, (topic.name, [0]))]))
    seen(talk, topic)


@conversation
def a_marker_of_an_older_epoch(talk: Talk) -> None:
    topic, older = talk.topic(), Producer(talk)
    producer = Producer(talk)
    producer.adds(topic)
    producer.writes(topic, b"one")
    request = marker(older.producer_id, older.epoch, (topic.name, [0]))
    talk.ask(WriteTxnMarkersRequest(markers=[request]), E.INVALID_PRODUCER_EPOCH)
    seen(talk, topic)


@conversation
def a_marker_without_an_epoch(talk: Talk) -> None:
    request = marker(2**50, -1, (talk.topic().name, [0]))
    talk.ask(WriteTxnMarkersRequest(markers=[request]), E.UNKNOWN_SERVER_ERROR)


@conversation
def a_marker_of_an_older_coordinator(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    producer.adds(topic)
    producer.writes(topic, b"one")
    newer = marker(producer.producer_id, producer.epoch, (topic.name, [0]), coordinator_epoch=7)
    talk.ask(WriteTxnMarkersRequest(markers=[newer]))
    older = marker(producer.producer_id, producer.epoch, (topic.name, [0]), coordinator_epoch=6)
    talk.ask(WriteTxnMarkersRequest(markers=[older]), E.TRANSACTION_COORDINATOR_FENCED)
    seen(talk, topic)


@conversation
def unknown_topics_and_partitions(talk: Talk) -> None:
    topic = talk.topic()
    request = marker(2**50, 0, (talk.name("missing"), [0]), (topic.name, [7, 0]))
    talk.ask(
        WriteTxnMarkersRequest(markers=[request]),
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    )


@conversation
def nothing_to_mark(talk: Talk) -> None:
    talk.ask(WriteTxnMarkersRequest(markers=[]))
    talk.ask(WriteTxnMarkersRequest(markers=[marker(2**50, 0)]))


@conversation("2+")
def a_marker_of_the_second_version_has_an_epoch_of_its_own(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    producer.adds(topic)
    producer.writes(topic, b"one")
    same = marker(producer.producer_id, producer.epoch, (topic.name, [0]), transaction_version=2)
    talk.ask(WriteTxnMarkersRequest(markers=[same]), E.INVALID_PRODUCER_EPOCH)
    next_one = marker(producer.producer_id, producer.epoch + 1, (topic.name, [0]), transaction_version=2)
    talk.ask(WriteTxnMarkersRequest(markers=[next_one]))
    seen(talk, topic)

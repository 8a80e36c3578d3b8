"""DeleteRecords: move the start of partitions' logs forward."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk, Topic
from pykafka_broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

HIGH_WATERMARK = -1
EARLIEST, LATEST_OFFSET = -2, -1


def before(topic: str, *places: tuple[int, int]) -> DeleteRecordsTopic:
    """Delete what is before the offset of each partition: (partition, offset) ..."""
    partitions = [DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in places]
    return DeleteRecordsTopic(name=topic, partitions=partitions)


def delete(*topics: DeleteRecordsTopic, timeout_ms: int = 10_000) -> DeleteRecordsRequest:
    return DeleteRecordsRequest(topics=list(topics), timeout_ms=timeout_ms)


def five_records(talk: Talk, **configs: str) -> Topic:
    """A topic with three records in one batch, and two in another."""
    topic = talk.topic(configs={key.replace("_", "."): value for key, value in configs.items()})
    talk.produce(topic, b"0", b"1", b"2", key=b"key")
    talk.produce(topic, b"3", b"4", key=b"key")
    return topic


def bounds(talk: Talk, topic: Topic) -> None:
    """See where the log starts and ends."""
    for place in (EARLIEST, LATEST_OFFSET):
        asked = [ListOffsetsPartition(partition_index=0, timestamp=place)]
        talk.ask(
            ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic.name, partitions=asked)])
        )


@conversation
def records_before_an_offset(talk: Talk) -> None:
    topic = five_records(talk)
    talk.ask(delete(before(topic.name, (0, 3))))
    bounds(talk, topic)


@conversation
def records_in_the_middle_of_a_batch(talk: Talk) -> None:
    topic = five_records(talk)
    talk.ask(delete(before(topic.name, (0, 1))))
    bounds(talk, topic)


@conversation
def everything(talk: Talk) -> None:
    topic = five_records(talk)
    talk.ask(delete(before(topic.name, (0, HIGH_WATERMARK))))
    bounds(talk, topic)


@conversation
def everything_of_an_empty_partition(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(delete(before(topic.name, (0, HIGH_WATERMARK))))
    talk.ask(delete(before(topic.name, (0, 0))))


@conversation
def an_offset_below_the_start_changes_nothing(talk: Talk) -> None:
    topic = five_records(talk)
    talk.ask(delete(before(topic.name, (0, 3))))
    talk.ask(delete(before(topic.name, (0, 1))))
    bounds(talk, topic)


@conversation
def an_offset_at_the_end(talk: Talk) -> None:
    topic = five_records(talk)
    talk.ask(delete(before(topic.name, (0, 5))))
    bounds(talk, topic)


@conversation
def an_offset_beyond_the_end(talk: Talk) -> None:
    topic = five_records(talk)
    talk.ask(delete(before(topic.name, (0, 6))), E.OFFSET_OUT_OF_RANGE)
    bounds(talk, topic)


@conversation
def a_negative_offset(talk: Talk) -> None:
    topic = five_records(talk)
    for offset in (-2, -(2**63)):
        talk.ask(delete(before(topic.name, (0, offset))), E.OFFSET_OUT_OF_RANGE)


@conversation
def an_unknown_topic(talk: Talk) -> None:
    talk.ask(delete(before(talk.name(), (0, 0))), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def an_unknown_partition_beside_a_known_one(talk: Talk) -> None:
    topic = five_records(talk)
    talk.ask(
        delete(before(topic.name, (7, 1), (0, 1), (-1, 0))),
        *[E.UNKNOWN_TOPIC_OR_PARTITION] * 2,
    )


@conversation
def a_request_without_topics(talk: Talk) -> None:
    talk.ask(delete())


@conversation
def a_topic_without_partitions(talk: Talk) -> None:
    talk.ask(delete(before(talk.topic().name)))


@conversation
def several_topics(talk: Talk) -> None:
    names = [talk.topic(label).name for label in ("a", "b")]
    talk.ask(delete(*(before(name, (0, 0)) for name in names)))


@conversation
def a_partition_named_twice(talk: Talk) -> None:
    topic = five_records(talk)
    talk.ask(delete(before(topic.name, (0, 1), (0, 2))))
    bounds(talk, topic)


@conversation
def a_topic_that_is_only_compacted(talk: Talk) -> None:
    topic = five_records(talk, cleanup_policy="compact")
    talk.ask(delete(before(topic.name, (0, 1))), E.POLICY_VIOLATION)


@conversation
def a_topic_that_is_compacted_and_deleted(talk: Talk) -> None:
    topic = five_records(talk, cleanup_policy="compact,delete")
    talk.ask(delete(before(topic.name, (0, 1))))


@conversation
def a_topic_that_is_neither_compacted_nor_deleted(talk: Talk) -> None:
    topic = five_records(talk, cleanup_policy="")
    talk.ask(delete(before(topic.name, (0, 1))))


@conversation
def the_wrong_policy_is_seen_before_the_wrong_offset(talk: Talk) -> None:
    topic = five_records(talk, cleanup_policy="compact")
    talk.ask(delete(before(topic.name, (0, 99))), E.POLICY_VIOLATION)


@conversation
def an_internal_topic(talk: Talk) -> None:
    talk.do(FindCoordinatorRequest(key_type=0, coordinator_keys=["group"]), version=4)
    talk.is_led("__consumer_offsets")
    talk.ask(delete(before("__consumer_offsets", (0, 0))), E.INVALID_TOPIC_EXCEPTION)
    talk.ask(delete(before("__consumer_offsets", (99, 0))), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def what_is_deleted_cannot_be_fetched(talk: Talk) -> None:
    topic = five_records(talk)
    talk.ask(delete(before(topic.name, (0, 4))))
    for offset in (0, 3, 4):
        asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=10_000)
        topics = [FetchTopic(topic=topic.name, topic_id=topic.id, partitions=[asked])]
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=10_000, topics=topics)
        talk.ask(request, *([] if offset == 4 else [E.OFFSET_OUT_OF_RANGE]))

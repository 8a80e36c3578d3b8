"""Produce requests of conversations, and what is seen of their records afterwards."""

from __future__ import annotations

from typing import Any

from interop.conformance.talk import Talk, Topic
from pykafka_broker.log.partition.validation import FIRST_ZSTD_PRODUCE_VERSION
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.records.batch import Codec, _encode_varint

HOUR_MS = 3_600_000
#: The timestamp by which ListOffsets finds the record with the largest one.
MAX_TIMESTAMP = -3


def into(topic: Topic, *payloads: bytes | None, partition: int = 0) -> TopicProduceData:
    """A payload for each partition from `partition` on."""
    return TopicProduceData(
        name=topic.name,
        topic_id=topic.id,
        partition_data=[
            PartitionProduceData(index=partition + number, records=payload)
            for number, payload in enumerate(payloads)
        ],
    )


def producing(*topics: TopicProduceData, acks: int = -1, **more: Any) -> ProduceRequest:
    return ProduceRequest(
        acks=acks, timeout_ms=more.pop("timeout_ms", 10_000), topic_data=list(topics), **more
    )


def one(topic: Topic, payload: bytes | None, **more: Any) -> ProduceRequest:
    return producing(into(topic, payload), **more)


def read_back(talk: Talk, topic: Topic, partition: int = 0, *, end: int = 0) -> None:
    """Compare what the partition holds now, once all records before the offset `end` are committed."""
    asked = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1_000_000)
    topics = [FetchTopic(topic=topic.name, topic_id=topic.id, partitions=[asked])]
    talk.ask(
        FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1_000_000, topics=topics),
        until=(lambda answer: answer.responses[0].partitions[0].high_watermark >= end) if end else None,
    )


def look_up(talk: Talk, topic: Topic, *timestamps: int) -> None:
    """Compare what is found by these times, and the record with the largest of all."""
    for timestamp in (*timestamps, MAX_TIMESTAMP):
        asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        talk.ask(
            ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic.name, partitions=[asked])])
        )


def known_codecs(talk: Talk) -> list[Codec]:
    """The codecs that this version may use."""
    return [codec for codec in Codec if codec != Codec.ZSTD or talk.version >= FIRST_ZSTD_PRODUCE_VERSION]


def new_producer(talk: Talk) -> int:
    """A producer id that no other producer has."""
    answer = talk.do(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000))
    producer_id: int = answer.producer_id
    return producer_id


def varints(*numbers: int) -> bytes:
    """Zigzag varints one after the other."""
    return b"".join(_encode_varint(number) for number in numbers)


def record(fields: bytes, length: int | None = None) -> bytes:
    """A record of these bytes behind its length and its attributes."""
    body = b"\0" + fields
    return varints(len(body) if length is None else length) + body

"""Produce: record batches into partitions, and everything that can be wrong with one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from interop.conformance.batches import MADE_MS, batch, changed, old_message, sealed
from interop.conformance.conversation import ENDS, LATEST, conversation
from interop.conformance.talk import ANY, CLOSED, E, Talk, Topic
from interop.conformance.transactions import LAST_PRODUCE_VERSION_OF_OLD_CLIENTS
from interop.conformance.transactions import Producer as TransactionalProducer
from pykafka_broker.log.partition.validation import FIRST_ZSTD_PRODUCE_VERSION
from pykafka_broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.records.batch import (
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    BatchFields,
    Codec,
    _encode_varint,
    build_batch,
)
from pykafka_broker.protocol.records.compression import compress

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


def nowhere(talk: Talk) -> Topic:
    """A topic that does not exist."""
    return Topic(talk.name("missing"), b"no topic has me!")


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


def unknown_topic(talk: Talk) -> E:
    return E.UNKNOWN_TOPIC_ID if talk.version >= 13 else E.UNKNOWN_TOPIC_OR_PARTITION


# ---- what is written ----


@conversation
def offsets_follow_one_another(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, batch(b"one")))
    talk.ask(one(topic, batch(b"two", b"three")))
    talk.ask(one(topic, batch(b"four"), acks=1))
    read_back(talk, topic, end=4)


@conversation
def several_partitions_of_several_topics_are_answered_each(talk: Talk) -> None:
    a, b = talk.topic("a", partitions=3), talk.topic("b", partitions=2)
    talk.ask(producing(into(a, batch(b"1"), batch(b"2", b"3"), batch(b"4")), into(b, batch(b"5"))))
    talk.ask(producing(into(b, batch(b"6"), partition=1), into(a, batch(b"7"), partition=2)))


@conversation
def nothing_to_write_is_nothing_to_answer(talk: Talk) -> None:
    talk.ask(producing())
    talk.ask(producing(into(talk.topic())))


@conversation
def without_acknowledgement_there_is_no_answer_but_the_record(talk: Talk) -> None:
    topic = talk.topic()
    talk.send(one(topic, batch(b"unconfirmed"), acks=0))
    talk.ask(one(topic, batch(b"confirmed"), acks=1))
    read_back(talk, topic, end=2)


@conversation
def keys_headers_and_null_values_come_back_as_they_were(talk: Talk) -> None:
    topic = talk.topic()
    records: list[Any] = [
        (MADE_MS, b"key", b"value", [("name", b"header"), ("name", None), ("", b"")]),
        (MADE_MS - 5, None, None, []),
        (MADE_MS + 90_000, b"", b"", [("\u00fc", b"\xff\x00")]),
    ]
    talk.ask(one(topic, build_batch(records)))
    read_back(talk, topic)


@conversation
def compressed_records_stay_compressed(talk: Talk) -> None:
    topic = talk.topic()
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        talk.ask(one(topic, batch(b"a" * 500, b"b" * 500, codec=codec)))
    read_back(talk, topic)


@conversation
def zstd_is_taken_from_those_who_know_it(talk: Talk) -> None:
    topic = talk.topic()
    refused = [E.UNSUPPORTED_COMPRESSION_TYPE] if talk.version < 7 else []
    talk.ask(one(topic, batch(b"a" * 500, b"b" * 500, codec=Codec.ZSTD)), *refused)
    read_back(talk, topic)


@conversation(ENDS)
def a_topic_of_its_own_codec_compresses_again(talk: Talk) -> None:
    for name in ("gzip", "snappy", "lz4", "zstd", "uncompressed"):
        topic = talk.topic(name, configs={"compression.type": name})
        talk.ask(one(topic, batch(b"a" * 500, b"b" * 500)))
        talk.ask(one(topic, batch(b"c" * 500, b"d" * 500, codec=Codec.GZIP)))
        read_back(talk, topic)


@conversation
def a_topic_with_append_time_stamps_its_batches(talk: Talk) -> None:
    topic = talk.topic(configs={"message.timestamp.type": "LogAppendTime"})
    talk.ask(one(topic, batch(b"one", b"two")))
    talk.ask(one(topic, batch(b"far in the future", timestamp_ms=MADE_MS * 10)))
    talk.ask(one(topic, batch(b"compressed", codec=Codec.LZ4)))
    read_back(talk, topic)


@conversation
def internal_topics_are_not_for_clients(talk: Talk) -> None:
    talk.do(FindCoordinatorRequest(key_type=0, coordinator_keys=[talk.name("group")]))
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name="__consumer_offsets")], allow_auto_topic_creation=False
    )
    described = talk.do(asked).topics[0]
    talk.is_led("__consumer_offsets")
    offsets = Topic("__consumer_offsets", described.topic_id)
    talk.ask(one(offsets, batch(b"not a commit")), E.INVALID_TOPIC_EXCEPTION)


# ---- the request ----


@conversation
def an_unknown_topic_has_no_partitions_to_write_to(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(nowhere(talk), batch(b"lost")), unknown_topic(talk))
    talk.ask(producing(into(nowhere(talk), batch(b"lost")), into(topic, batch(b"kept"))), unknown_topic(talk))


@conversation
def an_unknown_partition_is_refused_beside_a_known_one(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(producing(into(topic, batch(b"kept"), batch(b"lost"))), E.UNKNOWN_TOPIC_OR_PARTITION)
    talk.ask(producing(into(topic, batch(b"lost"), partition=-1)), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def a_name_that_no_topic_can_have_is_unknown(talk: Talk) -> None:
    for name in ("", "not valid!", ".", "n" * 250):
        topic = Topic(name, b"no topic has me!")
        talk.ask(one(topic, batch(b"lost")), unknown_topic(talk))


@conversation("13+")
def the_zero_id_is_no_topic(talk: Talk) -> None:
    talk.ask(one(Topic("", bytes(16)), batch(b"lost")), E.UNKNOWN_TOPIC_ID)


@conversation
def acks_other_than_none_one_and_all_are_refused(talk: Talk) -> None:
    topic = talk.topic()
    for acks in (5, 2, -2):
        talk.ask(one(topic, batch(b"lost"), acks=acks), E.INVALID_REQUIRED_ACKS)
    read_back(talk, topic)


@conversation
def an_unknown_topic_is_noticed_before_invalid_acks(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(producing(into(nowhere(talk), batch(b"lost")), acks=5), unknown_topic(talk))
    talk.ask(one(topic, b"", acks=5), E.INVALID_RECORD)


@conversation
def a_batch_that_spoils_the_frame_is_noticed_before_invalid_acks(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, changed(batch(b"x"), right_checksum=False, crc=1), acks=5), E.INVALID_REQUIRED_ACKS)
    talk.ask(one(topic, changed(batch(b"x"), magic=9), acks=5), E.CORRUPT_MESSAGE)


@conversation
def a_negative_timeout_does_not_matter(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, batch(b"one"), timeout_ms=-1))
    talk.ask(one(topic, batch(b"two"), timeout_ms=0))
    talk.ask(one(topic, batch(b"three"), timeout_ms=-(2**31), acks=1))


@conversation
def a_transactional_id_without_transactional_records_does_not_matter(talk: Talk) -> None:
    talk.ask(one(talk.topic(), batch(b"plain"), transactional_id=talk.name("transaction")))


@conversation
def transactional_records_need_a_transactional_id(talk: Talk) -> None:
    topic = talk.topic()
    data = batch(b"x", producer_id=new_producer(talk), producer_epoch=0, base_sequence=0, transactional=True)
    talk.ask(one(topic, data), E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    talk.ask(
        producing(into(topic, data), into(nowhere(talk), batch(b"y"))),
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    )


@conversation
def an_error_without_acknowledgement_closes_the_connection(talk: Talk) -> None:
    topic = talk.topic()
    talk.another().send(one(topic, batch(b"fine"), acks=0))
    talk.ask(one(nowhere(talk), batch(b"lost"), acks=0), CLOSED)


@conversation
def a_refused_batch_without_acknowledgement_closes_the_connection(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, changed(batch(b"x"), base_offset=3), acks=0), CLOSED)


@conversation
def the_same_partition_twice_in_one_request(talk: Talk) -> None:
    topic = talk.topic()
    twice = into(topic, batch(b"one"))
    twice.partition_data.append(PartitionProduceData(index=0, records=batch(b"two")))
    talk.ask(producing(twice))
    read_back(talk, topic)


@conversation
def the_same_topic_twice_in_one_request(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    talk.ask(producing(into(topic, batch(b"one")), into(topic, batch(b"two"), partition=1)))
    read_back(talk, topic)
    read_back(talk, topic, 1)


# ---- what is no batch ----


@conversation
def no_bytes_are_no_batch(talk: Talk) -> None:
    talk.ask(one(talk.topic(), b""), E.INVALID_RECORD)


@conversation
def a_few_bytes_are_no_batch(talk: Talk) -> None:
    topic = talk.topic()
    for size in (1, 11, 12, 16, 17, HEADER_BYTES - 1, HEADER_BYTES):
        talk.ask(one(topic, batch(b"cut short")[:size]), E.INVALID_RECORD)


@conversation
def a_batch_whose_end_is_missing_is_refused(talk: Talk) -> None:
    talk.ask(one(talk.topic(), batch(b"cut short")[:-1]), E.INVALID_RECORD)


@conversation
def two_batches_in_one_partition_are_refused(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, batch(b"one") + batch(b"two")), E.INVALID_RECORD)
    read_back(talk, topic)


@conversation
def bytes_that_do_not_hold_together_spoil_the_request(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    for data in (bytes(12), bytes(100), b"\xff" * 100):
        talk.ask(producing(into(topic, batch(b"good"), data)), E.CORRUPT_MESSAGE, E.CORRUPT_MESSAGE)
    read_back(talk, topic)


@conversation
def the_old_message_formats_are_refused(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, old_message(0, b"before 0.10")), E.INVALID_RECORD)
    talk.ask(one(topic, old_message(1, b"before 0.11")), E.INVALID_RECORD)


@conversation
def formats_of_the_future_are_corrupt(talk: Talk) -> None:
    topic = talk.topic()
    for magic in (3, 127, -1):
        talk.ask(one(topic, changed(batch(b"x"), magic=magic)), E.CORRUPT_MESSAGE)


# ---- what is wrong in the header of a batch ----


@conversation
def a_wrong_checksum_is_corrupt(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, changed(batch(b"x"), crc=12345)), E.CORRUPT_MESSAGE)
    flipped = bytearray(batch(b"value"))
    flipped[-2] ^= 1
    talk.ask(one(topic, bytes(flipped)), E.CORRUPT_MESSAGE)
    read_back(talk, topic)


@conversation
def a_batch_has_to_begin_with_offset_zero(talk: Talk) -> None:
    topic = talk.topic()
    for base_offset in (1, -1, 2**40):
        talk.ask(one(topic, changed(batch(b"x"), base_offset=base_offset)), E.INVALID_RECORD)


@conversation
def a_leader_epoch_of_the_producer_does_not_matter(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, changed(batch(b"x"), partition_leader_epoch=77)))
    read_back(talk, topic)


@conversation
def a_count_that_is_not_that_of_the_offsets_is_invalid(talk: Talk) -> None:
    topic = talk.topic()
    for count in (0, -1, 1, 3, 2**31 - 1):
        talk.ask(one(topic, changed(batch(b"one", b"two"), records_count=count)), E.INVALID_RECORD)
    for delta in (-1, -2, 0, 2, 2**31 - 1):
        talk.ask(one(topic, changed(batch(b"one", b"two"), last_offset_delta=delta)), E.INVALID_RECORD)


@conversation
def a_batch_without_records_is_invalid(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(
        one(topic, changed(batch(b"x"), body=b"", records_count=0, last_offset_delta=-1)), E.INVALID_RECORD
    )
    talk.ask(
        one(topic, changed(batch(b"x"), body=b"", records_count=0, last_offset_delta=0)), E.INVALID_RECORD
    )


@conversation
def control_records_are_not_for_clients(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, changed(batch(b"x"), attributes=CONTROL_BIT)), E.INVALID_RECORD)


@conversation
def a_codec_that_does_not_exist_is_refused(talk: Talk) -> None:
    topic = talk.topic()
    for codec in (5, 6, 7):
        talk.ask(one(topic, changed(batch(b"x"), attributes=codec)), E.UNKNOWN_SERVER_ERROR)


@conversation
def a_codec_that_does_not_exist_is_noticed_before_the_checksum_where_versions_forbid_codecs(
    talk: Talk,
) -> None:
    noticed = E.UNKNOWN_SERVER_ERROR if talk.version < 7 else E.CORRUPT_MESSAGE
    talk.ask(one(talk.topic(), changed(batch(b"x"), right_checksum=False, attributes=5)), noticed)


@conversation
def data_that_its_codec_cannot_read_is_refused(talk: Talk) -> None:
    topic = talk.topic()
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        talk.ask(one(topic, changed(batch(b"x" * 50), attributes=codec)), E.UNKNOWN_SERVER_ERROR)
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        cut = batch(b"x" * 500, b"y" * 500, codec=codec)[HEADER_BYTES:-20]
        data = changed(batch(b"x", b"y"), body=cut, attributes=codec)
        talk.ask(one(topic, data), E.UNKNOWN_SERVER_ERROR)


@conversation
def bits_of_the_attributes_that_mean_nothing_are_let_through(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, changed(batch(b"x"), attributes=1 << 7)))
    talk.ask(one(topic, changed(batch(b"x"), attributes=1 << 14)))
    read_back(talk, topic)


@conversation
def a_delete_horizon_of_a_client(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, changed(batch(b"x"), attributes=DELETE_HORIZON_BIT)))
    read_back(talk, topic)


@conversation
def producers_must_not_claim_append_time(talk: Talk) -> None:
    topic = talk.topic()
    stamped = talk.topic("append", configs={"message.timestamp.type": "LogAppendTime"})
    data = changed(batch(b"x"), attributes=TIMESTAMP_TYPE_BIT)
    talk.ask(one(topic, data))
    talk.ask(one(stamped, data), E.INVALID_TIMESTAMP)
    read_back(talk, topic)


@conversation
def a_producer_id_needs_an_epoch_and_a_sequence(talk: Talk) -> None:
    topic = talk.topic()
    producer_id = new_producer(talk)
    data = batch(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=-1)
    talk.ask(one(topic, data), E.INVALID_RECORD)
    data = batch(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=-2)
    talk.ask(one(topic, data), E.INVALID_RECORD)


# ---- limits ----


@conversation
def a_batch_above_the_topics_limit_is_too_large(talk: Talk) -> None:
    data = batch(b"x" * 100)
    exactly = talk.topic("exactly", configs={"max.message.bytes": str(len(data))})
    talk.ask(one(exactly, data))
    talk.ask(one(exactly, batch(b"x" * 101)), E.MESSAGE_TOO_LARGE)
    read_back(talk, exactly)


@conversation(ENDS)
def a_batch_is_measured_again_after_its_compression_changed(talk: Talk) -> None:
    data = batch(b"x" * 2000, codec=Codec.GZIP)
    topic = talk.topic(configs={"compression.type": "uncompressed", "max.message.bytes": "500"})
    talk.ask(one(topic, data), E.MESSAGE_TOO_LARGE)


@conversation(ENDS)
def a_batch_above_the_segments_size_is_refused(talk: Talk) -> None:
    topic = talk.topic(configs={"segment.bytes": "1048576", "max.message.bytes": "2000000"})
    talk.ask(one(topic, batch(b"x" * 1_100_000)), E.RECORD_LIST_TOO_LARGE)
    read_back(talk, topic)


@conversation
def too_large_and_a_wrong_offset_the_offset_is_noticed_first(talk: Talk) -> None:
    topic = talk.topic(configs={"max.message.bytes": "100"})
    large = batch(b"x" * 100)
    talk.ask(one(topic, changed(large, base_offset=1)), E.INVALID_RECORD)
    talk.ask(one(topic, changed(large, crc=1)), E.MESSAGE_TOO_LARGE)
    talk.ask(one(topic, changed(large, records_count=2)), E.MESSAGE_TOO_LARGE)


@conversation
def a_wrong_checksum_is_noticed_before_what_it_covers(talk: Talk) -> None:
    for topic in (talk.topic(), talk.topic("compacted", configs={"cleanup.policy": "compact"})):
        good = batch(b"x")
        for wrong in (
            changed(good, right_checksum=False, records_count=2),
            changed(good, right_checksum=False, attributes=CONTROL_BIT),
            changed(good, right_checksum=False, max_timestamp=0),
        ):
            talk.ask(one(topic, wrong), E.CORRUPT_MESSAGE)


@conversation
def records_older_than_allowed_are_named(talk: Talk) -> None:
    topic = talk.topic(configs={"message.timestamp.before.max.ms": "1000"})
    talk.ask(one(topic, batch(b"old", b"older")), E.INVALID_TIMESTAMP)
    talk.ask(one(topic, batch(b"new", timestamp_ms=int(time.time() * 1000))))
    talk.ask(one(topic, batch(b"no timestamp", timestamp_ms=-1)))


@conversation
def records_from_the_future_are_named(talk: Talk) -> None:
    topic = talk.topic(configs={"message.timestamp.after.max.ms": "1000"})
    talk.ask(one(topic, batch(b"one", b"two", timestamp_ms=MADE_MS * 2)), E.INVALID_TIMESTAMP)
    talk.ask(
        one(topic, batch(b"one", b"two", timestamp_ms=MADE_MS * 2, codec=Codec.GZIP)), E.INVALID_TIMESTAMP
    )
    talk.ask(one(topic, batch(b"old")))


@conversation
def an_hour_ahead_is_the_default_limit(talk: Talk) -> None:
    topic = talk.topic()
    now_ms = int(time.time() * 1000)
    talk.ask(one(topic, batch(b"soon", timestamp_ms=now_ms + HOUR_MS - 60_000)))
    talk.ask(one(topic, batch(b"too late", timestamp_ms=MADE_MS * 3)), E.INVALID_TIMESTAMP)


@conversation
def a_largest_timestamp_that_is_wrong_is_corrected(talk: Talk) -> None:
    topic = talk.topic()
    for wrong in (MADE_MS, MADE_MS + 500, MADE_MS - 1, -1, 0, MADE_MS * 9, -(2**63), 2**63 - 1):
        talk.ask(one(topic, changed(batch(b"one", b"two"), max_timestamp=wrong)))
    read_back(talk, topic)
    look_up(talk, topic, MADE_MS + 1, MADE_MS + 2)


@conversation
def the_largest_timestamp_over_explicit_ones_only(talk: Talk) -> None:
    """As kafkajs sends a record with a timestamp beside one without, which gets the time of its sending."""
    topic = talk.topic()
    mixed: list[Any] = [(MADE_MS - 2 * 24 * HOUR_MS, None, b"old", []), (MADE_MS, None, b"fresh", [])]
    for codec in known_codecs(talk):
        data = build_batch(mixed, BatchFields(codec=codec, producer_epoch=0, base_sequence=0, leader_epoch=0))
        talk.ask(one(topic, changed(data, max_timestamp=MADE_MS - 2 * 24 * HOUR_MS)))
    read_back(talk, topic)
    look_up(talk, topic, MADE_MS - HOUR_MS, MADE_MS, MADE_MS + 1)


@conversation
def the_largest_timestamp_as_the_last_ones(talk: Talk) -> None:
    """As kafka-go sends messages whose timestamps do not grow."""
    topic = talk.topic()
    shifts = (0, 90_000, 300, 7)
    for codec in known_codecs(talk):
        records: list[Any] = [(MADE_MS + shift, b"key", b"value", []) for shift in shifts]
        talk.ask(
            one(topic, changed(build_batch(records, BatchFields(codec=codec)), max_timestamp=MADE_MS + 7))
        )
    read_back(talk, topic)
    look_up(talk, topic, MADE_MS + 8, MADE_MS + 301, MADE_MS + 90_000, MADE_MS + 90_001)


@conversation(ENDS)
def the_largest_timestamp_among_many_records(talk: Talk) -> None:
    """Of one size and of all sizes, growing, falling and jumping about."""
    topic = talk.topic()
    sizes: tuple[Callable[[int], int], ...] = (lambda _: 20, lambda number: number % 40)
    shifts: tuple[Callable[[int], int], ...] = (
        lambda number: number,
        lambda number: -number,
        lambda number: number * 60_000,
        lambda number: number * 7919 % 5000 - 2500,
    )
    for value_bytes in sizes:
        for shift in shifts:
            records = [
                (MADE_MS + shift(number), b"key", b"v" * value_bytes(number), ()) for number in range(300)
            ]
            talk.ask(one(topic, changed(build_batch(records), max_timestamp=MADE_MS + 1)))
    read_back(talk, topic)
    look_up(talk, topic, MADE_MS + 299, MADE_MS + 2500, MADE_MS + 5 * HOUR_MS)


@conversation
def a_largest_timestamp_that_is_wrong_where_the_topic_has_its_own_codec(talk: Talk) -> None:
    topic = talk.topic(configs={"compression.type": "lz4"})
    talk.ask(one(topic, changed(batch(b"one", b"two"), max_timestamp=MADE_MS)))
    talk.ask(one(topic, changed(batch(b"one", b"two", codec=Codec.GZIP), max_timestamp=-1)))
    read_back(talk, topic)
    look_up(talk, topic, MADE_MS + 1)


@conversation
def a_base_timestamp_that_is_not_the_first_records(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, changed(batch(b"one", b"two"), base_timestamp=MADE_MS - 5)))
    talk.ask(one(topic, changed(batch(b"one", b"two", step_ms=-700), base_timestamp=MADE_MS + 5)))
    talk.ask(one(topic, changed(batch(b"one", b"two"), base_timestamp=0)))
    read_back(talk, topic)
    look_up(talk, topic, 0, MADE_MS - 5, MADE_MS + 5)


@conversation
def a_largest_timestamp_does_not_hide_one_from_the_future(talk: Talk) -> None:
    topic = talk.topic()
    for codec in known_codecs(talk):
        records: list[Any] = [(MADE_MS, None, b"now", []), (MADE_MS * 2, None, b"far", [])]
        data = changed(build_batch(records, BatchFields(codec=codec)), max_timestamp=MADE_MS)
        talk.ask(one(topic, data), E.INVALID_TIMESTAMP)


@conversation(ENDS)
def times_beyond_the_largest_number(talk: Talk) -> None:
    """Where the topic takes any time: base and distance wrap around."""
    topic = talk.topic(configs={"message.timestamp.after.max.ms": str(2**63 - 1)})
    data = batch(b"one", b"two", timestamp_ms=0, step_ms=3)
    for base in (2**63 - 1, 2**63 - 3, 2**63 - 4, -(2**63), -3, -9):
        talk.ask(one(topic, changed(data, base_timestamp=base)))
    read_back(talk, topic)
    plain = talk.topic("plain")
    for base in (2**63 - 1, 2**63 - 4, -(2**63)):
        talk.ask(one(plain, changed(data, base_timestamp=base)), E.INVALID_TIMESTAMP)
    talk.ask(one(plain, changed(data, base_timestamp=-9)))
    read_back(talk, plain)


@conversation(LATEST)
def an_append_time_that_a_producer_claims(talk: Talk) -> None:
    topic = talk.topic()
    data = changed(batch(b"one", b"two"), attributes=TIMESTAMP_TYPE_BIT, max_timestamp=MADE_MS - HOUR_MS)
    talk.ask(one(topic, data))
    read_back(talk, topic)
    look_up(talk, topic, MADE_MS)
    far = changed(data, max_timestamp=MADE_MS * 2)
    talk.ask(one(topic, far), E.INVALID_TIMESTAMP)
    talk.ask(one(topic, changed(data, max_timestamp=-1)), E.INVALID_TIMESTAMP)


@conversation
def records_without_timestamps_are_taken(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, batch(b"one", b"two", timestamp_ms=-1, step_ms=0)))
    read_back(talk, topic)


@conversation
def a_compacted_topic_needs_keys(talk: Talk) -> None:
    topic = talk.topic(configs={"cleanup.policy": "compact"})
    talk.ask(one(topic, batch(b"one", b"two", b"three", b"four")), E.INVALID_RECORD)
    talk.ask(one(topic, batch(b"value", key=b"key")))
    talk.ask(one(topic, batch(None, key=b"")))
    talk.ask(one(topic, batch(b"compressed", codec=Codec.SNAPPY)), E.INVALID_RECORD)
    read_back(talk, topic)


@conversation
def only_the_records_without_a_key_are_named(talk: Talk) -> None:
    topic = talk.topic(configs={"cleanup.policy": "compact,delete"})
    records: list[Any] = [(MADE_MS, b"key" if index % 2 else None, b"value", []) for index in range(5)]
    talk.ask(one(topic, build_batch(records)), E.INVALID_RECORD)


@conversation
def without_a_key_and_too_old_the_key_is_noticed_first(talk: Talk) -> None:
    topic = talk.topic(configs={"cleanup.policy": "compact", "message.timestamp.before.max.ms": "1000"})
    talk.ask(one(topic, build_batch([(MADE_MS, None, b"value", [])])), E.INVALID_RECORD)
    records: list[Any] = [(MADE_MS, None, b"no key", []), (MADE_MS, b"key", b"too old", [])]
    talk.ask(one(topic, build_batch(records)), E.INVALID_TIMESTAMP)


@conversation
def records_that_do_not_fill_the_batch_are_found(talk: Talk) -> None:
    for topic in (talk.topic(), talk.topic("compacted", configs={"cleanup.policy": "compact"})):
        good = batch(b"value", key=b"key")
        talk.ask(one(topic, changed(good, body=good[HEADER_BYTES:] + b"more")), E.INVALID_RECORD)
        talk.ask(one(topic, changed(good, body=good[HEADER_BYTES:-1])), E.INVALID_RECORD)
        talk.ask(one(topic, changed(good, body=b"\x80" * 20)), E.UNKNOWN_SERVER_ERROR)


@conversation
def more_replicas_in_sync_than_there_are_need_not_be(talk: Talk) -> None:
    topic = talk.topic(configs={"min.insync.replicas": "2"})
    talk.ask(one(topic, batch(b"of the leader"), acks=1))
    talk.ask(one(topic, batch(b"of all")))


@conversation(LATEST)
def more_records_than_a_batch_may_have(talk: Talk) -> None:
    count = 1_000_001
    body = b"".join([record(varints(0, number, -1, -1, 0)) for number in range(count)])
    data = changed(
        batch(b"x"),
        body=compress(Codec.ZSTD, body),
        attributes=Codec.ZSTD,
        records_count=count,
        last_offset_delta=count - 1,
        max_timestamp=MADE_MS,
    )
    assert len(data) < 1_000_000
    talk.ask(one(talk.topic(), data), ANY)


@conversation(LATEST)
def a_batch_that_is_too_large_when_decompressed(talk: Talk) -> None:
    data = batch(bytes(101 * 1024 * 1024), codec=Codec.ZSTD)
    talk.ask(one(talk.topic(), data), ANY)


@conversation(LATEST)
def a_few_bytes_behind_the_batch(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, batch(b"x") + b"more"))
    talk.ask(one(topic, batch(b"x") + batch(b"y")[:40]))
    read_back(talk, topic)


@conversation(ENDS)
def a_topic_that_takes_no_bytes(talk: Talk) -> None:
    topic = talk.topic(configs={"max.message.bytes": "0"})
    talk.ask(one(topic, batch(b"")), E.MESSAGE_TOO_LARGE)


@conversation
def a_batch_of_many_records(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, batch(*[b"%d" % number for number in range(1000)])))
    talk.ask(one(topic, batch(*[b"%d" % number for number in range(1000)], codec=Codec.LZ4)))
    talk.ask(one(topic, batch(b"next")))


@conversation(ENDS)
def more_bad_records_than_are_named(talk: Talk) -> None:
    topic = talk.topic(configs={"cleanup.policy": "compact"})
    talk.ask(one(topic, batch(*[b"%d" % number for number in range(20)])), E.INVALID_RECORD)


@conversation(LATEST)
def a_thousand_bad_records_and_more(talk: Talk) -> None:
    topic = talk.topic(configs={"cleanup.policy": "compact"})
    talk.ask(one(topic, batch(*[b"%d" % number for number in range(1003)])), E.INVALID_RECORD)


@conversation(LATEST)
def offsets_inside_a_batch_that_do_not_count_up(talk: Talk) -> None:
    records: list[Any] = [(MADE_MS, b"key", b"%d" % number, []) for number in range(3)]
    data = build_batch(records, BatchFields(offset_deltas=[0, 2, 1], last_offset_delta=2))
    talk.ask(one(talk.topic("plain"), data), ANY)
    talk.ask(one(talk.topic("compacted", configs={"cleanup.policy": "compact"}), data), ANY)


@conversation(LATEST)
def a_producer_id_without_an_epoch(talk: Talk) -> None:
    topic = talk.topic()
    data = batch(b"x", producer_id=new_producer(talk), producer_epoch=-1, base_sequence=0)
    talk.ask(one(topic, data), ANY)
    talk.ask(one(topic, data), ANY)


@conversation
def a_sequence_without_a_producer_does_not_matter(talk: Talk) -> None:
    topic = talk.topic()
    for _ in range(2):
        talk.ask(one(topic, batch(b"x", producer_id=-1, producer_epoch=3, base_sequence=7)))
    talk.ask(one(topic, batch(b"as kafkajs", producer_id=-1, producer_epoch=0, base_sequence=0)))
    read_back(talk, topic)


@conversation(LATEST)
def a_producer_id_below_that_of_none(talk: Talk) -> None:
    topic = talk.topic()
    for producer_id in (-2, -(2**63)):
        data = batch(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=0)
        talk.ask(one(topic, data), ANY)


# ---- what is wrong with the records ----


def varints(*numbers: int) -> bytes:
    """Zigzag varints one after the other."""
    return b"".join(_encode_varint(number) for number in numbers)


def record(fields: bytes, length: int | None = None) -> bytes:
    """A record of these bytes behind its length and its attributes."""
    body = b"\0" + fields
    return varints(len(body) if length is None else length) + body


@conversation
def records_whose_lengths_lie_are_invalid(talk: Talk) -> None:
    topic, good = talk.topic(), batch(b"value")
    for fields, length in (
        (varints(0, 0, -1, -1, 0), 90),  # beyond the batch
        (varints(0, 0, -1, -1, 0), 3),  # short of the fields
        (varints(0, 0, -1, -1, 0), -1),
        (varints(0, 0, 70, -1, 0), None),  # a key beyond the record
        (varints(0, 0, -1, 70, 0), None),  # a value beyond the record
        (varints(0, 0, -1, -1, 0) + b"more", None),
    ):
        talk.ask(one(topic, changed(good, body=record(fields, length))), E.INVALID_RECORD)
    talk.ask(one(topic, changed(good, body=bytes(20))), E.INVALID_RECORD)
    talk.ask(one(topic, changed(good, body=b"")), E.INVALID_RECORD)


@conversation
def headers_that_cannot_be_are_invalid(talk: Talk) -> None:
    topic, good = talk.topic(), batch(b"value")
    for count_and_headers in (
        varints(-1),
        varints(9),  # more headers than bytes
        varints(1, -1, -1),  # a header without a name
        varints(1, 0, 50),  # a header's value beyond the record
    ):
        body = record(varints(0, 0, -1, -1) + count_and_headers)
        talk.ask(one(topic, changed(good, body=body)), E.INVALID_RECORD)


@conversation
def any_negative_length_of_a_key_or_a_value_is_null(talk: Talk) -> None:
    topic, good = talk.topic(), batch(b"value")
    talk.ask(one(topic, changed(good, body=record(varints(0, 0, -2, -1, 0)))))
    talk.ask(one(topic, changed(good, body=record(varints(0, 0, -1, -7, 0)))))


@conversation
def a_number_that_does_not_end_is_an_error_of_the_server(talk: Talk) -> None:
    talk.ask(one(talk.topic(), changed(batch(b"value"), body=b"\x80" * 20)), E.UNKNOWN_SERVER_ERROR)


@conversation
def records_that_are_wrong_inside_compressed_data(talk: Talk) -> None:
    topic, good = talk.topic(), batch(b"value")
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        for body in (bytes(20), record(varints(0, 0, 70, -1, 0)), record(varints(0, 0, -1, -1, -1))):
            data = changed(good, body=compress(codec, body), attributes=codec)
            talk.ask(one(topic, data), E.INVALID_RECORD)


# ---- idempotent producers ----


class Producer:
    """An idempotent producer with a partition to write to."""

    def __init__(self, talk: Talk, topic: Topic) -> None:
        self.talk, self.topic = talk, topic
        self.producer_id = new_producer(talk)

    def writes(self, sequence: int, *errors: E, count: int = 1, epoch: int = 0) -> None:
        data = batch(
            *[b"%d" % (sequence + index) for index in range(count)],
            producer_id=self.producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        self.talk.ask(one(self.topic, data), *errors)


@conversation
def sequences_go_on_where_they_ended(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(0, count=3)
    producer.writes(3)
    producer.writes(4, count=2)
    read_back(talk, producer.topic)


@conversation
def a_batch_sent_again_is_answered_again_and_not_written_again(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(0, count=3)
    producer.writes(0, count=3)
    producer.writes(3)
    producer.writes(0, count=3)
    read_back(talk, producer.topic)


@conversation
def only_the_last_five_batches_are_remembered(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    for sequence in range(6):
        producer.writes(sequence)
    producer.writes(1)
    producer.writes(5)
    producer.writes(0, E.OUT_OF_ORDER_SEQUENCE_NUMBER)


@conversation
def a_gap_in_the_sequence_is_out_of_order(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(0)
    producer.writes(2, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    producer.writes(0, E.OUT_OF_ORDER_SEQUENCE_NUMBER, count=2)
    producer.writes(1)


@conversation
def a_new_producer_may_begin_anywhere(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(7)
    producer.writes(8)


@conversation
def a_new_epoch_begins_with_sequence_zero(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(0)
    producer.writes(1, E.OUT_OF_ORDER_SEQUENCE_NUMBER, epoch=1)
    producer.writes(0, epoch=1)
    producer.writes(1, E.INVALID_PRODUCER_EPOCH, epoch=0)
    producer.writes(0, E.INVALID_PRODUCER_EPOCH, epoch=0)
    producer.writes(1, epoch=1)


@conversation
def a_sequence_ends_and_begins_again_with_zero(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(2**31 - 2, count=1)
    producer.writes(2**31 - 1, count=3)
    producer.writes(2)
    producer.writes(2**31 - 1, count=3)
    read_back(talk, producer.topic)


@conversation
def the_largest_sequence_of_all(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(2**31 - 1)
    producer.writes(0)
    producer.writes(2**31 - 1)


@conversation
def an_older_epoch_sends_again_what_was_written(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(0, epoch=2)
    producer.writes(0, E.INVALID_PRODUCER_EPOCH, epoch=1)
    producer.writes(0, epoch=2)
    producer.writes(0, epoch=2**15 - 1)
    producer.writes(0, E.INVALID_PRODUCER_EPOCH, epoch=0)


@conversation
def a_producer_is_forgotten_with_its_records(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(0)
    producer.writes(1)
    asked = DeleteRecordsPartition(partition_index=0, offset=2)
    topics = [DeleteRecordsTopic(name=producer.topic.name, partitions=[asked])]
    talk.do(DeleteRecordsRequest(topics=topics, timeout_ms=10_000))
    producer.writes(1)
    producer.writes(5, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    producer.writes(2)


@conversation
def a_producer_id_that_was_never_allocated_is_accepted(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(one(topic, batch(b"x", producer_id=2**50, producer_epoch=3, base_sequence=0)))
    talk.ask(one(topic, batch(b"y", producer_id=2**50, producer_epoch=3, base_sequence=1)))


@conversation
def each_partition_has_its_own_sequences(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    producer_id = new_producer(talk)

    def of(sequence: int) -> bytes:
        return batch(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=sequence)

    talk.ask(producing(into(topic, of(0), of(0))))
    talk.ask(producing(into(topic, of(1), of(2))), E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    talk.ask(producing(into(topic, of(2), of(1))))


@conversation
def a_repeated_batch_in_a_topic_with_append_time_has_its_first_time(talk: Talk) -> None:
    producer = Producer(talk, talk.topic(configs={"message.timestamp.type": "LogAppendTime"}))
    producer.writes(0)
    producer.writes(0)


@conversation
def a_repeated_batch_that_is_longer_now_is_out_of_order(talk: Talk) -> None:
    producer = Producer(talk, talk.topic())
    producer.writes(0, count=2)
    producer.writes(0, E.OUT_OF_ORDER_SEQUENCE_NUMBER, count=3)
    producer.writes(1, E.OUT_OF_ORDER_SEQUENCE_NUMBER)


# ---- transactions ----


def implicitly(talk: Talk) -> bool:
    """Whether this version adds partitions to a transaction by itself."""
    return talk.version > LAST_PRODUCE_VERSION_OF_OLD_CLIENTS


@conversation
def transactional_batches_are_appended_when_their_partition_was_added(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    producer.adds(topic)
    for _ in range(2):
        talk.ask(producer.producing(topic, producer.batch(topic, b"x", b"y")))
    producer.ends()
    read_back(talk, topic)


@conversation("0+", alone=True)  # Apache takes the words of another request that the coordinator has
def transactional_batches_of_a_partition_that_was_not_added(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    refused = E.TRANSACTION_ABORTABLE if talk.version == 11 else E.INVALID_TXN_STATE
    request = producer.producing(topic, producer.batch(topic, b"x"))
    talk.ask(request, *([] if implicitly(talk) else [refused]))
    producer.settles() if not implicitly(talk) else producer.ends()
    read_back(talk, topic)


@conversation
def transactional_batches_of_an_older_epoch(talk: Talk) -> None:
    topic, older = talk.topic(), TransactionalProducer(talk)
    producer = TransactionalProducer(talk)
    producer.adds(topic)
    talk.ask(producer.producing(topic, producer.batch(topic, b"x")))
    talk.ask(producer.producing(topic, older.batch(topic, b"y")), E.INVALID_PRODUCER_EPOCH)


@conversation
def transactional_batches_of_an_unknown_producer(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    unknown = producer.batch(topic, b"x", producer_id=producer.producer_id + 1000)
    talk.ask(producer.producing(topic, unknown), E.INVALID_PRODUCER_ID_MAPPING)


@conversation
def transactional_batches_of_an_unknown_transactional_id(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    request = producer.producing(topic, producer.batch(topic, b"x"))
    request.transactional_id = talk.name("unknown")
    talk.ask(request, E.INVALID_PRODUCER_ID_MAPPING)


@conversation("0+", alone=True)  # Apache takes the words of another request that the coordinator has
def transactional_batches_after_the_end_of_their_transaction(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    producer.adds(topic)
    talk.ask(producer.producing(topic, producer.batch(topic, b"x")))
    producer.ends(version=4)
    refused = E.TRANSACTION_ABORTABLE if talk.version == 11 else E.INVALID_TXN_STATE
    request = producer.producing(topic, producer.batch(topic, b"late"))
    talk.ask(request, *([] if implicitly(talk) else [refused]))


@conversation
def transactional_batches_need_a_producer_id(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    without_id = producer.batch(topic, b"x", producer_id=-1, producer_epoch=-1, base_sequence=-1)
    talk.ask(producer.producing(topic, without_id), ANY)


@conversation
def plain_batches_of_a_transactional_producer_in_its_transaction(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    producer.adds(topic)
    talk.ask(producer.producing(topic, producer.batch(topic, b"x")))
    talk.ask(producer.producing(topic, producer.batch(topic, b"y", transactional=False)), E.INVALID_TXN_STATE)


@conversation
def transactional_and_plain_batches_in_one_request(talk: Talk) -> None:
    a, b, producer = talk.topic("a"), talk.topic("b"), TransactionalProducer(talk)
    producer.adds(a)
    request = producer.producing(a, producer.batch(a, b"x"))
    request.topic_data += [into(b, batch(b"plain")), into(nowhere(talk), batch(b"lost"))]
    talk.ask(request, unknown_topic(talk))


@conversation
def two_producers_in_one_request(talk: Talk) -> None:
    a, b = talk.topic("a"), talk.topic("b")
    one_of_them, other = TransactionalProducer(talk, "one"), TransactionalProducer(talk, "other")
    one_of_them.adds(a)
    other.adds(b)
    request = one_of_them.producing(a, one_of_them.batch(a, b"x"))
    request.topic_data.append(into(b, other.batch(b, b"y")))
    talk.ask(request, *[E.INVALID_PRODUCER_ID_MAPPING] * 2)


@conversation
def two_producers_in_one_request_leave_no_trace(talk: Talk) -> None:
    a, b, producer = talk.topic("a"), talk.topic("b"), TransactionalProducer(talk)
    other = TransactionalProducer(talk, "other")
    producer.adds(a)
    request = producer.producing(a, producer.batch(a, b"x"))
    request.topic_data.append(into(b, other.batch(b, b"y")))
    talk.ask(request, *[E.INVALID_PRODUCER_ID_MAPPING] * 2)
    talk.ask(producer.producing(a, producer.batch(a, b"later", base_sequence=5)), ANY)


@conversation
def a_producer_of_a_missing_partition_is_not_counted(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    producer.adds(topic)
    request = producer.producing(topic, producer.batch(topic, b"x"))
    other = producer.batch(topic, b"y", producer_id=producer.producer_id + 1000)
    request.topic_data[0].partition_data.append(PartitionProduceData(index=7, records=other))
    talk.ask(request, E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def what_is_no_batch_of_a_transaction_is_refused_first_and_leaves_no_trace(talk: Talk) -> None:
    topic = talk.topic()
    older, producer = TransactionalProducer(talk), TransactionalProducer(talk)
    for spoilt, error in (
        (lambda data: data * 2, E.INVALID_RECORD),
        (lambda data: data[:-1], E.INVALID_RECORD),
        (lambda data: changed(data, magic=1), E.INVALID_RECORD),
    ):
        talk.ask(one(topic, spoilt(older.batch(topic, b"x" * 50)), transactional_id=older.id), error)
        talk.ask(one(topic, spoilt(producer.batch(topic, b"x" * 50)), transactional_id=producer.id), error)
    producer.adds(topic)
    talk.ask(producer.producing(topic, producer.batch(topic, b"later", base_sequence=5)), ANY)


@conversation("3-6")
def a_codec_that_the_version_forbids_is_noticed_before_the_transaction(talk: Talk) -> None:
    topic = talk.topic()
    older, producer = TransactionalProducer(talk), TransactionalProducer(talk)
    producer.adds(topic)
    for each in (older, producer):
        data = each.batch(topic, b"x" * 50, codec=Codec.ZSTD)
        talk.ask(each.producing(topic, data), E.UNSUPPORTED_COMPRESSION_TYPE)
        data = changed(each.batch(topic, b"x" * 50), attributes=TRANSACTIONAL_BIT | 5)
        talk.ask(each.producing(topic, data), E.UNKNOWN_SERVER_ERROR)
    talk.ask(producer.producing(topic, producer.batch(topic, b"later", base_sequence=5)))
    producer.ends()
    read_back(talk, topic)


@conversation
def a_transaction_in_a_topic_with_append_time(talk: Talk) -> None:
    topic = talk.topic(configs={"message.timestamp.type": "LogAppendTime"})
    producer = TransactionalProducer(talk)
    for commits in (True, False):
        producer.adds(topic)
        talk.ask(producer.producing(topic, producer.batch(topic, b"x", b"y")))
        producer.ends(commits)
    read_back(talk, topic)


@conversation
def a_transactional_batch_sent_again(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    producer.adds(topic)
    request = producer.producing(topic, producer.batch(topic, b"x"))
    for _ in range(2):
        talk.ask(request)
    producer.ends()
    read_back(talk, topic)


@conversation
def a_transaction_begins_with_any_sequence_but_goes_on_in_order(talk: Talk) -> None:
    topic, producer = talk.topic(), TransactionalProducer(talk)
    producer.adds(topic)
    talk.ask(producer.producing(topic, producer.batch(topic, b"x", base_sequence=5)), ANY)
    talk.ask(producer.producing(topic, producer.batch(topic, b"y", base_sequence=9)), ANY)


@conversation(LATEST)
def a_batch_that_the_coordinator_refused_does_not_block_other_producers(talk: Talk) -> None:
    """Under the producer id of another producer, whose transaction is open: that one writes on."""
    topic, producer, other = talk.topic(), TransactionalProducer(talk), TransactionalProducer(talk, "other")
    producer.writes(topic, b"first")
    strange = other.batch(
        topic, b"strange", producer_id=producer.producer_id, producer_epoch=producer.epoch + 1
    )
    talk.ask(other.producing(topic, strange), E.INVALID_PRODUCER_ID_MAPPING)
    talk.ask(producer.producing(topic, producer.batch(topic, b"second")), ANY)


# ---- frames ----


@conversation(LATEST)
def records_that_are_null(talk: Talk) -> None:
    topic = talk.topic()
    talk.send(one(topic, None)).is_waiting()
    talk.another().ask(one(topic, batch(b"meanwhile")))


@conversation
def a_checksum_made_right_is_all_that_was_wrong(talk: Talk) -> None:
    topic = talk.topic()
    data = changed(batch(b"x"), crc=7)
    talk.ask(one(topic, data), E.CORRUPT_MESSAGE)
    talk.ask(one(topic, sealed(data)))

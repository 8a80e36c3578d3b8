"""Produce: record batches into partitions, and what is wrong with a request."""

from __future__ import annotations

from typing import Any

from interop.conformance.batches import MADE_MS, batch, changed
from interop.conformance.conversation import ENDS, conversation
from interop.conformance.producing import into, new_producer, one, producing, read_back
from interop.conformance.talk import CLOSED, E, Talk, Topic
from interop.conformance.topics import NO_TOPIC, nowhere, unknown_topic
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.protocol.messages.produce import PartitionProduceData
from pykafka_broker.protocol.records.batch import Codec, build_batch

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
        topic = Topic(name, NO_TOPIC)
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

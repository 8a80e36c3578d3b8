"""Produce: batches within the limits of their topics, and beyond them."""

from __future__ import annotations

from typing import Any

from interop.conformance.batches import MADE_MS, batch, changed
from interop.conformance.conversation import ENDS, LATEST, conversation
from interop.conformance.producing import one, read_back, record, varints
from interop.conformance.talk import ANY, E, Talk
from pykafka_broker.protocol.records.batch import HEADER_BYTES, Codec, build_batch
from pykafka_broker.protocol.records.compression import compress


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

"""Produce: the timestamps of records and of their batch."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from interop.conformance.batches import MADE_MS, batch, changed
from interop.conformance.conversation import ENDS, LATEST, conversation
from interop.conformance.producing import HOUR_MS, known_codecs, look_up, one, read_back
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.records.batch import TIMESTAMP_TYPE_BIT, BatchFields, Codec, build_batch


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

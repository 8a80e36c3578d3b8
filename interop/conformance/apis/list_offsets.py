"""ListOffsets: the offset of a time, and of the positions that have negative numbers instead."""

from __future__ import annotations

from interop.conformance.batches import MADE_MS, batch, changed
from interop.conformance.conversation import ENDS, LATEST, conversation
from interop.conformance.talk import E, Talk, Topic
from interop.conformance.topics import without_start
from interop.conformance.transactions import Producer
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pykafka_broker.protocol.records.batch import TIMESTAMP_TYPE_BIT, BatchFields, Codec, build_batch

LATEST_OFFSET, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = (
    -1,
    -2,
    -3,
    -4,
    -5,
    -6,
)


def wanting(timestamp: int, partition: int = 0, leader_epoch: int = -1) -> ListOffsetsPartition:
    return ListOffsetsPartition(
        partition_index=partition, timestamp=timestamp, current_leader_epoch=leader_epoch
    )


def of(topic: Topic | str, *partitions: ListOffsetsPartition) -> ListOffsetsTopic:
    return ListOffsetsTopic(name=topic if isinstance(topic, str) else topic.name, partitions=list(partitions))


def listing(
    *topics: ListOffsetsTopic, replica_id: int = -1, isolation_level: int = 0, timeout_ms: int = 1000
) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=replica_id, isolation_level=isolation_level, topics=list(topics), timeout_ms=timeout_ms
    )


def written(talk: Talk, label: str = "topic", *, partitions: int = 1) -> Topic:
    """A topic with batches at offsets 0, 2 and 4, ten seconds apart, of records a millisecond apart."""
    topic = talk.topic(label, partitions=partitions)
    for number in range(3):
        talk.produce(topic, b"a", b"b", timestamp_ms=MADE_MS + number * 10_000)
    return topic


# ---- positions ----


@conversation
def the_end_and_the_start(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(listing(of(topic, wanting(LATEST_OFFSET))))
    talk.ask(listing(of(topic, wanting(EARLIEST))))
    without_start(talk, topic, 3)
    talk.ask(listing(of(topic, wanting(LATEST_OFFSET))))
    talk.ask(listing(of(topic, wanting(EARLIEST))))


@conversation
def an_empty_partition_ends_where_it_starts(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(listing(of(topic, wanting(LATEST_OFFSET))))
    talk.ask(listing(of(topic, wanting(EARLIEST))))
    talk.ask(listing(of(topic, wanting(0))))


@conversation
def a_partition_whose_records_are_all_deleted(talk: Talk) -> None:
    topic = written(talk)
    without_start(talk, topic, -1)
    for timestamp in (LATEST_OFFSET, EARLIEST, 0, MADE_MS):
        talk.ask(listing(of(topic, wanting(timestamp))))


@conversation("7+")
def the_record_with_the_largest_timestamp(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(listing(of(topic, wanting(MAX_TIMESTAMP))))
    talk.append(topic, build_batch([(MADE_MS + shift, None, b"v", ()) for shift in (5, 90_000, 7, 90_000)]))
    talk.ask(listing(of(topic, wanting(MAX_TIMESTAMP))))
    talk.produce(topic, b"older")
    talk.ask(listing(of(topic, wanting(MAX_TIMESTAMP))))


@conversation("7+")
def the_largest_timestamp_in_a_compressed_batch(talk: Talk) -> None:
    topic = written(talk)
    records = [(MADE_MS + shift, None, b"v", ()) for shift in (5, 90_000, 7)]
    talk.append(topic, build_batch(records, BatchFields(codec=Codec.GZIP)))
    talk.ask(listing(of(topic, wanting(MAX_TIMESTAMP))))


@conversation("7+")
def the_largest_timestamp_of_nothing(talk: Talk) -> None:
    topic = talk.topic()
    talk.ask(listing(of(topic, wanting(MAX_TIMESTAMP))))
    talk.append(topic, batch(b"no time", timestamp_ms=-1))
    talk.ask(listing(of(topic, wanting(MAX_TIMESTAMP))))


@conversation("7+")
def the_largest_timestamp_where_records_were_deleted(talk: Talk) -> None:
    topic = talk.topic()
    talk.produce(topic, b"newest", timestamp_ms=MADE_MS + 50_000)
    talk.produce(topic, b"older")
    without_start(talk, topic, 1)
    talk.ask(listing(of(topic, wanting(MAX_TIMESTAMP))))
    without_start(talk, topic, 2)
    talk.ask(listing(of(topic, wanting(MAX_TIMESTAMP))))


@conversation("8+")
def without_tiered_storage_all_that_is_there_is_local(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(listing(of(topic, wanting(EARLIEST_LOCAL))))
    without_start(talk, topic, 3)
    talk.ask(listing(of(topic, wanting(EARLIEST_LOCAL))))
    talk.ask(listing(of(talk.topic("empty"), wanting(EARLIEST_LOCAL))))


@conversation("9+")
def without_tiered_storage_nothing_is_tiered(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(listing(of(topic, wanting(LATEST_TIERED))))
    talk.ask(listing(of(talk.topic("empty"), wanting(LATEST_TIERED))))


@conversation("11+")
def without_tiered_storage_nothing_waits_for_its_upload(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(listing(of(topic, wanting(EARLIEST_PENDING))))
    talk.ask(listing(of(talk.topic("empty"), wanting(EARLIEST_PENDING))))


@conversation
def positions_that_a_version_does_not_know(talk: Talk) -> None:
    topic = written(talk)
    first = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING: 11}
    for timestamp in (-3, -4, -5, -6, -7, -100, -(2**63)):
        known = talk.version >= first.get(timestamp, 99)
        talk.ask(listing(of(topic, wanting(timestamp))), *([] if known else [E.UNSUPPORTED_VERSION]))


@conversation
def an_unknown_position_is_noticed_before_a_missing_topic(talk: Talk) -> None:
    talk.ask(listing(of(talk.name("missing"), wanting(-99))), E.UNSUPPORTED_VERSION)
    talk.ask(listing(of("not valid!", wanting(-99, 7))), E.UNSUPPORTED_VERSION)


# ---- times ----


@conversation
def the_first_record_at_or_after_a_time(talk: Talk) -> None:
    topic = written(talk)
    for shift in (-(10**12), 0, 1, 2, 9_999, 10_000, 10_001, 20_001):
        talk.ask(listing(of(topic, wanting(MADE_MS + shift))))
    talk.ask(listing(of(topic, wanting(0))))


@conversation
def a_time_after_all_records_has_no_offset(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(listing(of(topic, wanting(MADE_MS + 20_002))))
    talk.ask(listing(of(topic, wanting(2**63 - 1))))


@conversation
def a_time_before_the_deleted_records(talk: Talk) -> None:
    topic = written(talk)
    without_start(talk, topic, 3)
    for shift in (-5, 0, 10_000, 10_001, 15_000):
        talk.ask(listing(of(topic, wanting(MADE_MS + shift))))


@conversation
def a_time_in_compressed_batches(talk: Talk) -> None:
    topic = talk.topic()
    for number, codec in enumerate((Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)):
        talk.produce(topic, b"a", b"b", timestamp_ms=MADE_MS + number * 10, codec=codec)
    for shift in (0, 1, 11, 21, 31, 32):
        talk.ask(listing(of(topic, wanting(MADE_MS + shift))))


@conversation
def times_that_do_not_grow(talk: Talk) -> None:
    topic = talk.topic()
    for shift in (50, 10, 90, 20):
        talk.produce(topic, b"a", timestamp_ms=MADE_MS + shift)
    for shift in (0, 20, 50, 51, 90, 91):
        talk.ask(listing(of(topic, wanting(MADE_MS + shift))))


@conversation
def records_without_a_time_are_never_found(talk: Talk) -> None:
    topic = talk.topic()
    talk.append(topic, batch(b"a", b"b", timestamp_ms=-1, step_ms=0))
    talk.ask(listing(of(topic, wanting(0))))
    talk.produce(topic, b"c")
    talk.ask(listing(of(topic, wanting(0))))


@conversation
def append_time_is_that_of_the_batch(talk: Talk) -> None:
    topic = talk.topic(configs={"message.timestamp.type": "LogAppendTime"})
    talk.append(topic, batch(b"a", b"b"))
    talk.ask(listing(of(topic, wanting(MADE_MS))))
    talk.ask(listing(of(topic, wanting(MADE_MS * 2))))
    if talk.version >= 7:
        talk.ask(listing(of(topic, wanting(MAX_TIMESTAMP))))


@conversation
def a_largest_timestamp_that_a_producer_got_wrong(talk: Talk) -> None:
    topic = talk.topic()
    for codec in Codec:
        data = batch(b"a", b"b", timestamp_ms=MADE_MS + 10 * codec, step_ms=5, codec=codec)
        talk.append(topic, changed(data, max_timestamp=MADE_MS + 10 * codec - 3))
    for shift in (0, 1, 5, 6, 11, 15, 41, 45, 46):
        talk.ask(listing(of(topic, wanting(MADE_MS + shift))))
    if talk.version >= 7:
        talk.ask(listing(of(topic, wanting(MAX_TIMESTAMP))))


@conversation
def an_append_time_that_a_producer_claimed(talk: Talk) -> None:
    topic = talk.topic()
    talk.append(topic, changed(batch(b"a", b"b"), attributes=TIMESTAMP_TYPE_BIT))
    talk.ask(listing(of(topic, wanting(MADE_MS))))
    talk.ask(listing(of(topic, wanting(MADE_MS + 2))))


@conversation(ENDS)
def a_time_in_an_older_segment(talk: Talk) -> None:
    topic = talk.topic(configs={"segment.bytes": "1048576"})
    for number in range(4):
        talk.produce(topic, b"x" * 600_000, timestamp_ms=MADE_MS + number * 1000)
    for shift in (0, 500, 1000, 2500, 3000, 3001):
        talk.ask(listing(of(topic, wanting(MADE_MS + shift))))


# ---- several at once ----


@conversation(LATEST)
def a_time_in_a_segment_whose_records_are_all_deleted(talk: Talk) -> None:
    topic = talk.topic()
    talk.produce(topic, b"one")
    talk.produce(topic, b"a month later", timestamp_ms=MADE_MS + 30 * 24 * 3_600_000)  # in the next segment
    without_start(talk, topic, 1)
    talk.ask(listing(of(topic, wanting(MADE_MS))))


@conversation
def several_topics_and_partitions(talk: Talk) -> None:
    a, b = written(talk, "a", partitions=3), written(talk, "b")
    talk.ask(
        listing(
            of(b, wanting(EARLIEST)),
            of(a, wanting(LATEST_OFFSET, 2), wanting(MADE_MS, 0), wanting(EARLIEST, 1)),
        )
    )


@conversation
def nothing_asked_nothing_answered(talk: Talk) -> None:
    talk.ask(listing())
    talk.ask(listing(of(written(talk))))


@conversation
def a_partition_named_twice_is_invalid(talk: Talk) -> None:
    topic = written(talk, partitions=2)
    request = listing(of(topic, wanting(LATEST_OFFSET), wanting(EARLIEST, 1), wanting(EARLIEST)))
    talk.ask(request, E.INVALID_REQUEST)
    talk.ask(listing(of(topic, wanting(EARLIEST)), of(topic, wanting(EARLIEST))), E.INVALID_REQUEST)
    talk.ask(listing(of(topic, wanting(EARLIEST)), of(topic, wanting(EARLIEST, 1))))


@conversation
def a_duplicate_is_noticed_before_all_else(talk: Talk) -> None:
    missing = talk.name("missing")
    talk.ask(listing(of(missing, wanting(-99), wanting(-99))), E.INVALID_REQUEST)


# ---- what is refused ----


@conversation
def unknown_topics_and_partitions(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(
        listing(
            of(talk.name("missing"), wanting(LATEST_OFFSET), wanting(MADE_MS, 3)),
            of(topic, wanting(EARLIEST, 1), wanting(EARLIEST), wanting(EARLIEST, -1)),
        ),
        *[E.UNKNOWN_TOPIC_OR_PARTITION] * 4,
    )


@conversation
def names_that_no_topic_can_have(talk: Talk) -> None:
    for name in ("", "not valid!", "..", "n" * 300):
        talk.ask(listing(of(name, wanting(EARLIEST))), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation("4+")
def the_leaders_epoch_has_to_be_the_present_one(talk: Talk) -> None:
    topic = written(talk)
    for timestamp in (LATEST_OFFSET, EARLIEST, MADE_MS):
        talk.ask(listing(of(topic, wanting(timestamp, leader_epoch=0))))
        talk.ask(listing(of(topic, wanting(timestamp, leader_epoch=1))), E.UNKNOWN_LEADER_EPOCH)
        talk.ask(listing(of(topic, wanting(timestamp, leader_epoch=-2))), E.FENCED_LEADER_EPOCH)


@conversation("4+")
def an_unknown_position_is_noticed_before_a_wrong_epoch(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(listing(of(topic, wanting(-99, leader_epoch=5))), E.UNSUPPORTED_VERSION)
    talk.ask(listing(of(topic, wanting(EARLIEST, 9, leader_epoch=5))), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation("2+")
def both_levels_of_isolation_see_plain_records(talk: Talk) -> None:
    topic = written(talk)
    for timestamp in (LATEST_OFFSET, EARLIEST, MADE_MS + 1):
        talk.ask(listing(of(topic, wanting(timestamp)), isolation_level=1))


@conversation("2+")
def a_level_of_isolation_that_does_not_exist(talk: Talk) -> None:
    topic = written(talk)
    for level in (2, -1):
        talk.ask(listing(of(topic, wanting(EARLIEST)), isolation_level=level), E.UNKNOWN_SERVER_ERROR)


@conversation
def a_client_that_claims_to_be_a_replica(talk: Talk) -> None:
    topic = written(talk)
    for replica_id in (0, 1, 7, -2, -3):
        request = listing(
            of(topic, wanting(LATEST_OFFSET)),
            of(talk.name("missing"), wanting(EARLIEST)),
            replica_id=replica_id,
        )
        talk.ask(request, E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation("10+")
def the_timeout_does_not_matter_without_tiered_storage(talk: Talk) -> None:
    topic = written(talk)
    for timeout_ms in (0, -1, 2**31 - 1):
        talk.ask(listing(of(topic, wanting(MADE_MS)), timeout_ms=timeout_ms))


# ---- transactions ----


@conversation("2+")
def the_end_of_what_is_committed(talk: Talk) -> None:
    topic, producer = talk.topic(), Producer(talk)
    talk.produce(topic, b"before")
    producer.adds(topic)
    producer.writes(topic, b"one", b"two")
    talk.produce(topic, b"after", timestamp_ms=MADE_MS + 50_000)
    for level in (0, 1):
        for timestamp in (LATEST_OFFSET, EARLIEST, MADE_MS, MADE_MS + 50_000):
            talk.ask(listing(of(topic, wanting(timestamp)), isolation_level=level))
        talk.ask(listing(of(topic, wanting(LATEST_OFFSET)), isolation_level=level, replica_id=-2))
    producer.ends()
    for level in (0, 1):
        talk.ask(listing(of(topic, wanting(LATEST_OFFSET)), isolation_level=level))

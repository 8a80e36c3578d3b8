"""Produce (0): record batches are appended, each partition on its own, or refused with the reason."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Any

import pytest

from pykafka_broker.apis.produce import produce
from pykafka_broker.cluster.image import NO_LEADER
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from pykafka_broker.protocol.records.batch import Codec
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.user import User
from tests.apis.asking import (
    ATTRIBUTES_AT,
    CRC_AT,
    LENGTH_AT,
    MAGIC_AT,
    UNKNOWN_ID,
    Topic,
    batch,
    begin_epoch,
    ends,
    every,
    named,
    parked,
    partitions_of,
    patched,
    producing_to,
)
from tests.apis.transacting import Producer, committed_values, described

GOOD = batch(b"one", b"two")
BAD = GOOD[:CRC_AT] + bytes(4) + GOOD[ATTRIBUTES_AT:]
NOW = 1_700_000_000_000


async def result(user: User, request: Any, version: int = 13) -> PartitionProduceResponse:
    """The only partition's answer."""
    [answer] = partitions_of(await user.send(request, version))
    assert isinstance(answer, PartitionProduceResponse)
    return answer


async def error_of(user: User, topic: str, records: bytes | None, version: int = 12, **details: Any) -> int:
    return (await result(user, producing_to(topic, records, **details), version)).error_code


async def topic_at(user: User, version: int, name: str = "t") -> Topic:
    """A new topic, and how this version names it."""
    topic_id = await user.create_topic(name)
    return topic_id if version >= 13 else name


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", every(produce))
async def test_a_batch_gets_the_next_offsets_and_is_served(user: User, version: int, acks: int) -> None:
    topic = await topic_at(user, version)

    answers = [await result(user, producing_to(topic, GOOD, acks=acks), version) for _ in range(2)]

    start = 0 if version >= 5 else -1
    assert answers == [
        PartitionProduceResponse(index=0, error_code=0, base_offset=offset, log_start_offset=start)
        for offset in (0, 2)
    ]
    assert await user.values("t") == [b"one", b"two"] * 2


async def test_one_partitions_failure_does_not_touch_the_others(user: User) -> None:
    await user.create_topic("t", 2)
    data = [PartitionProduceData(index=index, records=GOOD) for index in (0, 7, 1)]
    topics = [
        TopicProduceData(name="t", partition_data=data),
        TopicProduceData(name="missing", partition_data=data[:1]),
    ]

    answer = await user.send(ProduceRequest(acks=-1, timeout_ms=1, topic_data=topics), 12)

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [p.error_code for p in partitions_of(answer)] == [0, unknown, 0, unknown]


async def test_batches_that_wait_for_files_are_answered_in_their_places(home: Home, user: User) -> None:
    """Three of these partitions begin with a file, which the disk refuses one of them."""
    await user.create_topic("t", 4)
    await user.produce("t", b"before", partition=2)
    begin_epoch(home, "t", 1, partitions=(0, 1, 3))
    home.files.fail("rename", errno.EMFILE, path="t-1/leader-epoch-checkpoint")
    data = [
        PartitionProduceData(index=index, records=records)
        for index, records in ((3, GOOD), (7, GOOD), (2, GOOD), (1, GOOD), (0, BAD), (9, BAD))
    ]

    topics = [TopicProduceData(name="t", partition_data=data)]
    answer = await user.send(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=topics), 12)

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [(p.index, p.error_code, p.base_offset) for p in partitions_of(answer)] == [
        (3, 0, 0),
        (7, unknown, -1),
        (2, 0, 1),
        (1, ErrorCode.KAFKA_STORAGE_ERROR, -1),
        (0, ErrorCode.CORRUPT_MESSAGE, -1),
        (9, unknown, -1),
    ]
    [again] = partitions_of(await user.send(producing_to("t", GOOD, 1), 12))
    assert (again.error_code, again.base_offset) == (0, 0)


@pytest.mark.parametrize("version", ends(produce))
async def test_a_topic_named_twice_is_answered_once_and_one_without_partitions_not_at_all(
    user: User, version: int
) -> None:
    topic, other = await topic_at(user, version), await topic_at(user, version, "other")

    def wanted(topic: Topic, *partitions: tuple[int, bytes]) -> TopicProduceData:
        data = [PartitionProduceData(index=index, records=records) for index, records in partitions]
        return TopicProduceData(**named(topic), partition_data=data)

    topics = [wanted(topic, (0, GOOD)), wanted(other), wanted(topic, (7, GOOD))]
    answer = await user.send(ProduceRequest(acks=-1, timeout_ms=1, topic_data=topics), version)

    [answered] = answer.responses
    assert topic in (answered.name, answered.topic_id)
    assert [(p.index, p.error_code) for p in answered.partition_responses] == [
        (0, ErrorCode.NONE),
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


async def test_of_a_partition_named_twice_the_last_mention_counts(user: User) -> None:
    await user.create_topic("t")
    data = [PartitionProduceData(index=0, records=batch(value)) for value in (b"first", b"last")]
    asked = TopicProduceData(name="t", partition_data=data)

    answer = await result(user, ProduceRequest(acks=-1, timeout_ms=1, topic_data=[asked]), 12)

    assert (answer.error_code, answer.base_offset) == (0, 0)
    assert await user.values("t") == [b"last"]


async def test_what_is_no_batch_is_noticed_before_invalid_acks_and_after_a_missing_partition(
    user: User,
) -> None:
    await user.create_topic("t")

    assert await error_of(user, "t", b"", acks=5) == ErrorCode.INVALID_RECORD
    assert await error_of(user, "t", GOOD + GOOD, acks=5) == ErrorCode.INVALID_RECORD
    assert await error_of(user, "t", None, acks=5) == ErrorCode.INVALID_REQUIRED_ACKS
    assert await error_of(user, "missing", b"", acks=5) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_an_unknown_topic_id_is_told_apart_from_a_missing_partition(user: User) -> None:
    topic_id = await user.create_topic("t")

    unknown = await result(user, producing_to(UNKNOWN_ID, GOOD), 13)
    missing = await result(user, producing_to(topic_id, GOOD, 9), 13)

    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_with_acks_0_nothing_is_answered_and_the_next_request_is(user: User) -> None:
    await user.create_topic("t")

    user.write(producing_to("t", GOOD, acks=0), 9)
    values = await user.values("t")

    assert values == [b"one", b"two"]


@pytest.mark.parametrize(
    "request_of_none",
    [producing_to("missing", GOOD, acks=0), producing_to("t", patched(GOOD, MAGIC_AT, b"\x01"), acks=0)],
)
async def test_with_acks_0_an_error_closes_the_connection(user: User, request_of_none: Any) -> None:
    await user.create_topic("t")

    user.write(request_of_none, 9)

    assert await user.is_closed()


async def test_acks_can_only_be_none_one_or_all(user: User) -> None:
    await user.create_topic("t")

    assert await error_of(user, "t", GOOD, acks=2) == ErrorCode.INVALID_REQUIRED_ACKS
    assert await error_of(user, "t", GOOD, acks=-2) == ErrorCode.INVALID_REQUIRED_ACKS
    assert await user.values("t") == []


# --- what is no batch ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "error"),
    [
        pytest.param(b"", ErrorCode.INVALID_RECORD, id="nothing"),
        pytest.param(None, ErrorCode.INVALID_RECORD, id="null, which Apache Kafka never answers"),
        pytest.param(GOOD[:-3], ErrorCode.INVALID_RECORD, id="cut"),
        pytest.param(GOOD + GOOD, ErrorCode.INVALID_RECORD, id="two batches"),
        pytest.param(patched(GOOD, MAGIC_AT, b"\x01"), ErrorCode.INVALID_RECORD, id="magic 1"),
        pytest.param(patched(GOOD, MAGIC_AT, b"\x03"), ErrorCode.CORRUPT_MESSAGE, id="magic 3"),
        pytest.param(patched(GOOD, LENGTH_AT, b"\0\0\0\x05"), ErrorCode.CORRUPT_MESSAGE, id="no length"),
        pytest.param(
            GOOD[:CRC_AT] + b"\0\0\0\0" + GOOD[CRC_AT + 4 :], ErrorCode.CORRUPT_MESSAGE, id="checksum"
        ),
        pytest.param(batch(b"v", base_offset=7), ErrorCode.INVALID_RECORD, id="offsets not from 0"),
        pytest.param(
            batch(b"v", control=True, producer_id=1, producer_epoch=0, base_sequence=0),
            ErrorCode.INVALID_RECORD,
            id="control batch",
        ),
        pytest.param(patched(GOOD, ATTRIBUTES_AT, b"\0\x05"), ErrorCode.UNKNOWN_SERVER_ERROR, id="codec 5"),
        pytest.param(patched(GOOD, ATTRIBUTES_AT, b"\0\x01"), ErrorCode.UNKNOWN_SERVER_ERROR, id="not gzip"),
    ],
)
@pytest.mark.parametrize("version", [3, 12])
async def test_what_is_not_one_good_batch_is_refused(
    user: User, version: int, records: bytes | None, error: ErrorCode
) -> None:
    await user.create_topic("t")
    if version < 7 and error is ErrorCode.UNKNOWN_SERVER_ERROR:
        version = 7

    assert await error_of(user, "t", records, version) == error
    assert await user.values("t") == []


async def test_noise_in_one_partition_spoils_the_request_before_any_partition_is_served(user: User) -> None:
    await user.create_topic("t", 2)
    noise = patched(GOOD, MAGIC_AT, b"\x03")
    data = [PartitionProduceData(index=0, records=GOOD), PartitionProduceData(index=1, records=noise)]
    topics = [TopicProduceData(name="t", partition_data=data)]

    answer = await user.send(ProduceRequest(acks=-1, timeout_ms=1, topic_data=topics), 12)

    assert [(p.error_code, p.error_message) for p in partitions_of(answer)] == [
        (ErrorCode.CORRUPT_MESSAGE, "Invalid magic found in record: 3")
    ] * 2
    assert await user.values("t") == []


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
async def test_every_codec_is_taken_and_kept(user: User, codec: Codec) -> None:
    await user.create_topic("t")

    assert await error_of(user, "t", batch(b"a" * 99, b"b" * 99, codec=codec), 7) == 0

    assert await user.values("t") == [b"a" * 99, b"b" * 99]


async def test_zstd_came_with_version_7(user: User) -> None:
    await user.create_topic("t")
    zstd = batch(b"v", codec=Codec.ZSTD)

    assert await error_of(user, "t", zstd, 6) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert await error_of(user, "t", zstd, 7) == 0


@pytest.mark.parametrize("bit", [0x0008, 0x0040, 0x0080], ids=["LogAppendTime", "delete horizon", "unused"])
async def test_attribute_bits_that_mean_nothing_here_are_accepted(user: User, bit: int) -> None:
    await user.create_topic("t")

    assert await error_of(user, "t", patched(GOOD, ATTRIBUTES_AT, bit.to_bytes(2, "big"))) == 0


# --- what the topic says ------------------------------------------------------------------------------


async def test_a_batch_above_the_topics_limit_is_too_large(user: User) -> None:
    await user.create_topic("t", max_message_bytes="200")

    assert await error_of(user, "t", batch(b"x" * 200)) == ErrorCode.MESSAGE_TOO_LARGE
    assert await error_of(user, "t", batch(b"x" * 90)) == 0


async def test_a_compacted_topic_names_the_records_without_a_key(user: User) -> None:
    await user.create_topic("t", cleanup_policy="compact")

    answer = await result(user, producing_to("t", batch(b"1", b"2", key=None)), 8)

    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [0, 1]
    assert answer.error_message is not None
    assert answer.error_message.startswith("One or more records have been rejected due to 2 record errors")
    assert await error_of(user, "t", GOOD) == 0


async def test_before_version_8_there_is_no_room_for_single_records(user: User) -> None:
    await user.create_topic("t", cleanup_policy="compact")

    answer = await result(user, producing_to("t", batch(b"1", key=None)), 7)

    assert answer == PartitionProduceResponse(
        index=0, error_code=ErrorCode.INVALID_RECORD, base_offset=-1, log_start_offset=0
    )


@pytest.mark.parametrize("timestamp", [NOW - 60_000, NOW + 60_000])
async def test_timestamps_beyond_the_topics_bounds_are_refused(user: User, timestamp: int) -> None:
    await user.create_topic(
        "t", message_timestamp_before_max_ms="1000", message_timestamp_after_max_ms="1000"
    )

    answer = await result(user, producing_to("t", batch(b"v", timestamp=timestamp)), 8)

    assert (answer.error_code, len(answer.record_errors)) == (ErrorCode.INVALID_TIMESTAMP, 1)
    assert await error_of(user, "t", batch(b"v", timestamp=NOW + 500)) == 0


async def test_on_a_log_append_time_topic_the_answer_tells_the_time(home: Home, user: User) -> None:
    await user.create_topic("t", message_timestamp_type="LogAppendTime")

    answer = await result(user, producing_to("t", batch(b"v", timestamp=5)), 12)

    assert answer.log_append_time_ms == home.clock.now_ms()
    assert [record.timestamp for record in await user.records("t")] == [home.clock.now_ms()]


async def test_more_in_sync_replicas_than_there_are_replicas_do_not_stop_a_write(user: User) -> None:
    await user.create_topic("t", min_insync_replicas="2")

    assert await error_of(user, "t", GOOD, acks=-1) == 0


async def test_clients_may_not_write_internal_topics_but_kafkas_own_tool_may(home: Home, user: User) -> None:
    await user.find_coordinator("group")

    assert await error_of(user, "__consumer_offsets", GOOD) == ErrorCode.INVALID_TOPIC_EXCEPTION
    async with await User.connect(home.broker.bootstrap_servers, "__admin_client") as tool:
        assert await error_of(tool, "__consumer_offsets", GOOD) == 0


# --- idempotent and transactional producers -----------------------------------------------------------


def sequenced(sequence: int, *, epoch: int = 0, producer_id: int = 7, count: int = 1) -> bytes:
    values = [b"v"] * count
    return batch(
        *values, timestamp=NOW, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )


async def offsets_and_errors(user: User, *batches: bytes) -> list[tuple[int, int]]:
    answers = [await result(user, producing_to("t", records), 12) for records in batches]
    return [(answer.error_code, answer.base_offset) for answer in answers]


async def test_a_batch_sent_again_is_answered_with_its_original_offset_and_not_appended(user: User) -> None:
    await user.create_topic("t")

    got = await offsets_and_errors(user, *map(sequenced, [0, 1, 2, 3, 4, 5]), *map(sequenced, [5, 1]))

    assert got == [(0, offset) for offset in (0, 1, 2, 3, 4, 5, 5, 1)]
    assert len(await user.values("t")) == 6


async def test_a_duplicate_tells_the_batchs_own_time_even_without_log_append_time(user: User) -> None:
    await user.create_topic("t")
    records = batch(b"v", timestamp=1234, producer_id=7, producer_epoch=0, base_sequence=0)

    first, again = [await result(user, producing_to("t", records), 12) for _ in range(2)]

    assert (first.log_append_time_ms, again.log_append_time_ms) == (-1, 1234)


@pytest.mark.parametrize(
    ("records", "error"),
    [
        pytest.param(sequenced(9), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, id="gap"),
        pytest.param(sequenced(0), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, id="older than five batches"),
        pytest.param(sequenced(5, count=2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, id="other end"),
        pytest.param(sequenced(3, epoch=1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, id="new epoch not at 0"),
        pytest.param(sequenced(6, epoch=-1), ErrorCode.INVALID_RECORD, id="no epoch"),
        pytest.param(sequenced(-1), ErrorCode.INVALID_RECORD, id="no sequence"),
    ],
)
async def test_what_does_not_follow_the_last_batch_is_refused(
    user: User, records: bytes, error: ErrorCode
) -> None:
    await user.create_topic("t")
    await offsets_and_errors(user, *map(sequenced, range(6)))

    assert await offsets_and_errors(user, records) == [(error, -1)]


async def test_an_older_epoch_is_fenced(user: User) -> None:
    await user.create_topic("t")

    got = await offsets_and_errors(user, sequenced(0), sequenced(0, epoch=1), sequenced(1))

    assert got == [(0, 0), (0, 1), (ErrorCode.INVALID_PRODUCER_EPOCH, -1)]


async def test_a_forgotten_producer_may_go_on_at_any_sequence_and_sequences_wrap(user: User) -> None:
    await user.create_topic("t")

    assert await offsets_and_errors(user, sequenced(2**31 - 1), sequenced(0)) == [(0, 0), (0, 1)]


async def test_producers_are_remembered_across_a_restart(home: Home) -> None:
    async with home.running() as user:
        await user.create_topic("t")
        await offsets_and_errors(user, sequenced(0), sequenced(1))
    async with home.running() as user:
        assert await offsets_and_errors(user, sequenced(1), sequenced(2)) == [(0, 1), (0, 2)]


TRANSACTIONAL = batch(b"v", transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)


@pytest.mark.parametrize("version", ends(produce))
async def test_a_transactional_batch_needs_a_transactional_id(user: User, version: int) -> None:
    topic = await topic_at(user, version)

    answer = await result(user, producing_to(topic, TRANSACTIONAL), version)

    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.mark.parametrize("version", ends(produce))
async def test_without_a_coordinator_transactional_batches_are_refused(user: User, version: int) -> None:
    topic_id = await user.create_topic("t")
    request = producing_to(topic_id if version >= 13 else "t", TRANSACTIONAL, transactional_id="tx")

    [answer] = partitions_of(await user.send(request, version))

    # The one error that makes clients of any age try again without fetching metadata.
    assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    if version >= 8:
        assert answer.error_message.endswith("Underlying error: NOT_COORDINATOR")


@pytest.mark.parametrize(
    "version, error",
    [
        (3, ErrorCode.INVALID_TXN_STATE),
        (10, ErrorCode.INVALID_TXN_STATE),
        (11, ErrorCode.TRANSACTION_ABORTABLE),
        (12, ErrorCode.NONE),
    ],
)
async def test_a_partition_that_was_not_added_is_refused_or_added_by_version(
    user: User, version: int, error: ErrorCode
) -> None:
    await user.create_topic("t")
    producer = await Producer.of(user)

    answer = await producer.try_to_write("t", b"v", version=version)

    assert ErrorCode(answer.error_code) == error
    assert (await described(user)).transaction_state == ("Empty" if error else "Ongoing")
    if version == 10:
        assert answer.error_message == "Partition was not added to the transaction"


async def test_a_fenced_producer_writes_nothing(user: User) -> None:
    await user.create_topic("t")
    producer = await Producer.of(user)
    await Producer.of(user)

    answer = await producer.try_to_write("t", b"v")
    assert answer.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await user.values("t") == []


async def test_after_the_end_the_old_epoch_writes_nothing_into_the_next_transaction(user: User) -> None:
    await user.create_topic("t")
    producer = await Producer.of(user)
    await producer.write("t", b"first")
    late = producer.epoch
    await producer.end()
    await producer.write("t", b"second")

    answer = await producer.try_to_write("t", b"late", producer_epoch=late, base_sequence=1)
    assert answer.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    await producer.end()
    assert await committed_values(user, "t") == [b"first", b"second"]


async def test_the_next_transaction_waits_a_little_for_the_last_ones_markers(
    home: Home, user: User, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    for topic in ("slow", "t"):
        await user.create_topic(topic)
    producer = await Producer.of(user)
    await producer.write("slow", b"v")
    partition = home.broker.node.broker.replicas.led("slow", 0)
    assert partition is not None
    partition.log.state.offline = OSError(28, "No space left on device")
    ended = await producer.try_to_end(commit=True)
    producer.goes_on_as(ended.producer_id, ended.producer_epoch)
    await until(lambda: "cannot be written to 1 partitions yet" in caplog.text)

    # The markers are tried again 100 ms after the first attempt; producers wait for 100 ms.
    await home.pass_time(50)
    waiting = await parked(home, producer.try_to_write("t", b"w"))
    partition.log.state.offline = None
    await home.pass_time(60)
    await until(lambda: partition.log.state.log_end_offset == 2)
    await home.pass_time(40)
    assert (await waiting).error_code == 0


@pytest.mark.parametrize("clock_set_by_ms", [0, -3_600_000])
async def test_markers_that_take_longer_are_not_waited_for(
    home: Home, user: User, caplog: pytest.LogCaptureFixture, clock_set_by_ms: int
) -> None:
    caplog.set_level("INFO")
    for topic in ("slow", "t"):
        await user.create_topic(topic)
    producer = await Producer.of(user)
    await producer.write("slow", b"v")
    partition = home.broker.node.broker.replicas.led("slow", 0)
    assert partition is not None
    partition.log.state.offline = OSError(28, "No space left on device")
    ended = await producer.try_to_end(commit=True)
    producer.goes_on_as(ended.producer_id, ended.producer_epoch)
    await until(lambda: "cannot be written to 1 partitions yet" in caplog.text)

    waiting = await parked(home, producer.try_to_write("t", b"w"))
    home.clock.set_wall_clock(clock_set_by_ms)
    await home.pass_time(200)
    assert (await waiting).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    partition.log.state.offline = None


async def test_batches_of_two_producers_in_one_request_are_refused_and_leave_no_trace(user: User) -> None:
    await user.create_topic("t", 2)
    producer = await Producer.of(user, old=True)
    assert await producer.try_to_add("t", 0) == [ErrorCode.NONE]
    records = [
        batch(b"v", producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)
        for producer_id in (producer.id, producer.id + 1)
    ]
    request = producing_to("t", records[0], transactional_id=producer.transactional_id)
    request.topic_data[0].partition_data.append(PartitionProduceData(index=1, records=records[1]))

    answers = partitions_of(await user.send(request, 12))

    assert {answer.error_code for answer in answers} == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert ErrorCode((await producer.try_to_write("t", b"v", base_sequence=5)).error_code) == 0


#: Transactional batches that Produce up to v6 refuses before it looks at the partition or the producer.
NO_BATCHES_OF_VERSION_6: dict[str, tuple[bytes, dict[str, Any], Callable[[bytes], bytes], ErrorCode]] = {
    "zstd": (b"v", {"codec": Codec.ZSTD}, lambda records: records, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "a codec that does not exist": (
        b"v",
        {},
        lambda records: patched(records, ATTRIBUTES_AT, b"\0\x15"),
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ),
    "two batches": (b"v", {}, lambda records: records * 2, ErrorCode.INVALID_RECORD),
    "the end is missing": (b"v" * 99, {}, lambda records: records[:-9], ErrorCode.INVALID_RECORD),
    "an older format": (
        b"v" * 99,
        {},
        lambda records: patched(records, MAGIC_AT, b"\1"),
        ErrorCode.INVALID_RECORD,
    ),
}


@pytest.mark.parametrize("name", NO_BATCHES_OF_VERSION_6)
async def test_what_is_no_batch_of_a_transaction_is_refused_first_and_leaves_no_trace(
    user: User, name: str
) -> None:
    """Before, the epoch was looked at first, and the sequence 0 of what was refused was waited for."""
    value, details, spoilt, error = NO_BATCHES_OF_VERSION_6[name]
    await user.create_topic("t")
    producer = await Producer.of(user, old=True)
    assert await producer.try_to_add("t") == [ErrorCode.NONE]
    numbers: dict[str, Any] = {
        "producer_id": producer.id,
        "producer_epoch": producer.epoch,
        "base_sequence": 0,
    }
    refused = spoilt(batch(value, transactional=True, **numbers, **details))
    request = producing_to("t", refused, transactional_id=producer.transactional_id)

    assert ErrorCode((await result(user, request, 6)).error_code) == error
    assert ErrorCode((await producer.try_to_write("t", b"v", base_sequence=5)).error_code) == 0

    await producer.end()
    newer = await Producer.of(user, old=True)
    await newer.write("t", b"w")
    assert ErrorCode((await result(user, request, 6)).error_code) == error


async def test_a_batch_for_a_missing_partition_does_not_count_as_one_of_two_producers(user: User) -> None:
    await user.create_topic("t")
    producer = await Producer.of(user)
    numbers: dict[str, Any] = {
        "producer_id": producer.id,
        "producer_epoch": producer.epoch,
        "base_sequence": 0,
    }
    request = producing_to(
        "t", batch(b"v", transactional=True, **numbers), transactional_id=producer.transactional_id
    )
    other = batch(b"v", transactional=True, **(numbers | {"producer_id": producer.id + 1}))
    request.topic_data[0].partition_data.append(PartitionProduceData(index=1, records=other))

    answers = partitions_of(await user.send(request, 12))

    assert [ErrorCode(answer.error_code) for answer in answers] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


@pytest.mark.parametrize("spoilt", ["an older format", "the end is missing"])
async def test_what_is_no_batch_needs_no_transactional_id(user: User, spoilt: str) -> None:
    """A byte of another format where v2 says "transactional" must not spoil the whole request."""
    value, _, changed, error = NO_BATCHES_OF_VERSION_6[spoilt]
    await user.create_topic("t")
    records = batch(value, transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)

    assert await error_of(user, "t", changed(records)) == error


class Coordinator:
    """In the place of the transaction coordinators, which answers when it is let go."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.goes = asyncio.Event()

    async def ask(self, *_: Any, retries: bool) -> dict[TopicPartition, ErrorCode]:
        self.asked.set()
        await self.goes.wait()
        return {}


@pytest.mark.parametrize(
    ("version", "error"), [(12, ErrorCode.INVALID_TXN_STATE), (13, ErrorCode.UNKNOWN_TOPIC_ID)]
)
async def test_a_topic_that_is_created_again_while_the_coordinator_is_asked_gets_nothing(
    home: Home, user: User, version: int, error: ErrorCode
) -> None:
    topic_id = await user.create_topic("t")
    ports = home.broker.node._shared.ports.broker
    coordinator: Any = Coordinator()
    ports.give(ports()._replace(participation=coordinator))
    records = batch(b"v", transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)
    request = producing_to("t" if version < 13 else topic_id, records, transactional_id="payments")
    async with await User.connect(home.broker.bootstrap_servers) as producer:
        waiting = asyncio.ensure_future(producer.send(request, version))
        await coordinator.asked.wait()

        await user.delete_topic("t")
        await user.create_topic("t")
        coordinator.goes.set()

        [refused] = partitions_of(await waiting)
    assert ErrorCode(refused.error_code) == error
    assert await user.values("t") == []


async def test_a_partition_that_is_led_once_the_coordinator_has_answered_asks_the_producer_to_come_again(
    home: Home, user: User
) -> None:
    """The coordinator was not asked about it: without a guard the batch is refused, and for good."""
    await user.create_topic("t", partitions=2)
    ports = home.broker.node._shared.ports.broker
    coordinator: Any = Coordinator()
    ports.give(ports()._replace(participation=coordinator))
    records = batch(b"v", transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)
    request = producing_to("t", records, transactional_id="payments")
    [topic] = request.topic_data
    topic.partition_data.append(PartitionProduceData(index=1, records=records))
    begin_epoch(home, "t", 1, [1], leader=NO_LEADER)
    async with await User.connect(home.broker.bootstrap_servers) as producer:
        waiting = asyncio.ensure_future(producer.send(request, 12))
        await coordinator.asked.wait()

        begin_epoch(home, "t", 2, [1])
        coordinator.goes.set()

        answers = partitions_of(await waiting)
    assert [ErrorCode(answer.error_code) for answer in answers] == [
        ErrorCode.NONE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ]


async def test_where_verification_is_switched_off_old_clients_are_believed(home: Home) -> None:
    home.overrides["transaction.partition.verification.enable"] = "false"
    async with home.running() as user:
        await user.create_topic("t")
        producer = await Producer.of(user, old=True)

        assert (await producer.try_to_write("t", b"v")).error_code == 0


async def test_a_transactional_producer_that_wants_no_answer_gets_none(user: User) -> None:
    await user.create_topic("t")
    producer = await Producer.of(user)
    details: dict[str, Any] = {
        "producer_id": producer.id,
        "producer_epoch": producer.epoch,
        "base_sequence": 0,
    }
    records = batch(b"v", transactional=True, **details)
    user.write(producing_to("t", records, acks=0, transactional_id="payments"), 12)

    assert await user.values("t") == [b"v"]


async def test_a_transactional_id_on_a_plain_batch_does_no_harm(user: User) -> None:
    await user.create_topic("t")

    assert await error_of(user, "t", GOOD, transactional_id="tx") == 0

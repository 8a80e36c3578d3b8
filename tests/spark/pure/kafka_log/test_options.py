"""What `format("kafka_log")` may be asked for, and what it says to what it cannot do."""

from __future__ import annotations

import pytest

from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.kafka_log.options import (
    EARLIEST,
    EVERYTHING_UP_TO,
    LATEST,
    LogOptions,
    Places,
    Topics,
    insist_on_batch,
    insist_on_stream,
    parse,
)

ORDERS = {"path": "/data", "subscribe": "orders"}


def test_a_folder_alone_is_read_whole() -> None:
    assert parse({"path": "/data/orders-0"}) == LogOptions(("/data/orders-0",), Topics())


def test_every_option_is_understood_in_any_case() -> None:
    assert parse(
        {
            "paths": '["/a", "file:///b"]',
            "SUBSCRIBE": " orders, payments ",
            "columns": "offset, value,topic_id",
            "kafka.isolation.level": "READ_COMMITTED",
            "startingoffsets": '{"orders": {"0": 5, "1": -2}}',
            "endingOffsets": "latest",
            "minPartitions": "4",
            "maxPartitionBytes": "64m",
            "maxOffsetsPerTrigger": "1000",
            "failOnDataLoss": "false",
            "startingOffsetsByTimestampStrategy": "latest",
        }
    ) == LogOptions(
        paths=("/a", "/b"),
        topics=Topics(names=("orders", "payments")),
        columns=("offset", "value", "topic_id"),
        is_committed_only=True,
        start=Places(False, None, {TopicPartition("orders", 0): 5, TopicPartition("orders", 1): -2}),
        may_start_at_end=True,
        end=EVERYTHING_UP_TO[LATEST],
        least_splits=4,
        split_bytes=64 << 20,
        most_offsets=1000,
        fail_on_data_loss=False,
    )


def test_partitions_are_assigned_in_order() -> None:
    assigned = parse({"path": "/data", "assign": '{"b": [1], "a": [3, 0, 3]}'}).topics
    assert assigned.partitions == (TopicPartition("a", 0), TopicPartition("a", 3), TopicPartition("b", 1))


def test_a_time_for_all_wins_over_times_of_partitions_and_those_over_offsets() -> None:
    given = {**ORDERS, "startingOffsets": "earliest"}
    assert parse(given).start == EVERYTHING_UP_TO[EARLIEST]
    given["startingOffsetsByTimestamp"] = '{"orders": {"0": 1700}}'
    assert parse(given).start == Places(True, None, {TopicPartition("orders", 0): 1700})
    given["startingTimestamp"] = "1800"
    assert parse(given).start == Places(True, 1800, {})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"subscribr": "x"}, "kafka_log has no option 'subscribr'. Did you mean subscribe?"),
        ({"kafka.bootstrap.servers": "x"}, "asks no broker"),
        ({"zzz": "x"}, "It has subscribe, subscribePattern, assign, path"),
        ({"path": ""}, 'needs a folder: load("DIR")'),
        ({"paths": "[]"}, "needs a folder"),
        ({"path": "s3://bucket/x"}, "s3://bucket/x is none: mount it."),
        ({"assign": "{}"}, "subscribe and assign exclude each other."),
        ({"subscribe": " ,"}, "subscribe names no topic."),
        ({"columns": "offset,valeu"}, "has no column 'valeu': it has key, value, topic"),
        ({"columns": "offset,offset"}, "each column once"),
        ({"columns": ""}, "at least one"),
        (
            {"kafka.isolation.level": "x"},
            "kafka.isolation.level is read_uncommitted or read_committed, not 'x'.",
        ),
        ({"startingOffsets": "early"}, "startingOffsets needs numbers by topic and partition as JSON"),
        ({"startingOffsets": '{"orders": 5}'}, 'such as {"orders": {"0": 23}}'),
        ({"startingOffsets": '{"orders": {"0": -3}}'}, "startingOffsets needs numbers"),
        ({"endingOffsets": "earliest"}, "endingOffsets cannot be earliest"),
        ({"startingTimestamp": "today"}, "needs milliseconds since 1970, and 'today' is no such number."),
        ({"minPartitions": "0"}, "minPartitions needs a number above 0, not '0'."),
        ({"maxPartitionBytes": "many"}, "such as 64m, not 'many'."),
        ({"failOnDataLoss": "no"}, "failOnDataLoss is true or false, not 'no'."),
    ],
)
def test_what_is_not_understood_gets_a_sentence(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(SparkError) as refused:
        parse({**ORDERS, **given})
    assert sentence in str(refused.value)


def test_assigned_partitions_are_lists_of_numbers() -> None:
    for wrong in ("[]", "{}", '{"orders": 0}', '{"orders": [-1]}', '{"orders": ["0"]}'):
        with pytest.raises(SparkError, match="partitions by topic"):
            parse({"path": "/data", "assign": wrong})
    with pytest.raises(SparkError, match="subscribePattern is no regular expression"):
        parse({"path": "/data", "subscribePattern": "("})


def test_batches_and_streams_have_options_of_their_own() -> None:
    with pytest.raises(SparkError, match="maxOffsetsPerTrigger is for streams"):
        insist_on_batch({"maxoffsetspertrigger": "5"})
    with pytest.raises(SparkError, match="endingOffsets is for batches; a stream has no end"):
        insist_on_stream({"endingoffsets": "latest"})

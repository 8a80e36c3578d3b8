"""A batch reads the folders, offsets and times that are asked for, in parts of about the same size."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from pykafka_broker.arrow.core.stored_batches import OffsetRange
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.kafka_log.batch import plan_batch
from pykafka_broker.spark.kafka_log.filters import Comparison, Narrowing
from pykafka_broker.spark.kafka_log.planning import Split
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import NOW, end_transaction
from tests.spark.pure.kafka_log.logs import (
    BATCH_BYTES,
    fill,
    new_partition,
    numbered,
    options,
    read,
    transact,
)


def two_partitions() -> MemoryFiles:
    """orders-0 with 30 records in small segments, orders-1 with 10, and others."""
    files = MemoryFiles()
    fill(new_partition(files, segment_bytes=300), 30).close()
    fill(new_partition(files, partition=1), 10).close()
    fill(new_partition(files, "other"), 3)
    fill(new_partition(files, "__consumer_offsets"), 3)
    files.make_directory("/logs/gone-1.0123456789abcdef0123456789abcdef-delete")
    return files


def plan(files: MemoryFiles, **given: str) -> list[tuple[str, int, int]]:
    return ranges(plan_batch(files, options(**{"subscribe": "orders", **given})))


def ranges(splits: Sequence[Split]) -> list[tuple[str, int, int]]:
    return [(str(name), *wanted) for _, name, wanted in splits]


WHOLE = [("orders-0", 0, 30), ("orders-1", 0, 10)]


# -- folders
# ----------


def test_a_topic_of_a_log_directory_is_read_whole() -> None:
    files = two_partitions()

    assert plan(files) == WHOLE
    given = options(subscribe="orders")
    splits = plan_batch(files, given)
    assert read(files, splits, given) == numbered(*range(30), *range(10))


@pytest.mark.parametrize(
    ("given", "read_folders"),
    [
        ({"subscribe": "other, orders"}, ["orders-0", "orders-1", "other-0"]),
        ({"subscribePattern": "o.*"}, ["orders-0", "orders-1", "other-0"]),
        ({"subscribePattern": ".*"}, ["orders-0", "orders-1", "other-0"]),
        ({"assign": '{"orders": [1], "other": [0]}'}, ["orders-1", "other-0"]),
        ({"path": "/logs/orders-1"}, ["orders-1"]),
        ({"path": "/logs/orders-1/", "subscribe": "orders"}, ["orders-1"]),
    ],
)
def test_topics_are_named_matched_or_assigned(given: dict[str, str], read_folders: list[str]) -> None:
    splits = plan_batch(two_partitions(), options(**given))

    assert [str(split.name) for split in splits] == read_folders


def test_folders_of_several_disks_are_read_together() -> None:
    files = two_partitions()
    fill(new_partition(files, partition=2, directory="/disk2"), 4)

    assert plan(files, paths='["/logs", "/disk2"]') == [*WHOLE, ("orders-2", 0, 4)]


def test_a_log_directory_may_be_named_like_a_partition() -> None:
    files = MemoryFiles()
    fill(new_partition(files, directory="/kafka-logs-0"), 4)

    assert plan(files, path="/kafka-logs-0") == [("orders-0", 0, 4)]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"subscribe": "orderz"}, "There is no folder of topic 'orderz' in /logs."),
        ({"assign": '{"orders": [0, 7]}'}, "There is no folder orders-7 in /logs."),
        ({"subscribePattern": "x.*"}, "No topic in /logs matches x.*."),
        ({}, "/logs is a log directory: name the topics with subscribe, subscribePattern or assign."),
        ({"path": "/nowhere"}, "/nowhere is neither a log directory"),
        (
            {"path": "/logs/orders-0", "subscribe": "other"},
            "There is no folder of topic 'other' in /logs/orders-0.",
        ),
    ],
)
def test_what_is_not_there_gets_a_sentence(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(SparkError) as refused:
        plan_batch(two_partitions(), options(**given))
    assert sentence in str(refused.value)


def test_a_partition_that_is_in_two_folders_is_not_read_twice() -> None:
    files = two_partitions()
    new_partition(files, partition=1, directory="/copy")

    with pytest.raises(SparkError, match="orders-1 is in /logs/orders-1 and in /copy/orders-1: name the one"):
        plan(files, paths='["/logs", "/copy"]')


# -- offsets and times
# --------------------


@pytest.mark.parametrize(
    ("given", "planned"),
    [
        ({"startingOffsets": "earliest", "endingOffsets": "latest"}, WHOLE),
        (
            {
                "startingOffsets": json.dumps({"orders": {"0": 7, "1": -2}}),
                "endingOffsets": json.dumps({"orders": {"0": -1, "1": 4}}),
            },
            [("orders-0", 7, 30), ("orders-1", 0, 4)],
        ),
        ({"startingOffsets": json.dumps({"orders": {"0": -1, "1": 10}})}, []),
        (
            {"startingTimestamp": str(NOW + 2500), "endingTimestamp": str(NOW + 5000)},
            [("orders-0", 3, 5), ("orders-1", 3, 5)],
        ),
        (
            {"startingOffsetsByTimestamp": json.dumps({"orders": {"0": NOW + 7000, "1": NOW}})},
            [("orders-0", 7, 30), ("orders-1", 0, 10)],
        ),
        (
            {"startingTimestamp": str(NOW + 20_000), "startingOffsetsByTimestampStrategy": "latest"},
            [("orders-0", 20, 30)],
        ),
        ({"endingTimestamp": str(NOW + 20_000)}, [("orders-0", 0, 20), ("orders-1", 0, 10)]),
    ],
)
def test_a_batch_begins_and_ends_at_offsets_and_times(
    given: dict[str, str], planned: list[tuple[str, int, int]]
) -> None:
    assert plan(two_partitions(), **given) == planned


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"startingOffsets": "latest"}, "A batch cannot start at latest"),
        (
            {"startingOffsets": '{"orders": {"0": 7}}'},
            "The start does not name orders-1: name each partition.",
        ),
        (
            {"endingOffsets": '{"orders": {"0": 7, "1": 2, "2": 2}}'},
            "The end names orders-2, which is not read.",
        ),
        (
            {"startingOffsets": '{"orders": {"0": 31, "1": 2}}'},
            "orders-0 would be read from offset 31 to 30, which is before it.",
        ),
        (
            {"endingOffsets": '{"orders": {"0": 7, "1": 11}}'},
            "orders-1 has no offset 11: it has those from 0 up to 10. Set failOnDataLoss=false",
        ),
        ({"startingTimestamp": str(NOW + 20_000)}, f"orders-1 has no record at {NOW + 20_000} or later"),
    ],
)
def test_offsets_and_times_that_are_not_there_get_a_sentence(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(SparkError) as refused:
        plan(two_partitions(), **given)
    assert sentence in str(refused.value)


def test_offsets_that_were_deleted_are_an_error_unless_that_is_accepted() -> None:
    files = two_partitions()
    files.write_file("/logs/log-start-offset-checkpoint", b"0\n1\norders 0 12\n", sync=False)
    start = json.dumps({"orders": {"0": 5, "1": 0}})

    assert plan(files) == [("orders-0", 12, 30), ("orders-1", 0, 10)]
    with pytest.raises(SparkError, match="orders-0 has no offset 5: it has those from 12 up to 30"):
        plan(files, startingOffsets=start)
    assert plan(files, startingOffsets=start, failOnDataLoss="false")[0] == ("orders-0", 12, 30)


# -- transactions
# ---------------


def test_committed_records_are_read_up_to_the_first_open_transaction() -> None:
    files = MemoryFiles()
    log = new_partition(files, segment_bytes=200)
    fill(log, 2)
    transact(log, 1, 0)
    end_transaction(log, 1, commit=False)  # 3
    transact(log, 2, 0)
    fill(log, 1)
    end_transaction(log, 2, commit=True)  # 6
    fill(log, 3)
    transact(log, 1, 1)
    fill(log, 5)

    given = options(subscribe="orders", kafka_isolation_level="read_committed", minPartitions="6")
    splits = plan_batch(files, given)

    assert len(splits) > 3
    assert (splits[0].wanted.start, splits[-1].wanted.end) == (0, 10)
    assert read(files, splits, given) == numbered(0, 1, 4, 5, 7, 8, 9)
    everything = options(subscribe="orders")
    assert read(files, plan_batch(files, everything), everything) == numbered(
        0, 1, 2, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15
    )


# -- parts
# --------


def test_a_large_partition_is_read_by_several_tasks() -> None:
    files = two_partitions()

    parts = plan(files, maxPartitionBytes=str(8 * BATCH_BYTES))

    assert [name for name, _, _ in parts] == ["orders-0"] * 4 + ["orders-1"] * 2
    given = options(subscribe="orders", maxPartitionBytes=str(8 * BATCH_BYTES))
    assert read(files, plan_batch(files, given), given) == numbered(*range(30), *range(10))


@pytest.mark.parametrize("least", [3, 8, 20])
def test_there_are_at_least_as_many_tasks_as_are_asked_for(least: int) -> None:
    files = two_partitions()
    given = options(subscribe="orders", minPartitions=str(least))

    splits = plan_batch(files, given)

    assert least <= len(splits) <= least + 4
    assert read(files, splits, given) == numbered(*range(30), *range(10))


# -- filters
# ----------


def test_filters_leave_out_partitions_offsets_and_older_records() -> None:
    files = two_partitions()
    given = options(subscribe="orders")

    def planned(narrowing: Narrowing) -> list[tuple[str, int, int]]:
        return ranges(plan_batch(files, given, narrowing))

    only_first = (Comparison("partition", "LessThan", 1),)
    assert planned(Narrowing(only_first, OffsetRange(3, 9))) == [("orders-0", 3, 9)]
    assert planned(Narrowing(offsets=OffsetRange(8, 100))) == [("orders-0", 8, 30), ("orders-1", 8, 10)]
    assert planned(Narrowing(offsets=OffsetRange(12, 12))) == []
    assert planned(Narrowing(least_ms=NOW + 15_500)) == [("orders-0", 16, 30)]


def test_a_split_says_which_partition_it_is_of() -> None:
    (split,) = plan_batch(two_partitions(), options(subscribe="other"))
    assert split == Split("/logs/other-0", TopicPartition("other", 0), OffsetRange(0, 3))

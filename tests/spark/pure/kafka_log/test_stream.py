"""A stream goes on where its last batch ended, as far as it may, and stops where records are missing."""

from __future__ import annotations

import json

import pytest

from pykafka_broker.arrow.core.stored_batches import OffsetRange
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.kafka_log.offsets import Positions
from pykafka_broker.spark.kafka_log.planning import Split
from pykafka_broker.spark.kafka_log.stream import LogStream
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import NOW, TOPIC_ID, end_transaction
from tests.spark.pure.kafka_log.logs import OTHER_ID, fill, new_partition, numbered, options, read, transact

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
ID, NEW_ID = uuid_text(TOPIC_ID), uuid_text(OTHER_ID)


def stream(files: MemoryFiles, **given: str) -> LogStream:
    given = {"subscribe": "orders", "startingOffsets": "earliest", **given}
    return LogStream(files, options(**given))


def at(first: int, second: int | None = None, topic_id: str = ID) -> Positions:
    offsets = {FIRST: first} if second is None else {FIRST: first, SECOND: second}
    return Positions(offsets, {"orders": topic_id})


def ranges(splits: list[Split]) -> list[tuple[str, int, int]]:
    return [(str(name), *wanted) for _, name, wanted in splits]


# -- where it begins and goes on
# ------------------------------


def test_a_stream_begins_at_the_end_unless_it_is_told_otherwise() -> None:
    files = MemoryFiles()
    fill(new_partition(files), 5)

    assert LogStream(files, options(subscribe="orders")).first() == at(5)
    assert stream(files).first() == at(0)
    assert stream(files, startingOffsets='{"orders": {"0": 3}}').first() == at(3)
    assert stream(files, startingTimestamp=str(NOW + 1500)).first() == at(2)
    with pytest.raises(SparkError, match="orders-0 has no offset 6: it has those from 0 up to 5"):
        stream(files, startingOffsets='{"orders": {"0": 6}}').first()
    with pytest.raises(SparkError, match="There is no folder of topic 'orderz' in /logs"):
        stream(files, subscribe="orderz").first()


def test_a_stream_that_begins_at_the_end_loses_nothing_by_a_restart_before_its_first_batch() -> None:
    files = MemoryFiles()
    log = fill(new_partition(files), 5)
    beginning = LogStream(files, options(subscribe="orders"))
    first_end = beginning.advance(None)
    fill(log, 5)

    assert (beginning.first(), first_end) == (at(5), at(5))
    assert beginning.advance(None) == at(10)
    restarted = LogStream(files, options(subscribe="orders"))
    restarted.at(first_end)
    assert restarted.splits(restarted.first(), first_end) == []
    assert restarted.advance(None) == at(10)


def test_a_batch_goes_on_where_the_last_one_ended() -> None:
    files = MemoryFiles()
    log = fill(new_partition(files, segment_bytes=300), 5)
    reading = stream(files)

    assert reading.advance(None) == at(5)
    assert reading.advance(None) == at(5)
    fill(log, 7)
    assert reading.advance(None) == at(12)
    splits = reading.splits(at(5), at(12))
    assert splits == [Split("/logs/orders-0", FIRST, OffsetRange(5, 12))]
    assert read(files, splits, options()) == numbered(*range(5, 12))
    assert reading.splits(at(12), at(12)) == []


def test_a_cap_is_counted_from_where_the_last_batch_ended() -> None:
    files = MemoryFiles()
    fill(new_partition(files), 100)
    fill(new_partition(files, partition=1), 10)
    reading = stream(files)

    assert reading.advance(11) == at(10, 1)
    assert reading.advance(11) == at(20, 2)
    restarted = stream(files)
    restarted.at(at(20, 2))
    assert restarted.advance(88) == at(100, 10)


def test_a_stream_that_has_an_end_reads_no_further() -> None:
    files = MemoryFiles()
    log = fill(new_partition(files), 10)
    reading = stream(files)
    reading.end_here()
    fill(log, 10)
    new_partition(files, partition=1)

    assert [reading.advance(6).offsets[FIRST] for _ in range(3)] == [6, 10, 10]


def test_a_stream_that_is_told_from_where_and_how_much_reads_that() -> None:
    files = MemoryFiles()
    log = fill(new_partition(files), 40)
    reading = stream(files)
    first = reading.first()

    def end(start: Positions, most: int | None) -> Positions:
        reading.at(start)
        return reading.advance(most)

    assert (end(first, 15), end(first, 7), end(at(7), 15)) == (at(15), at(7), at(22))
    reading.end_here()
    fill(log, 10)
    assert end(first, None) == end(at(40), None) == at(40)


def test_partitions_that_are_added_are_read_from_their_beginning() -> None:
    files = MemoryFiles()
    fill(new_partition(files), 3)
    reading = stream(files)
    reading.advance(None)
    fill(new_partition(files, partition=1), 4)

    assert reading.advance(None) == at(3, 4)
    assert ranges(reading.splits(at(3), at(3, 4))) == [("orders-1", 0, 4)]


def test_only_what_is_committed_is_read_when_it_is() -> None:
    files = MemoryFiles()
    log = fill(new_partition(files), 2)
    reading = stream(files, kafka_isolation_level="read_committed")

    assert reading.advance(None) == at(2)
    transact(log, 1, 0)
    fill(log, 3)
    assert reading.advance(None) == at(2)
    end_transaction(log, 1, commit=False)
    assert reading.advance(None) == at(7)
    given = options(kafka_isolation_level="read_committed")
    assert read(files, reading.splits(at(2), at(7)), given) == numbered(3, 4, 5)


# -- what is missing
# ------------------


def delete_records(files: MemoryFiles, before: int) -> None:
    text = f"0\n1\norders 0 {before}\n"
    files.write_file("/logs/log-start-offset-checkpoint", text.encode(), sync=False)


def test_records_that_were_deleted_before_they_were_read_stop_a_stream() -> None:
    files = MemoryFiles()
    fill(new_partition(files), 10)
    delete_records(files, 6)
    reading, tolerant = stream(files), stream(files, failOnDataLoss="false")
    for each in (reading, tolerant):
        each.at(at(4))

    with pytest.raises(SparkError) as stopped:
        reading.advance(None)
    assert str(stopped.value) == (
        "Offsets 4 to 5 of orders-0 were deleted before the stream read them. "
        "Set failOnDataLoss=false to go on without them."
    )
    with pytest.raises(SparkError, match="Offsets 4 to 5 of orders-0"):
        reading.splits(at(4), at(10))
    assert tolerant.advance(2) == at(8)
    assert ranges(tolerant.splits(at(4), at(8))) == [("orders-0", 6, 8)]
    assert ranges(tolerant.splits(at(2), at(4))) == []


def test_a_log_that_is_shorter_than_before_stops_a_stream() -> None:
    files = MemoryFiles()
    log = fill(new_partition(files), 10)
    reading, tolerant = stream(files), stream(files, failOnDataLoss="false")
    for each in (reading, tolerant):
        each.at(at(14))

    with pytest.raises(SparkError, match="orders-0 ends at offset 10, and the stream has read up to 14"):
        reading.advance(None)
    assert tolerant.advance(None) == at(10)
    fill(log, 2)
    assert tolerant.advance(None) == at(12)


def test_a_topic_that_was_created_anew_is_another_one() -> None:
    files = MemoryFiles()
    fill(new_partition(files), 10)
    running, tolerant = stream(files), stream(files, failOnDataLoss="false")
    for each in (running, tolerant):
        each.advance(None)
    files.remove_tree("/logs/orders-0")
    fill(new_partition(files, topic_id=OTHER_ID), 20)

    with pytest.raises(SparkError, match="Topic 'orders' was created anew since the stream read it"):
        running.advance(None)
    restarted = stream(files)
    restarted.at(at(10))
    with pytest.raises(SparkError, match=f"its id is {NEW_ID}, and was {ID}"):
        restarted.advance(None)
    assert tolerant.advance(None) == at(20, topic_id=NEW_ID)
    assert ranges(tolerant.splits(at(10), at(20, topic_id=NEW_ID))) == [("orders-0", 0, 20)]
    with pytest.raises(SparkError, match="Topic 'orders' was created anew"):
        running.splits(at(4), at(8))
    assert tolerant.splits(at(4), at(8)) == []


def test_a_folder_that_is_gone_stops_a_stream() -> None:
    files = MemoryFiles()
    fill(new_partition(files), 3)
    fill(new_partition(files, partition=1), 3)
    reading, tolerant = stream(files), stream(files, failOnDataLoss="false")
    for each in (reading, tolerant):
        each.advance(None)
    files.remove_tree("/logs/orders-1")

    with pytest.raises(SparkError, match="The folder of orders-1 is gone, which the stream was reading"):
        reading.advance(None)
    with pytest.raises(SparkError, match="The folder of orders-1 is gone, and offsets 1 to 2 with it"):
        reading.splits(at(3, 1), at(3, 3))
    assert tolerant.advance(None) == at(3)
    assert tolerant.splits(at(3, 1), at(3, 3)) == []


def test_copies_without_ids_of_topics_are_read_too() -> None:
    files = MemoryFiles()
    fill(new_partition(files), 3)
    files.remove("/logs/orders-0/partition.metadata")
    reading = stream(files)
    reading.at(at(1))

    assert reading.advance(None) == Positions({FIRST: 3}, {})
    assert ranges(reading.splits(at(1), Positions({FIRST: 3}, {}))) == [("orders-0", 1, 3)]


def test_a_place_by_partition_names_them_all() -> None:
    files = MemoryFiles()
    new_partition(files)
    new_partition(files, partition=1)

    with pytest.raises(SparkError, match="The start does not name orders-1"):
        stream(files, startingOffsets=json.dumps({"orders": {"0": 0}})).first()

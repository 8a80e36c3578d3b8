"""A task reads its split as Spark has it, or says what is missing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pykafka_broker.arrow.core.fetched import READ_UNCOMMITTED
from pykafka_broker.arrow.core.stored_batches import OffsetRange
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.records.batch import BatchFields, build_batch
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.kafka_log.options import COLUMN_TYPES
from pykafka_broker.spark.kafka_log.planning import Split
from pykafka_broker.spark.kafka_log.records import Reading, record_batches
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import NOW, TOPIC_ID
from tests.spark.pure.kafka_log.logs import fill, new_partition, numbered, options, read

NAME = TopicPartition("orders", 0)


def split(start: int, end: int) -> Split:
    return Split("/logs/orders-0", NAME, OffsetRange(start, end))


def read_rows(files: MemoryFiles, *columns: str) -> pa.Table:
    reading = Reading(columns, READ_UNCOMMITTED, fail_on_data_loss=True)
    return pa.Table.from_batches(record_batches(files, split(0, 2), reading))


def test_every_column_has_the_type_that_spark_wants() -> None:
    files = MemoryFiles()
    log = new_partition(files)
    written = [(NOW, b"k", b"v", (("a", b"1"), ("b", None))), (NOW + 1, None, None, ())]
    batch = build_batch(written, BatchFields(producer_id=5, producer_epoch=2, base_sequence=0))
    log.writer.append(bytearray(batch), leader_epoch=3, now_ms=NOW)

    table = read_rows(files, *COLUMN_TYPES)

    entry = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    assert table.schema.types == [
        *(pa.binary(), pa.binary(), pa.string(), pa.int32(), pa.int64(), pa.timestamp("us", tz="UTC")),
        *(pa.int32(), pa.list_(entry), pa.int64(), pa.int16(), pa.int32(), pa.string()),
    ]
    assert table.column("timestamp").cast(pa.int64()).to_pylist() == [NOW * 1000, NOW * 1000 + 1000]
    same = {"topic": "orders", "partition": 0, "timestampType": 0, "producerId": 5, "producerEpoch": 2}
    rows: list[dict[str, Any]] = [
        {
            "key": b"k",
            "value": b"v",
            "offset": 0,
            "headers": [{"key": "a", "value": b"1"}, {"key": "b", "value": None}],
        },
        {"key": None, "value": None, "offset": 1, "headers": None},
    ]
    assert table.drop_columns("timestamp").to_pylist() == [
        {
            name: {**same, "leaderEpoch": 3, "topic_id": uuid_text(TOPIC_ID), **row}[name]
            for name in COLUMN_TYPES
            if name != "timestamp"
        }
        for row in rows
    ]


def test_the_id_of_the_topic_can_be_read_alone() -> None:
    files = MemoryFiles()
    fill(new_partition(files), 2)

    assert read_rows(files, "topic_id").to_pydict() == {"topic_id": [uuid_text(TOPIC_ID)] * 2}


def test_a_timestamp_beyond_what_spark_holds_gets_a_sentence() -> None:
    files = MemoryFiles()
    log = new_partition(files, message_timestamp_after_max_ms=2**63 - 1)
    written = [(NOW * 1_000_000, None, b"v", ())] * 2
    log.writer.append(bytearray(build_batch(written, BatchFields())), leader_epoch=0, now_ms=NOW)

    with pytest.raises(SparkError, match="orders-0 has a timestamp that Spark cannot hold"):
        read_rows(files, "timestamp")
    assert read_rows(files, "value").num_rows == 2


def test_a_folder_that_is_not_on_this_machine_gets_a_sentence() -> None:
    reading = Reading(("offset",), READ_UNCOMMITTED, fail_on_data_loss=False)

    with pytest.raises(SparkError, match=r"There is no folder /logs/orders-0 on .*: every executor needs it"):
        list(record_batches(MemoryFiles(), split(0, 2), reading))


# -- records that go while they are read
# --------------------------------------


@pytest.mark.parametrize("accepted", [False, True], ids=["stops", "goes on"])
def test_records_that_retention_removes_before_the_task_reads_them(accepted: bool) -> None:
    files = MemoryFiles()
    fill(new_partition(files, segment_bytes=300), 20)
    given = options(failOnDataLoss=str(not accepted))
    bases = sorted(path for path in files.inodes if path.endswith(".log"))
    for path in bases[:2]:
        files.remove(path)
    begin = int(bases[2].rpartition("/")[2].removesuffix(".log"))

    if accepted:
        assert read(files, [split(2, 15)], given) == numbered(*range(begin, 15))
    else:
        with pytest.raises(SparkError, match=f"orders-0 has no offset 2: it begins at {begin}"):
            read(files, [split(2, 15)], given)


@pytest.mark.parametrize("accepted", [False, True], ids=["stops", "goes on"])
def test_a_log_that_ends_earlier_than_when_the_read_was_planned(accepted: bool) -> None:
    files = MemoryFiles()
    fill(new_partition(files), 5)
    given = options(failOnDataLoss=str(not accepted))

    if accepted:
        assert read(files, [split(2, 9)], given) == numbered(2, 3, 4)
    else:
        with pytest.raises(SparkError, match="orders-0 ends before offset 9, which was there when the read"):
            read(files, [split(2, 9)], given)


@pytest.mark.parametrize("accepted", [False, True], ids=["stops", "goes on"])
def test_a_folder_that_is_removed_before_the_task_reads_it(accepted: bool) -> None:
    files = MemoryFiles()
    new_partition(files, "other")
    given = options(failOnDataLoss=str(not accepted))

    if accepted:
        assert read(files, [split(0, 9)], given) == []
    else:
        with pytest.raises(SparkError, match=r"The folder /logs/orders-0 was removed\."):
            read(files, [split(0, 9)], given)


def test_damage_is_never_passed_over() -> None:
    files = MemoryFiles()
    fill(new_partition(files), 5)
    files.inodes[f"/logs/orders-0/{0:020d}.log"].data[150] ^= 0xFF

    with pytest.raises(KafkaError, match="partition orders-0 at offset") as refused:
        read(files, [split(0, 5)], options(failOnDataLoss="false"))
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE

"""From Spark 4.2 on a stream is asked from where and how much, and ends early for `Trigger.AvailableNow`."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StructType

from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.spark.kafka_log.data_source import KafkaLog
from pykafka_broker.spark.kafka_log.offsets import Json
from tests.spark.pure.kafka_log.logs import fill, new_partition

limits = pytest.importorskip("pyspark.sql.streaming.datasource", reason="Spark 4.2 has it")


def test_a_stream_reads_from_where_and_as_much_as_spark_says(tmp_path: Path) -> None:
    log = fill(new_partition(OsFileSystem(), directory=str(tmp_path)), 40)
    options = {"path": str(tmp_path), "subscribe": "orders", "startingOffsets": "earliest"}
    reader = KafkaLog({**options, "maxOffsetsPerTrigger": "15"}).streamReader(
        StructType().add("offset", LongType())
    )

    def end(start: Json, limit: object) -> Json:
        return reader.latestOffset(start, limit)

    first = reader.initialOffset()
    assert isinstance(reader, limits.SupportsTriggerAvailableNow)
    assert reader.getDefaultReadLimit() == limits.ReadMaxRows(15)
    assert end(first, limits.ReadMaxRows(15))["orders"]["0"] == 15
    assert end(first, limits.ReadMaxRows(7))["orders"]["0"] == 7
    reader.prepareForTriggerAvailableNow()
    fill(log, 10)
    last = end(first, limits.ReadAllAvailable())
    assert last["orders"]["0"] == 40
    assert end(last, limits.ReadAllAvailable()) == last

"""The columns that every job over Spark speaks."""

from __future__ import annotations

from pykafka_broker.arrow.core import columns as arrow
from pykafka_broker.spark import kafka_format


def test_the_columns_are_those_that_arrow_readers_give() -> None:
    assert kafka_format.KAFKA_COLUMNS == arrow.KAFKA_COLUMNS


def test_the_ddl_is_that_of_sparks_source() -> None:
    assert kafka_format.KAFKA_DDL == (
        "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
        "timestampType INT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
    )


def test_an_archive_adds_the_topic_id_and_the_day() -> None:
    added = {"topic_id": "STRING", "day": "DATE"}
    assert added == kafka_format.ARCHIVE_TYPES
    assert kafka_format.ARCHIVE_DDL.removeprefix(kafka_format.KAFKA_DDL) == ", topic_id STRING, day DATE"

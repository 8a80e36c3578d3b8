"""The source of a replay: a DataFrame in Spark's kafka format, classic or of Spark Connect."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from pykafka_broker.spark.kafka_format import (
    HEADERS,
    KAFKA_TYPES,
    KEY,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    TOPIC,
    TOPIC_ID,
    VALUE,
)
from pykafka_broker.spark.replay.errors import ReplayError
from pykafka_broker.spark.replay.shuffle import keys_of_tasks
from pykafka_broker.spark.replay.summary import NO_TIMESTAMP, Summary
from pykafka_broker.spark.replay.window import Window, conditions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: The columns of a record; not `timestampType`, for all written timestamps are of CreateTime.
NEEDED = (KEY, VALUE, TOPIC, PARTITION, OFFSET, TIMESTAMP)
#: The column with the index of the row's partition.
TARGET = "target"
TIMESTAMP_MS = "timestamp_ms"

_HEADERS_SIZE = (
    f"coalesce(aggregate({HEADERS}, 0L, (size, one) -> "
    "size + octet_length(one.key) + coalesce(octet_length(one.value), 0) + 10), 0L)"
)


def within(source: DataFrame, window: Window, *, without_headers: bool = False) -> DataFrame:
    """The records of the window.

    Args:
        source: In Spark's kafka format, perhaps with `topic_id` and `day`.
        window: The choice of records.
        without_headers: Whether a source without the column `headers` will do.

    Raises:
        ReplayError: the source is a stream, or has not got these columns.
        ValueError: the window needs a column that is not there.
    """
    if source.isStreaming:
        raise ReplayError(
            "A replay reads a table or a topic as it is: take spark.read, not spark.readStream."
        )
    missing = [column for column in NEEDED if column not in source.columns]
    if missing:
        raise ReplayError(
            f"The source is not in Spark's kafka format: {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not there."
        )
    if HEADERS not in source.columns and not without_headers:
        raise ReplayError(
            "The source has no column headers: read a topic with the option includeHeaders, or say that "
            "records are to be written without headers."
        )
    rows = source
    for condition in conditions(window, source.columns):
        rows = rows.where(condition)
    if HEADERS not in source.columns:
        rows = rows.selectExpr("*", f"CAST(NULL AS {KAFKA_TYPES[HEADERS]}) AS {HEADERS}")
    return rows


def summaries(rows: DataFrame) -> list[Summary]:
    """Read all records once; return a summary of each partition."""
    from pyspark.sql.functions import expr

    size = f"(coalesce(octet_length({KEY}), 0) + coalesce(octet_length({VALUE}), 0) + {_HEADERS_SIZE})"
    times = f"CASE WHEN unix_millis({TIMESTAMP}) != {NO_TIMESTAMP} THEN unix_millis({TIMESTAMP}) END"
    topic_id = TOPIC_ID if TOPIC_ID in rows.columns else "CAST(NULL AS STRING)"
    found = (
        rows.groupBy(expr(TOPIC), expr(PARTITION), expr(topic_id).alias(TOPIC_ID))
        .agg(
            expr("count(1)").alias("records"),
            expr(f"min({OFFSET})").alias("first_offset"),
            expr(f"max({OFFSET})").alias("last_offset"),
            expr(f"min({times})").alias("oldest_ms"),
            expr(f"max({times})").alias("newest_ms"),
            expr(f"sum({size})").alias("size_bytes"),
            expr(f"max({size})").alias("largest_bytes"),
            expr(f"count_if({KEY} IS NULL)").alias("without_key"),
        )
        .collect()
    )
    every = [
        Summary(
            row.topic,
            row.partition,
            row.topic_id,
            row.records,
            row.first_offset,
            row.last_offset,
            NO_TIMESTAMP if row.oldest_ms is None else row.oldest_ms,
            NO_TIMESTAMP if row.newest_ms is None else row.newest_ms,
            row.size_bytes,
            row.largest_bytes,
            row.without_key,
        )
        for row in found
    ]
    return sorted(every, key=lambda summary: (summary.topic, summary.partition, summary.topic_id or ""))


def arranged(rows: DataFrame, positions: Sequence[tuple[str, int, int]]) -> DataFrame:
    """One task for each of these partitions, with its records from a position on, in the order of their
    offsets: the columns `target` (its index in `positions`), `offset`, `timestamp_ms`, `key`, `value`,
    `headers`. Spark sorts, and puts on disk what does not fit into memory.

    Args:
        rows: As `within` gives them.
        positions: Topic, partition, and the first offset to write.
    """
    by_topic: dict[str, dict[int, tuple[int, int]]] = {}
    for index, (topic, partition, position) in enumerate(positions):
        by_topic.setdefault(topic, {})[partition] = (index, position)
    target = _by_partition(by_topic, 0, "INT")
    first = _by_partition(by_topic, 1, "BIGINT")
    keys = keys_of_tasks(len(positions))
    return (
        rows.where(f"{OFFSET} >= {first}")
        .selectExpr(
            f"{target} AS {TARGET}",
            OFFSET,
            f"coalesce(unix_millis({TIMESTAMP}), {NO_TIMESTAMP}L) AS {TIMESTAMP_MS}",
            KEY,
            VALUE,
            HEADERS,
        )
        .repartition(len(positions), _expression(f"get({_array(keys, 'INT')}, {TARGET})"))
        .sortWithinPartitions(TARGET, OFFSET)
    )


def _expression(text: str) -> Column:
    from pyspark.sql.functions import expr

    return expr(text)


def _by_partition(by_topic: Mapping[str, Mapping[int, tuple[int, int]]], which: int, kind: str) -> str:
    """SQL for a number of the row's partition, null if it has none. The look-up in an array takes one step;
    a map would be searched.
    """
    cases = []
    for topic, found in by_topic.items():
        numbers = [found[p][which] if p in found else None for p in range(max(found) + 1)]
        escaped = topic.replace("\\", "\\\\").replace("'", "\\'")
        cases.append(f"WHEN '{escaped}' THEN get({_array(numbers, kind)}, {PARTITION})")
    return f"CASE {TOPIC} {' '.join(cases)} END"


def _array(numbers: Collection[int | None], kind: str) -> str:
    return f"CAST(array({', '.join('NULL' if n is None else str(n) for n in numbers)}) AS ARRAY<{kind}>)"

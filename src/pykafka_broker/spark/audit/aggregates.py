"""What Spark counts of records in its kafka format. No record is collected.

`blocks` and `buckets` are aggregated where the records are read, and almost nothing is shuffled. `keys`
shuffles some forty bytes of each record, once. The other functions read again, but only what may be wrong.

Everything is built from expressions of SQL, so that it runs on classic sessions and on Spark Connect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pykafka_broker.spark.audit.comparing import BUCKETS, Bucket, Difference, OrderDifference, Place
from pykafka_broker.spark.audit.keys import Keys
from pykafka_broker.spark.audit.offsets import BLOCK_OFFSETS, Block
from pykafka_broker.spark.audit.seen import NONE, Seen
from pykafka_broker.spark.audit.times import Doubtful, Late
from pykafka_broker.spark.kafka_format import CREATE_TIME, HEADERS, KAFKA_TYPES, TOPIC, TOPIC_ID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_HEADERS = f"CAST(NULL AS {KAFKA_TYPES[HEADERS]})"
#: Spark's hash skips null, so null and empty are told apart by a field of their own.
_CONTENT = "xxhash64(key IS NULL, key, value IS NULL, value, headers IS NULL, headers)"
_BLOCK = f"CAST(offset DIV {BLOCK_OFFSETS} AS BIGINT)"


def records_of(frame: DataFrame, topic: str, topic_id: str | None = None) -> DataFrame:
    """The records of a topic, in the columns that the other functions take.

    Args:
        frame: In Spark's kafka format.
        topic: The name of the topic.
        topic_id: If the frame has topic ids, records of another topic of that name are left out.
    """
    from pyspark.sql import functions

    if HEADERS not in frame.columns:
        frame = frame.withColumn(HEADERS, functions.expr(_HEADERS))
    chosen = frame.where(functions.col(TOPIC) == functions.lit(topic))
    if topic_id is not None and TOPIC_ID in frame.columns:
        chosen = chosen.where(
            functions.col(TOPIC_ID).isNull() | (functions.col(TOPIC_ID) == functions.lit(topic_id))
        )
    return chosen.selectExpr(
        "partition",
        "offset",
        "unix_millis(timestamp) AS ms",
        f"timestampType = {CREATE_TIME} AS is_create_time",
        "key",
        "coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0) AS size",
        f"{_CONTENT} AS content",
    )


def blocks(records: DataFrame, newest_ms: int) -> list[Block]:
    """What was read, by blocks of offsets.

    Args:
        records: As `records_of` gives them.
        newest_ms: Later timestamps count as ahead of the clock.
    """
    found = _aggregated(
        records.selectExpr(
            "*", f"{_BLOCK} AS block", "xxhash64(offset, ms, is_create_time, content) AS row_hash"
        ),
        ["partition", "block"],
        "count(*) AS row_count",
        f"bitmap_construct_agg(offset % {BLOCK_OFFSETS}) AS bits",
        "min(offset) AS first_offset",
        "max(offset) AS last_offset",
        "min(ms) FILTER (WHERE ms >= 0) AS oldest_ms",
        "max(ms) FILTER (WHERE ms >= 0) AS newest_ms",
        f"count_if(ms > {newest_ms}) AS ahead",
        "sum(size) AS size_bytes",
        *_digest("row_hash"),
    ).selectExpr(
        "partition",
        "block",
        "row_count",
        "bitmap_count(bits)",
        "first_offset",
        "last_offset",
        "IF(bitmap_count(bits) = last_offset - first_offset + 1, NULL, bits)",
        "oldest_ms",
        "newest_ms",
        "ahead",
        "size_bytes",
        "struct(digest_xor, digest_sum)",
    )
    return [_block(row) for row in found.collect()]


def _block(row: Row) -> Block:
    *fields, digest = row
    partition, number, rows, offsets, first, last, bitmap, oldest, newest, ahead, size = fields
    bits = None if bitmap is None else bytes(bitmap)
    return Block(
        partition, number, rows, offsets, first, last, bits, oldest, newest, ahead, size, tuple(digest)
    )


def keys(records: DataFrame) -> list[Keys]:
    """Order and repetition of the records of each key, by partition.

    Each record is compared with the previous record of its key in the log, and with the previous record by
    timestamp that has the same key, value and headers.
    """
    of_key = "OVER (PARTITION BY has_key, holder ORDER BY partition, offset)"
    of_content = "OVER (PARTITION BY has_key, holder, content ORDER BY ms, partition, offset)"
    compared = (
        records.selectExpr(
            "partition",
            "offset",
            "IF(is_create_time AND ms >= 0, ms, NULL) AS ms",
            "content",
            "key IS NOT NULL AS has_key",
            # Records without a key would all go to one task.
            "IF(key IS NULL, content, xxhash64(key)) AS holder",
        )
        .repartition("has_key", "holder")
        .selectExpr("*", f"lag(partition) {of_key} AS before_partition", f"lag(ms) {of_key} AS before_ms")
        .selectExpr(
            "*",
            f"lag(partition) {of_content} AS like_partition",
            f"lag(offset) {of_content} AS like_offset",
            f"lag(ms) {of_content} AS like_ms",
        )
        .selectExpr(
            "*",
            "IF(has_key AND before_partition = partition, greatest(before_ms - ms, 0), 0) AS back_ms",
            "like_partition IS NOT NULL AND NOT (like_partition = partition AND like_offset = offset) "
            "AS is_like",
            "like_ms = ms AS has_same_ms",
        )
    )
    found = _aggregated(
        compared,
        ["partition"],
        "count_if(has_key)",
        "count_if(has_key AND before_partition IS NULL)",
        "count_if(has_key AND before_partition <> partition)",
        _seen("back_ms > 0"),
        "max(back_ms)",
        _seen("has_key AND before_partition IS NOT NULL"),
        _seen("is_like AND has_same_ms"),
        "min(struct(offset, like_partition, like_offset)) FILTER (WHERE is_like AND has_same_ms)",
        "count_if(is_like)",
    )
    return [
        Keys(
            partition=row[0],
            keyed=row[1],
            keys=row[2],
            moved=row[3],
            backwards=Seen(*row[4]),
            worst_back_ms=row[5] or 0,
            repeated=Seen(*row[6]),
            doubled=Seen(*row[7]),
            first_double=None if row[8] is None else (row[8][1], row[8][2]),
            alike=row[9],
        )
        for row in found.collect()
    ]


def late(records: DataFrame, doubtful: Sequence[Doubtful], limit_ms: int) -> list[Late]:
    """Records that came later than the limit, by partition.

    Args:
        records: As `records_of` gives them.
        doubtful: The blocks that may have late records.
        limit_ms: How far a timestamp may be behind the newest before it in its partition.
    """
    from pyspark.sql import functions

    carried = records.sparkSession.createDataFrame(
        [tuple(block) for block in doubtful], "partition INT, block BIGINT, carried_ms BIGINT"
    )
    before = (
        "OVER (PARTITION BY partition, block ORDER BY offset "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    )
    behind = (
        records.where("ms >= 0")
        .selectExpr("partition", "offset", "ms", f"{_BLOCK} AS block")
        .join(functions.broadcast(carried), ["partition", "block"])
        .selectExpr("partition", "offset", f"greatest(carried_ms, max(ms) {before}) - ms AS behind_ms")
        .where(f"behind_ms > {limit_ms}")
    )
    found = _aggregated(behind, ["partition"], _seen("true"), "max(behind_ms)")
    return [Late(partition, Seen(*seen), worst_ms) for partition, seen, worst_ms in found.collect()]


def differences(records: DataFrame, others: DataFrame, places: Sequence[Place]) -> list[Difference]:
    """Where two reads of the same offsets differ, by partition.

    Args:
        records: The records to check.
        others: What they should be.
        places: The blocks in which they differ.
    """
    from pyspark.sql import functions

    wanted = records.sparkSession.createDataFrame(
        [tuple(place) for place in places], "partition INT, block BIGINT, start BIGINT, end BIGINT"
    )
    both = (
        _sides(
            records.selectExpr("*", f"{_BLOCK} AS block"),
            others.selectExpr("*", f"{_BLOCK} AS block"),
            ["partition", "block", "offset", "xxhash64(ms, is_create_time, content) AS hash"],
        )
        .join(functions.broadcast(wanted), ["partition", "block"])
        .selectExpr("*", "offset >= start AND offset < end AS is_inside")
    )
    by_offset = _aggregated(
        both,
        ["partition", "offset", "start", "is_inside"],
        "sum(mine) AS mine",
        "sum(theirs) AS theirs",
        "min(hash) <> max(hash) AS differs",
    )
    found = _aggregated(
        by_offset,
        ["partition"],
        "count_if(NOT is_inside AND offset < start AND mine > 0)",
        "count_if(NOT is_inside AND offset >= start AND theirs > 0)",
        _seen("is_inside AND mine = 0"),
        _seen("is_inside AND theirs = 0"),
        _seen("is_inside AND mine > 0 AND theirs > 0 AND differs"),
        "count_if(is_inside AND mine > 0 AND theirs > 0)",
    )
    return [
        Difference(partition, older, pending, Seen(*lacking), Seen(*extra), Seen(*changed), shared)
        for partition, older, pending, lacking, extra, changed, shared in found.collect()
    ]


def buckets(records: DataFrame, *, with_timestamps: bool) -> list[Bucket]:
    """Counts and digests of records, whatever their offsets, by partition and part of their hashes."""
    hashed = records.selectExpr("partition", f"{_identity(with_timestamps)} AS row_hash")
    found = _aggregated(
        hashed.selectExpr("*", f"pmod(row_hash, {BUCKETS}) AS bucket"),
        ["partition", "bucket"],
        "count(*)",
        *_digest("row_hash"),
    )
    return [Bucket(row[0], row[1], row[2], (row[3], row[4])) for row in found.collect()]


def content_differences(
    records: DataFrame, others: DataFrame, wanted: Iterable[tuple[int, int]], *, with_timestamps: bool
) -> list[Difference]:
    """Records that only one of two partitions has, counted, whatever their offsets.

    Args:
        records: The records to check.
        others: What they should be.
        wanted: Partition and bucket where they differ.
        with_timestamps: Whether a record with another timestamp is another record.
    """
    from pyspark.sql import functions

    places = records.sparkSession.createDataFrame(list(wanted), "partition INT, bucket BIGINT")
    both = _sides(
        records, others, ["partition", "offset", f"{_identity(with_timestamps)} AS row_hash"]
    ).selectExpr("*", f"pmod(row_hash, {BUCKETS}) AS bucket")
    by_content = _aggregated(
        both.join(functions.broadcast(places), ["partition", "bucket"]),
        ["partition", "row_hash"],
        "sum(mine) AS mine",
        "sum(theirs) AS theirs",
        "max(offset) FILTER (WHERE mine > 0) AS my_offset",
        "max(offset) FILTER (WHERE theirs > 0) AS their_offset",
    )
    found = _aggregated(
        by_content,
        ["partition"],
        "coalesce(sum(theirs - mine) FILTER (WHERE theirs > mine), 0)",
        "min(their_offset) FILTER (WHERE theirs > mine)",
        "max(their_offset) FILTER (WHERE theirs > mine)",
        "coalesce(sum(mine - theirs) FILTER (WHERE mine > theirs), 0)",
        "min(my_offset) FILTER (WHERE mine > theirs)",
        "max(my_offset) FILTER (WHERE mine > theirs)",
    )
    return [Difference(row[0], 0, 0, Seen(*row[1:4]), Seen(*row[4:7]), NONE, 0) for row in found.collect()]


def order_differences(
    records: DataFrame, others: DataFrame, *, with_timestamps: bool
) -> list[OrderDifference]:
    """Records whose predecessor of the same key differs between the two sides, by partition."""
    of_key = "OVER (PARTITION BY mine, partition, holder ORDER BY offset)"
    both = _sides(
        records.where("key IS NOT NULL"),
        others.where("key IS NOT NULL"),
        ["partition", "offset", "xxhash64(key) AS holder", f"{_identity(with_timestamps)} AS row_hash"],
    ).selectExpr("*", f"lag(row_hash) {of_key} AS before")
    by_pair = _aggregated(
        both.selectExpr("*", "xxhash64(row_hash, before IS NULL, before) AS pair"),
        ["partition", "pair"],
        "sum(mine) AS mine",
        "sum(theirs) AS theirs",
        "min(offset) FILTER (WHERE mine > 0) AS offset",
    ).where("mine > theirs")
    found = _aggregated(by_pair, ["partition"], "sum(mine - theirs)", "min(offset)", "max(offset)")
    return [OrderDifference(row[0], Seen(*row[1:4])) for row in found.collect()]


def count_of_other_topics(frame: DataFrame, topic: str, topic_id: str) -> int:
    """The number of records of deleted topics of the same name."""
    from pyspark.sql import functions

    if TOPIC_ID not in frame.columns:
        return 0
    return frame.where(
        (functions.col(TOPIC) == functions.lit(topic)) & (functions.col(TOPIC_ID) != functions.lit(topic_id))
    ).count()


def _identity(with_timestamps: bool) -> str:
    """SQL for the hash by which records of two clusters are compared."""
    return "xxhash64(ms, content)" if with_timestamps else "content"


def _sides(records: DataFrame, others: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The records of both sides in one frame; `mine` and `theirs` tell the side of a row."""
    return records.selectExpr(*columns, "1 AS mine", "0 AS theirs").unionAll(
        others.selectExpr(*columns, "0 AS mine", "1 AS theirs")
    )


def _aggregated(frame: DataFrame, by: Sequence[str], *expressions: str) -> DataFrame:
    from pyspark.sql import functions

    first, *others = [functions.expr(expression) for expression in expressions]
    return frame.groupBy(*by).agg(first, *others)


def _digest(column: str) -> tuple[str, str]:
    """SQL for two digests of the same rows: XOR alone would not notice two more copies of a row."""
    return f"bit_xor({column}) AS digest_xor", f"sum(shiftrightunsigned({column}, 33)) AS digest_sum"


def _seen(condition: str) -> str:
    """SQL for the number of rows, the first offset and the last one."""
    return (
        f"struct(count_if({condition}), min(offset) FILTER (WHERE {condition}), "
        f"max(offset) FILTER (WHERE {condition}))"
    )

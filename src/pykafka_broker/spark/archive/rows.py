"""The rows of an archive, from Spark's own source: the kafka format, the topic's id, and the day.

The day is that of the batch. Spark keeps the time of a batch in the checkpoint, so that a batch that is run
again after a crash gives the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from pykafka_broker.spark.archive.settings import Pace, Topics
from pykafka_broker.spark.kafka_format import DAY, HEADERS, KAFKA_COLUMNS, KEY, TOPIC, TOPIC_ID, VALUE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: The name of what Spark observes of each batch, and of the number of bytes in it.
OBSERVED, BYTES = "archive", "bytes"
#: In whole days since 1970, whatever the time zone of the session.
_TODAY = "date_from_unix_date(CAST(unix_seconds(current_timestamp()) DIV 86400 AS INT))"


def stream(spark: SparkSession, topics: Topics, starting: str, pace: Pace) -> DataFrame:
    """The records of the topics, in the kafka format.

    Args:
        spark: A session with the Kafka connector.
        topics: The topics to read; aborted transactions are left out, unless an option says otherwise.
        starting: Where a query without a checkpoint begins, as `startingOffsets` takes it.
        pace: How much a batch reads.
    """
    options = {
        "kafka.isolation.level": "read_committed",
        **topics.options,
        "kafka.bootstrap.servers": topics.bootstrap_servers,
        "subscribe": ",".join(topics.names),
        "startingOffsets": starting,
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }
    if pace.batch_records is not None:
        options["maxOffsetsPerTrigger"] = str(pace.batch_records)
    return spark.readStream.format("kafka").options(**options).load().select(*KAFKA_COLUMNS)


def archived(frame: DataFrame, topic_ids: Mapping[str, str]) -> DataFrame:
    """The records with the id of their topic and the day; their bytes are counted by batch."""
    return frame.select("*", _topic_id(topic_ids).alias(TOPIC_ID), F.expr(_TODAY).alias(DAY)).observe(
        OBSERVED, F.expr(_payload_bytes()).alias(BYTES)
    )


def in_columns(frame: DataFrame, columns: StructType | None) -> DataFrame:
    """The rows with the columns of the table, in its order; null in those that the job does not fill."""
    if columns is None:
        return frame
    filled = set(frame.columns)
    return frame.select(
        *(
            F.col(field.name) if field.name in filled else F.lit(None).cast(field.dataType).alias(field.name)
            for field in columns.fields
        )
    )


def _topic_id(topic_ids: Mapping[str, str]) -> Column:
    known = F.lit(None).cast("string")
    for topic, topic_id in topic_ids.items():
        if topic_id:
            known = F.when(F.col(TOPIC) == F.lit(topic), F.lit(topic_id)).otherwise(known)
    return known


def _payload_bytes() -> str:
    """The bytes of keys, values and headers."""
    header_bytes = (
        f"aggregate({HEADERS}, 0L, (sum, header) -> "
        "sum + octet_length(header.key) + coalesce(octet_length(header.value), 0))"
    )
    sizes = (f"octet_length({KEY})", f"octet_length({VALUE})", header_bytes)
    return " + ".join(f"coalesce(sum({size}), 0L)" for size in sizes)

"""The reader of streams for Spark 4.2. This Spark says where a batch begins and how much it may take, and
reads with `Trigger.AvailableNow` in batches of that size.
"""

from __future__ import annotations

# Only Spark 4.2 has the module; mypy sees 4.0.
from pyspark.sql.streaming.datasource import (  # type: ignore[import-not-found]
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from pykafka_broker.spark.kafka_log.offsets import Json, from_json, to_json
from pykafka_broker.spark.kafka_log.readers import KafkaLogStreamReader


class AdmittingStreamReader(KafkaLogStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads a stream in batches of the size that Spark asks for."""

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self.most_offsets is None else ReadMaxRows(self.most_offsets)

    def prepareForTriggerAvailableNow(self) -> None:
        self.stream.end_here()

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:  # type: ignore[override]
        self.stream.at(from_json(start))
        return to_json(self.advance(limit.max_rows if isinstance(limit, ReadMaxRows) else None))

"""`format("kafka_log")` as Spark knows data sources.

Spark reads all columns of a Python data source, also those that a query does not use. The option `columns`,
or a schema, names fewer.
"""

from __future__ import annotations

from importlib.util import find_spec

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.kafka_format import ddl
from pykafka_broker.spark.kafka_log.options import (
    COLUMN_TYPES,
    insist_on_batch,
    insist_on_columns,
    insist_on_stream,
    parse,
)
from pykafka_broker.spark.kafka_log.readers import (
    FilteringKafkaLogReader,
    KafkaLogReader,
    KafkaLogStreamReader,
)

FORMAT = "kafka_log"


class KafkaLog(DataSource):
    """The format."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return ddl({name: COLUMN_TYPES[name] for name in parse(self.options).columns})

    def reader(self, schema: StructType) -> DataSourceReader:
        insist_on_batch(self.options)
        return KafkaLogReader(parse(self.options), columns_of(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        insist_on_stream(self.options)
        return stream_reader_class()(parse(self.options), columns_of(schema))


class FilteringKafkaLog(KafkaLog):
    """The format for Spark 4.1 with `spark.sql.python.filterPushdown.enabled`. Without that setting Spark
    refuses a reader that takes filters.
    """

    def reader(self, schema: StructType) -> DataSourceReader:
        insist_on_batch(self.options)
        return FilteringKafkaLogReader(parse(self.options), columns_of(schema))


def stream_reader_class() -> type[KafkaLogStreamReader]:
    """The reader for streams of the Spark that is installed."""
    if find_spec("pyspark.sql.streaming.datasource") is None:
        return KafkaLogStreamReader
    from pykafka_broker.spark.kafka_log.admission import AdmittingStreamReader

    return AdmittingStreamReader


def columns_of(schema: StructType) -> tuple[str, ...]:
    """The columns of a schema, which the caller may have given.

    Raises:
        SparkError: one does not exist, or is of another type.
    """
    names = tuple(schema.fieldNames())
    insist_on_columns(names)
    for field in schema.fields:
        wanted = COLUMN_TYPES[field.name]
        if field.dataType.simpleString() != wanted.lower().replace(": ", ":").replace(", ", ","):
            raise SparkError(
                f"kafka_log has {field.name} as {wanted}, not as {field.dataType.simpleString()}: cast it "
                "behind load()."
            )
    return names

"""Keys and values decoded into columns beside their bytes, and the reason where that does not work.

    value_data    the value, as the schema says; null where there is none, or a bad one
    value_error   why it is bad; null where it is good

and the same for the key. Rows are decoded on the executors, which need this package and pyarrow, by the
decoders of `pykafka_broker.arrow`.

A bad record is a row like any other; `bad_records.py` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import fspath
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import DataType, StringType, StructField, StructType

from pykafka_broker.arrow.avro_values import Avro, RegistryAvro
from pykafka_broker.arrow.core.values import DECODABLE, Format, Outcome
from pykafka_broker.arrow.json_values import Json
from pykafka_broker.arrow.schema_file import read_schema
from pykafka_broker.spark.archive.bad_records import DATA, ERROR
from pykafka_broker.spark.errors import SparkError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Decoder:
    """Decodes the records of a job, by the schemas at the job's start."""

    __slots__ = ("_formats", "_topic", "fields")

    def __init__(self, formats: Mapping[str, Format], topic: str) -> None:
        """Takes formats as `pinned` gives them.

        Raises:
            SparkError: Spark has no type for a schema.
        """
        self._formats = dict(formats)
        self._topic = topic
        #: The columns that it adds.
        self.fields: list[StructField] = []
        for column, each in formats.items():
            kind = _spark_type(each.open(topic, column).type, column)
            self.fields += [
                StructField(f"{column}{DATA}", kind),
                StructField(f"{column}{ERROR}", StringType()),
            ]

    @classmethod
    def of(cls, formats: Mapping[str, Format], topics: Sequence[str]) -> Decoder:
        """The decoder for these formats, with their schemas as they are now.

        Raises:
            SparkError: a column cannot be decoded, topics differ in their schemas, or a schema is invalid.
            ConnectionError, OSError: a schema cannot be fetched.
        """
        found: dict[str, Format] = {}
        for column, each in formats.items():
            if column not in DECODABLE:
                raise SparkError(f"{column!r} cannot be decoded: {' and '.join(DECODABLE)} can.")
            try:
                by_topic = {topic: pinned(each, topic, column) for topic in topics}
                kinds = {topic: own.open(topic, column).type for topic, own in by_topic.items()}
            except ValueError as error:
                raise SparkError(f"The {column} cannot be decoded: {error}") from None
            if other := next((topic for topic in topics if kinds[topic] != kinds[topics[0]]), None):
                raise SparkError(
                    f"The {column} has another schema in topic '{other}' than in '{topics[0]}': archive "
                    "topics of several schemas by a job for each, to a table for each."
                )
            found[column] = by_topic[topics[0]]
        return cls(found, topics[0])

    def applied(self, frame: DataFrame, table: StructType | None) -> DataFrame:
        """The records with the columns that are added, each of the type that it has in the table."""
        if not self._formats:
            return frame
        names = set() if table is None else set(table.names)
        fields = [
            field if table is None or field.name not in names else table[field.name] for field in self.fields
        ]
        schema = StructType([*frame.schema.fields, *fields])
        return frame.mapInArrow(_decoding(self._formats, self._topic, to_arrow_schema(schema)), schema)


def pinned(each: Format, topic: str, column: str) -> Format:
    """The format with its schema inside: executors need no file, and later schemas of a registry do not
    count.
    """
    if isinstance(each, Json):
        return replace(each, schema=each.open(topic, column).type)
    if isinstance(each, Avro) and not isinstance(each.schema, Mapping):
        return replace(each, schema=read_schema(fspath(each.schema)))
    if isinstance(each, RegistryAvro):
        return each.pinned(topic, column)
    return each


def _spark_type(kind: pa.DataType, column: str) -> DataType:
    try:
        return from_arrow_type(kind)
    except PySparkTypeError as error:
        raise SparkError(f"The {column} cannot be a column of Spark: {error}") from None


def _decoding(
    formats: Mapping[str, Format], topic: str, schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    def decode(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        decoders = {column: each.open(topic, column) for column, each in formats.items()}
        for batch in batches:
            arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
            for column, decoder in decoders.items():
                outcome = decoder.decode(arrays[column])
                arrays[f"{column}{DATA}"] = outcome.values
                arrays[f"{column}{ERROR}"] = reasons(outcome)
            columns = [conformed(arrays[field.name], field.type) for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return decode


def conformed(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values as `kind`, which has all their fields; fields that the schema has lost become null."""
    if values.type == kind:
        return values
    try:
        return values.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return pa.array(values.to_pylist(), kind)


def reasons(outcome: Outcome) -> pa.Array:
    """The reason of each bad row, null where it is good."""
    by_row = dict(outcome.bad)
    return pa.array([by_row.get(row) for row in range(len(outcome.values))], pa.string())

"""Columns of bytes that become columns of values, and the treatment of records that cannot be decoded. Pure.

A caller names a `Format` (`Json`, `Avro`, ...), which makes a `ValueDecoder` for each column of a topic. Null
stays null: a record without a value is not bad.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import numpy as np
import pyarrow as pa

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.named_tuple import NamedTuple

#: The treatment of a record that cannot be decoded: `error` ends reading with its partition and offset;
#: `null` makes its value null; `keep` does so too, and puts its bytes with the reason into another column,
#: `value_error`.
OnError = Literal["error", "null", "keep"]
ON_ERROR = ("error", "null", "keep")

#: The type of this other column.
BAD = pa.struct(
    [pa.field("reason", pa.string(), nullable=False), pa.field("data", pa.binary(), nullable=False)]
)

#: The columns that can be decoded.
DECODABLE = ("key", "value")


#: The errors of Arrow for a value that is not one of the type.
_DOES_NOT_FIT = (ValueError, TypeError, OverflowError)


class BadRecord(NamedTuple):
    """A row whose bytes cannot be decoded."""

    row: int
    reason: str


class Outcome(NamedTuple):
    """The values of a column (null for missing and bad ones), and the bad ones in order."""

    values: pa.Array
    bad: Sequence[BadRecord]


class ValueDecoder(Protocol):
    """Decodes the bytes of one column."""

    @property
    def type(self) -> pa.DataType:
        """The type of the values."""

    def decode(self, data: pa.Array) -> Outcome:
        """The values of these bytes, of Arrow's type binary."""


class Format(Protocol):
    """The encoding of a column."""

    @property
    def on_error(self) -> OnError:
        """The treatment of a bad record."""

    def open(self, topic: str, column: str) -> ValueDecoder:
        """The decoder for this column of a topic."""


class DecodedColumn(NamedTuple):
    """A column that is decoded."""

    name: str
    decoder: ValueDecoder
    on_error: OnError

    @property
    def error_name(self) -> str:
        """The column in which bad records are kept."""
        return f"{self.name}_error"


#: The partition and the offset of a row.
Place = Callable[[int], tuple[int, int]]


def opened(formats: Mapping[str, Format], topic: str, schema: pa.Schema) -> list[DecodedColumn]:
    """The columns to decode, as these formats say.

    Raises:
        ValueError: a column cannot be decoded, or is not read.
    """
    columns = []
    for name, each in formats.items():
        if name not in DECODABLE or name not in schema.names:
            raise ValueError(
                f"{name!r} cannot be decoded: only {' and '.join(DECODABLE)} can, if they are read"
            )
        if each.on_error not in ON_ERROR:
            raise ValueError(f"{each.on_error!r} is none of {', '.join(ON_ERROR)}")
        columns.append(DecodedColumn(name, each.open(topic, name), each.on_error))
    return columns


def decoded_schema(schema: pa.Schema, columns: Sequence[DecodedColumn]) -> pa.Schema:
    """The schema once these columns are decoded; those for bad records come last."""
    for column in columns:
        field = pa.field(column.name, column.decoder.type)
        schema = schema.set(schema.get_field_index(column.name), field)
    for column in columns:
        if column.on_error == "keep":
            schema = schema.append(pa.field(column.error_name, BAD))
    return schema


def decode_columns(
    batch: pa.RecordBatch, topic: str, columns: Sequence[DecodedColumn], schema: pa.Schema, place: Place
) -> pa.RecordBatch:
    """The batch with these columns decoded, of `decoded_schema`.

    Raises:
        KafkaError: INVALID_RECORD, a record of a column with `on_error="error"` cannot be decoded.
    """
    arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
    for column in columns:
        data = arrays[column.name]
        outcome = column.decoder.decode(data)
        if outcome.bad and column.on_error == "error":
            row, reason = outcome.bad[0]
            partition, offset = place(row)
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"Error deserializing {column.name} for partition {topic}-{partition} at offset {offset}: "
                f"{reason}",
            )
        arrays[column.name] = outcome.values
        if column.on_error == "keep":
            arrays[column.error_name] = _kept(data, outcome.bad)
    return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


def _kept(data: pa.Array, bad: Sequence[BadRecord]) -> pa.Array:
    """The bad records at their rows, with their bytes."""
    if not bad:
        return pa.nulls(len(data), BAD)
    rows = pa.array([each.row for each in bad], pa.int64())
    structs = pa.StructArray.from_arrays(
        [pa.array([each.reason for each in bad], pa.string()), data.take(rows)], fields=list(BAD)
    )
    numbers = np.zeros(len(data), np.int64)
    is_bad = np.zeros(len(data), bool)
    numbers[[each.row for each in bad]] = np.arange(len(bad))
    is_bad[[each.row for each in bad]] = True
    return structs.take(pa.array(numbers, mask=~is_bad))


def decode_each(data: pa.Array, kind: pa.DataType, decode: Callable[[bytes], object]) -> Outcome:
    """Decode record by record, for libraries that work so; `decode` may raise anything for a bad one."""
    values: list[object] = []
    bad: list[BadRecord] = []
    for row, each in enumerate(data.to_pylist()):
        try:
            values.append(None if each is None else decode(each))
        except ConnectionError:
            # The registry of schemas is away: that is not the record's fault.
            raise
        except Exception as error:
            values.append(None)
            bad.append(BadRecord(row, _reason(error)))
    try:
        return Outcome(pa.array(values, kind), bad)
    except _DOES_NOT_FIT:
        # A value that the library can hold, and Arrow's type cannot.
        for row, value in enumerate(values):
            try:
                pa.array([value], kind)
            except _DOES_NOT_FIT as error:
                values[row] = None
                bad.append(BadRecord(row, _reason(error)))
        return Outcome(pa.array(values, kind), sorted(bad))


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"

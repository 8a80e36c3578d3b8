"""The columns and fields that a table lacks for the rows of a job: they are added, never changed or removed.

A field that a schema has lost stays, null in new rows. A field whose type has changed is refused: only some
table formats widen types, and they convert the rows of old files at each read.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from pykafka_broker.spark.errors import SparkError
from pykafka_broker.system.named_tuple import NamedTuple


class Addition(NamedTuple):
    """A column or a field that a table lacks."""

    #: The name in ALTER TABLE: `value_data.items.element.price`.
    path: tuple[str, ...]
    #: The type in SQL.
    type: str

    @property
    def sql(self) -> str:
        """The argument of ADD COLUMN."""
        return f"{'.'.join(f'`{quoted(name)}`' for name in self.path)} {self.type}"


def additions(table: StructType, wanted: StructType, path: tuple[str, ...] = ()) -> Iterator[Addition]:
    """The columns and fields that the table lacks.

    Raises:
        SparkError: a type has changed.
    """
    for field in wanted.fields:
        inner = (*path, field.name)
        known = _field(table, field.name)
        if known is None:
            yield Addition(inner, sql_type(field.dataType))
        else:
            yield from _within(known.dataType, field.dataType, inner)


def _within(table: DataType, wanted: DataType, path: tuple[str, ...]) -> Iterator[Addition]:
    if isinstance(table, StructType) and isinstance(wanted, StructType):
        yield from additions(table, wanted, path)
    elif isinstance(table, ArrayType) and isinstance(wanted, ArrayType):
        yield from _within(table.elementType, wanted.elementType, (*path, "element"))
    elif isinstance(table, MapType) and isinstance(wanted, MapType):
        yield from _within(table.keyType, wanted.keyType, (*path, "key"))
        yield from _within(table.valueType, wanted.valueType, (*path, "value"))
    elif table != wanted:
        raise SparkError(
            f"{'.'.join(path)} is {table.simpleString()} in the table, and {wanted.simpleString()} in the "
            "schema of the job: give the job a schema that fits, or another table."
        )


def sql_type(kind: DataType) -> str:
    """A type as SQL writes it, whatever the names of its fields."""
    if isinstance(kind, StructType):
        fields = ", ".join(f"`{quoted(f.name)}`: {sql_type(f.dataType)}" for f in kind.fields)
        return f"STRUCT<{fields}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{sql_type(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{sql_type(kind.keyType)}, {sql_type(kind.valueType)}>"
    return kind.simpleString()


def quoted(name: str) -> str:
    """A name as it stands between backquotes."""
    return name.replace("`", "``")


def _field(table: StructType, name: str) -> StructField | None:
    """Tables do not tell apart names that differ in case only."""
    return next((field for field in table.fields if field.name.lower() == name.lower()), None)

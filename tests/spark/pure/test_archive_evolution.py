"""What a table lacks for the rows of a job."""

from __future__ import annotations

import pytest
from pyspark.sql.types import ArrayType, DataType, IntegerType, LongType, MapType, StringType, StructType

from pykafka_broker.spark.archive.evolution import Addition, additions, sql_type
from pykafka_broker.spark.errors import SparkError


def struct(**fields: DataType) -> StructType:
    found = StructType()
    for name, kind in fields.items():
        found = found.add(name, kind)
    return found


def test_columns_and_fields_at_any_depth_are_added() -> None:
    table = struct(
        value=struct(id=LongType()),
        items=ArrayType(struct(price=LongType())),
        tags=MapType(StringType(), struct(a=LongType())),
    )
    wanted = struct(
        value=struct(id=LongType(), note=StringType()),
        items=ArrayType(struct(price=LongType(), count=IntegerType())),
        tags=MapType(StringType(), struct(a=LongType(), b=LongType())),
        key=struct(id=LongType()),
    )
    assert list(additions(table, wanted)) == [
        Addition(("value", "note"), "string"),
        Addition(("items", "element", "count"), "int"),
        Addition(("tags", "value", "b"), "bigint"),
        Addition(("key",), "STRUCT<`id`: bigint>"),
    ]
    assert Addition(("items", "element", "count"), "int").sql == "`items`.`element`.`count` int"


def test_what_a_schema_has_lost_stays() -> None:
    assert list(additions(struct(a=LongType(), b=LongType()), struct(a=LongType()))) == []


def test_tables_do_not_tell_cases_apart() -> None:
    assert list(additions(struct(Id=LongType()), struct(id=LongType()))) == []


def test_another_type_is_refused() -> None:
    with pytest.raises(SparkError) as refused:
        list(additions(struct(value=struct(id=LongType())), struct(value=struct(id=StringType()))))
    assert str(refused.value) == (
        "value.id is bigint in the table, and string in the schema of the job: give the job a schema that "
        "fits, or another table."
    )


def test_names_are_quoted() -> None:
    kind = ArrayType(MapType(StringType(), struct(**{"a-b": LongType(), "c`d": LongType()})))
    assert sql_type(kind) == "ARRAY<MAP<string, STRUCT<`a-b`: bigint, `c``d`: bigint>>>"

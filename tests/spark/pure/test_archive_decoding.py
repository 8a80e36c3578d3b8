"""Values that become columns of a table, without a session."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pykafka_broker.arrow import Avro, Json, RegistryAvro
from pykafka_broker.arrow.core.values import BadRecord, Outcome
from pykafka_broker.spark.archive.decoding import Decoder, conformed, pinned, reasons
from pykafka_broker.spark.archive.formats import parse_format
from pykafka_broker.spark.errors import SparkError
from tests.arrow.registry import served_registry

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


def test_a_format_is_given_by_column_kind_and_schema() -> None:
    assert parse_format("value=json:a.json") == ("value", Json("a.json"))
    assert parse_format("key=avro:a.avsc") == ("key", Avro("a.avsc"))
    assert parse_format("value=registry:http://r:8081") == ("value", RegistryAvro("http://r:8081"))
    for text in ("value", "value=json", "value=xml:a", "json:a"):
        with pytest.raises(SparkError, match="is not COLUMN=KIND:SCHEMA"):
            parse_format(text)


def test_the_schema_of_a_file_goes_with_the_job_and_not_the_file(tmp_path: Path) -> None:
    avro, json_schema = tmp_path / "order.avsc", tmp_path / "order.json"
    avro.write_text(json.dumps(ORDER))
    json_schema.write_text('{"type": "object", "properties": {"id": {"type": "integer"}}}')
    assert pinned(Avro(avro), "orders", "value") == Avro(ORDER)
    assert pinned(Json(json_schema), "orders", "value") == Json(pa.struct([("id", pa.int64())]))


def test_the_newest_schema_of_a_registry_is_that_of_the_start() -> None:
    with served_registry() as registry:
        registry.add("orders-value", 1, ORDER)
        then = pinned(RegistryAvro(registry.url), "orders", "value")
        assert then == RegistryAvro(registry.url, schema_id=1)
        fields = [*ORDER["fields"], {"name": "note", "type": "string", "default": ""}]
        registry.add("orders-value", 2, {**ORDER, "fields": fields})
        assert then.open("orders", "value").type == pa.struct([("id", pa.int64())])


def test_a_decoder_adds_the_values_and_the_reasons() -> None:
    decoder = Decoder.of({"value": Avro(ORDER)}, ["orders", "more-orders"])
    kind = StructType([StructField("id", LongType())])
    assert decoder.fields == [StructField("value_data", kind), StructField("value_error", StringType())]


def test_topics_of_several_schemas_and_other_columns_are_refused() -> None:
    with served_registry() as registry:
        registry.add("a-value", 1, ORDER)
        registry.add("b-value", 2, {**ORDER, "fields": [{"name": "id", "type": "string"}]})
        with pytest.raises(SparkError, match="The value has another schema in topic 'b' than in 'a'"):
            Decoder.of({"value": RegistryAvro(registry.url)}, ["a", "b"])
    with pytest.raises(SparkError, match="'headers' cannot be decoded: key and value can"):
        Decoder.of({"headers": Avro(ORDER)}, ["a"])


def test_a_type_that_spark_does_not_have_is_refused() -> None:
    with pytest.raises(SparkError, match="The value cannot be a column of Spark"):
        Decoder.of({"value": Json(pa.time64("us"))}, ["a"])


def test_reasons_stand_at_their_rows() -> None:
    outcome = Outcome(pa.array([1, None, 3]), [BadRecord(1, "no number")])
    assert reasons(outcome).to_pylist() == [None, "no number", None]


def test_fields_that_a_schema_has_lost_are_null() -> None:
    values = pa.array([{"id": 1, "lines": [{"price": 2}]}, None])
    kind = pa.struct(
        [
            ("note", pa.string()),
            ("id", pa.int64()),
            ("lines", pa.list_(pa.struct([("price", pa.int64()), ("count", pa.int32())]))),
        ]
    )
    assert conformed(values, kind).to_pylist() == [
        {"note": None, "id": 1, "lines": [{"price": 2, "count": None}]},
        None,
    ]
    assert conformed(pa.array([1], pa.timestamp("ms")), pa.timestamp("us")).type == pa.timestamp("us")

"""Keys and values become columns of values; bad ones are an error, null, or kept with the reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.arrow.avro_values import Avro, RegistryAvro
from pykafka_broker.arrow.core.assembly import Assembly
from pykafka_broker.arrow.core.columns import schema_of
from pykafka_broker.arrow.core.limits import Limits
from pykafka_broker.arrow.core.values import Format, decoded_schema, opened
from pykafka_broker.arrow.json_values import Json
from pykafka_broker.arrow.protobuf_values import Protobuf
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from tests.arrow.batches import batch_of, stored
from tests.arrow.registry import ServedRegistry, served_registry

AMOUNT = pa.struct([("amount", pa.int64())])
GOOD, BAD, TOMBSTONE = b'{"amount": 1}', b'{"amount": ', None


def rows(values: list[bytes | None], encoding: Format, first_offset: int = 0) -> list[dict[str, Any]]:
    """The values of a batch of orders-3 from offset 40 on, decoded, and what is kept of the bad ones."""
    schema = schema_of(["value"])
    assembly = Assembly("orders", schema, Limits(), opened({"value": encoding}, "orders", schema))
    batches = stored(batch_of(values, base_offset=40), partition=3, first=first_offset)
    table = pa.Table.from_batches(assembly.record_batches(batches), assembly.result_schema)
    table.validate(full=True)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def decoded(values: list[bytes | None], encoding: Format) -> list[Any]:
    """The decoded values of good records."""
    return [row["value"] for row in rows(values, encoding)]


# -- bad records
# --------------


def test_a_bad_record_is_an_error_with_its_partition_and_offset() -> None:
    with pytest.raises(
        KafkaError, match="Error deserializing value for partition orders-3 at offset 42: JSON"
    ) as error:
        rows([GOOD, TOMBSTONE, BAD], Json(AMOUNT))
    assert error.value.code is ErrorCode.INVALID_RECORD


def test_the_offset_of_a_bad_record_is_its_own_where_only_some_offsets_are_wanted() -> None:
    with pytest.raises(KafkaError, match="orders-3 at offset 43"):
        rows([BAD, BAD, GOOD, BAD], Json(AMOUNT), first_offset=42)


def test_a_bad_record_may_be_null() -> None:
    assert rows([GOOD, BAD, TOMBSTONE], Json(AMOUNT, on_error="null")) == [
        {"value": {"amount": 1}},
        {"value": None},
        {"value": None},
    ]


def test_a_bad_record_may_be_kept_with_the_reason() -> None:
    good, bad, tombstone = rows([GOOD, BAD, TOMBSTONE], Json(AMOUNT, on_error="keep"))

    assert good == {"value": {"amount": 1}, "value_error": None}
    assert (bad["value"], bad["value_error"]["data"]) == (None, BAD)
    assert "JSON parse error" in bad["value_error"]["reason"]
    assert "row" not in bad["value_error"]["reason"]
    assert tombstone == {"value": None, "value_error": None}


def test_only_keys_and_values_that_are_read_can_be_decoded() -> None:
    with pytest.raises(ValueError, match="'key' cannot be decoded"):
        opened({"key": Json(AMOUNT)}, "orders", schema_of(["value"]))
    with pytest.raises(ValueError, match="'drop' is none of error, null, keep"):
        opened({"value": Json(AMOUNT, on_error="drop")}, "orders", schema_of(["value"]))  # type: ignore[arg-type]


def test_the_schema_is_known_before_a_record_is() -> None:
    schema = schema_of(["value", "offset"])
    columns = opened({"value": Json(AMOUNT, on_error="keep")}, "orders", schema)

    assert decoded_schema(schema, columns).names == ["value", "offset", "value_error"]
    assert decoded_schema(schema, columns).field("value").type == AMOUNT


# -- JSON
# -------


@given(
    st.lists(
        st.one_of(st.sampled_from([GOOD, BAD, TOMBSTONE, b"", b"{}", b"null", b"\xff", b'"a"', b"1 2"])),
        max_size=40,
    )
)
def test_each_text_is_judged_by_itself(texts: list[bytes | None]) -> None:
    expected = {GOOD: {"amount": 1}, b"{}": {"amount": None}}
    are_good = {GOOD, b"{}", b"null", TOMBSTONE}

    found = rows(texts, Json(AMOUNT, on_error="keep")) if texts else []

    assert [row["value"] for row in found] == [expected.get(text or b"") for text in texts]
    assert [row["value_error"] is None for row in found] == [text in are_good for text in texts]


@pytest.mark.parametrize(
    "text",
    [
        b"{} {}",
        b"{}, {}",
        b"{}\n{}",
        b"",
        b" ",
        b"[]",
        b"7",
        b'{"amount": "x"}',
        b'{"amount": 1.5}',
        b'{"amount": 1}}',
    ],
)
def test_what_is_not_one_value_of_the_type_is_bad(text: bytes) -> None:
    [row] = rows([text], Json(AMOUNT, on_error="keep"))

    assert row["value_error"]["data"] == text


def test_texts_that_are_not_utf_8_are_bad() -> None:
    kind = pa.struct([("name", pa.string())])
    values = [
        row["value"]
        for row in rows([b'{"name": "\xff"}', b'{"name": "\xc3\xa9"}'], Json(kind, on_error="null"))
    ]

    assert values == [None, {"name": "é"}]


def test_texts_may_have_line_ends_and_other_fields() -> None:
    assert decoded([b'{\n "other": [1],\n "amount": 2\n}\n', GOOD], Json(AMOUNT)) == [
        {"amount": 2},
        {"amount": 1},
    ]


def test_a_json_schema_file_gives_the_type(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "string", "format": "uuid"},
            "amount": {"type": ["null", "number"]},
            "count": {"type": "integer", "minimum": 0},
            "paid": {"type": "boolean"},
            "state": {"enum": ["new", "old"]},
            "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
            "first": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/item"}]},
        },
        "$defs": {"item": {"type": "object", "properties": {"sku": {"type": "string"}}}},
    }
    path = tmp_path / "order.schema.json"
    path.write_text(json.dumps(schema))
    order = {
        "id": "a",
        "amount": 1.5,
        "count": 2,
        "paid": True,
        "state": "new",
        "items": [{"sku": "x"}, {"sku": None}],
        "first": None,
    }

    assert decoded([json.dumps(order).encode()], Json(path)) == [order]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": ["string", "integer"]}, "several types"),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "several types"),
        ({"type": "object"}, "has no Arrow type"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, "contains itself"),
        ({"$ref": "#/missing"}, "which is not there"),
        ({"$ref": "other.json"}, "another file"),
        ({"type": "object", "properties": {"a": True}}, "#/properties/a"),
    ],
)
def test_a_json_schema_without_an_arrow_type_is_refused(tmp_path: Path, schema: Any, reason: str) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(schema))
    with pytest.raises(ValueError, match=reason):
        Json(path).open("orders", "value")


# -- Avro
# -------

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "amount", "type": ["null", "long"], "default": None},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "OLD"]}},
        {"name": "tags", "type": {"type": "map", "values": "int"}},
        {
            "name": "items",
            "type": {
                "type": "array",
                "items": {"type": "record", "name": "Item", "fields": [{"name": "sku", "type": "string"}]},
            },
        },
        {"name": "best", "type": ["null", "Item"]},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "alarm", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "digest", "type": {"type": "fixed", "name": "Digest", "size": 2}},
    ],
}
VALUE = {
    "id": "6d2b6f1c-5c0e-4a4e-9f0c-0d6f1c5c0e4a",
    "amount": 7,
    "price": Decimal("12.50"),
    "state": "OLD",
    "tags": {"a": 1},
    "items": [{"sku": "x"}],
    "best": {"sku": "y"},
    "day": date(2026, 1, 31),
    "at": datetime(2026, 1, 31, 12, tzinfo=UTC),
    "alarm": time(7, 30),
    "digest": b"\x01\x02",
}


def avro(schema: Any, value: Any) -> bytes:
    stream = BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


def test_avro_values_of_a_schema_file_have_their_types(tmp_path: Path) -> None:
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps(ORDER))

    assert decoded([avro(ORDER, VALUE), None], Avro(path)) == [{**VALUE, "tags": [("a", 1)]}, None]


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"\0", lambda data: b""])
def test_avro_bytes_that_are_no_value_are_bad(change: Callable[[bytes], bytes]) -> None:
    [row] = rows([change(avro(ORDER, VALUE))], Avro(ORDER, on_error="keep"))

    assert row["value"] is None
    assert row["value_error"]["reason"]


def test_avro_bytes_that_end_too_early_are_bad_with_a_reason() -> None:
    [row] = rows([b""], Avro(ORDER, on_error="keep"))

    assert row["value_error"]["reason"] == "ValueError: the value does not end within its 0 bytes"


@pytest.mark.parametrize(
    ("written", "schema"),
    [("long", {"type": "int"}), ("bytes", {"type": "bytes", "logicalType": "decimal", "precision": 4})],
)
def test_an_avro_value_that_its_type_cannot_hold_is_bad(written: str, schema: Any) -> None:
    data = avro(written, 2**40 if written == "long" else (2**40).to_bytes(6, "big"))
    encoding = Avro(schema, on_error="keep")

    [good, bad] = rows([None, data], encoding)

    assert good == {"value": None, "value_error": None}
    assert (bad["value"], bad["value_error"]["data"]) == (None, data)
    with pytest.raises(KafkaError, match="for partition orders-3 at offset 41: ArrowInvalid"):
        rows([None, data], Avro(schema))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (
            {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]},
            "contains itself",
        ),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["int", "string"]}]},
            r"value.a .*union",
        ),
        ({"type": "record"}, "no Avro schema"),
        ({"type": "wrong"}, "no Avro schema"),
    ],
)
def test_an_avro_schema_without_an_arrow_type_is_refused(schema: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Avro(schema).open("orders", "value")


# -- a registry
# -------------

V1 = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
V2 = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string", "default": "none"}],
}


@pytest.fixture
def registry() -> Iterator[ServedRegistry]:
    with served_registry() as served:
        yield served


def framed(number: int, schema: Any, value: Any) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + avro(schema, value)


def test_each_record_is_read_by_the_schema_that_it_names_and_each_schema_is_fetched_once(
    registry: ServedRegistry,
) -> None:
    registry.add("orders-value", 7, V1)
    registry.add("orders-value", 9, V2)
    values: list[bytes | None] = [framed(7, V1, {"a": 1}), framed(9, V2, {"a": 2, "b": "x"}), None]

    assert (
        decoded(values * 50, RegistryAvro(registry.url))
        == [{"a": 1, "b": "none"}, {"a": 2, "b": "x"}, None] * 50
    )
    assert sorted(registry.asked) == [
        "/schemas/ids/7",
        "/schemas/ids/9",
        "/subjects/orders-value/versions/latest",
    ]


def test_the_columns_may_be_those_of_another_schema_or_subject(registry: ServedRegistry) -> None:
    registry.add("orders-value", 9, V2)
    registry.add("other", 10, V1)
    data: list[bytes | None] = [framed(9, V2, {"a": 2, "b": "x"})]

    only_b = {"type": "record", "name": "R", "fields": [V2["fields"][1]]}
    assert decoded(data, RegistryAvro(registry.url, schema=only_b)) == [{"b": "x"}]
    found = rows(data, RegistryAvro(registry.url, subject="other", on_error="keep"))
    assert "SchemaResolutionError" in found[0]["value_error"]["reason"]


def test_a_schema_may_refer_to_others(registry: ServedRegistry) -> None:
    registry.add("item", 1, ORDER["fields"][5]["type"]["items"])
    order = {"type": "record", "name": "O", "fields": [{"name": "item", "type": "Item"}]}
    registry.add("orders-value", 2, order, references=[("item", 1)])
    whole = {
        "type": "record",
        "name": "O",
        "fields": [{"name": "item", "type": ORDER["fields"][5]["type"]["items"]}],
    }

    assert decoded([framed(2, whole, {"item": {"sku": "x"}})], RegistryAvro(registry.url)) == [
        {"item": {"sku": "x"}}
    ]


def test_records_without_a_known_schema_are_bad(registry: ServedRegistry) -> None:
    registry.add("orders-value", 7, V1)
    registry.add("proto", 8, 'syntax = "proto3";', kind="PROTOBUF")
    values: list[bytes | None] = [
        b"",
        b"\0\0\0",
        b"\1\0\0\0\7\2",
        framed(5, V1, {"a": 1}),
        framed(8, V1, {"a": 1}),
    ]

    reasons = [
        row["value_error"]["reason"] for row in rows(values, RegistryAvro(registry.url, on_error="keep"))
    ]

    assert reasons[:3] == ["ValueError: does not begin with 0 and the id of a schema"] * 3
    assert "schema 5 is not in the registry" in reasons[3]
    assert "is of PROTOBUF, not Avro" in reasons[4]


def test_a_registry_that_is_away_or_refuses_is_no_fault_of_the_record(registry: ServedRegistry) -> None:
    registry.add("orders-value", 7, V1)
    encoding = RegistryAvro(registry.url.replace("//", "//user:secret@"), on_error="null")
    assert decoded([framed(7, V1, {"a": 1})], encoding) == [{"a": 1}]
    assert registry.authorizations == {"Basic dXNlcjpzZWNyZXQ="}
    assert "secret" not in repr(RegistryAvro("http://r", headers={"Authorization": "secret"}))

    registry.status = 503
    with pytest.raises(ConnectionError, match="answers 503"):
        decoded([framed(8, V1, {"a": 1})], RegistryAvro(registry.url, schema=V1, on_error="null"))
    registry.status, registry.missing_bytes = 200, 1
    with pytest.raises(ConnectionError, match="does not answer: IncompleteRead"):
        decoded([framed(7, V1, {"a": 1})], RegistryAvro(registry.url, schema=V1, on_error="null"))
    with pytest.raises(ConnectionError, match="does not answer"):
        RegistryAvro("http://127.0.0.1:1").open("orders", "value")
    with pytest.raises(ValueError, match="is no URL"):
        RegistryAvro("127.0.0.1:8081").open("orders", "value")


# -- Protobuf
# -----------


def order_proto() -> descriptor_pb2.FileDescriptorSet:
    """What protoc makes of a file with `Order`, and with `Node`, which contains itself."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="orders.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    state = file.enum_type.add(name="State")
    state.value.add(name="NEW", number=0)
    state.value.add(name="OLD", number=1)
    item = file.message_type.add(name="Item")
    item.field.add(name="sku", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    order = file.message_type.add(name="Order")
    entry = order.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=field.TYPE_INT32, label=field.LABEL_OPTIONAL)
    one, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    order.field.add(name="id", number=1, type=field.TYPE_UINT64, label=one)
    order.field.add(name="data", number=2, type=field.TYPE_BYTES, label=one)
    order.field.add(name="state", number=3, type=field.TYPE_ENUM, type_name=".shop.State", label=one)
    order.field.add(name="item", number=4, type=field.TYPE_MESSAGE, type_name=".shop.Item", label=one)
    order.field.add(name="items", number=5, type=field.TYPE_MESSAGE, type_name=".shop.Item", label=many)
    order.field.add(
        name="tags", number=6, type=field.TYPE_MESSAGE, type_name=".shop.Order.TagsEntry", label=many
    )
    order.field.add(
        name="at", number=7, type=field.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp", label=one
    )
    order.oneof_decl.add(name="_note")
    order.field.add(
        name="note", number=8, type=field.TYPE_STRING, label=one, oneof_index=0, proto3_optional=True
    )
    node = file.message_type.add(name="Node")
    node.field.add(name="next", number=1, type=field.TYPE_MESSAGE, type_name=".shop.Node", label=one)
    timestamp = descriptor_pb2.FileDescriptorProto()
    from google.protobuf import timestamp_pb2

    timestamp_pb2.DESCRIPTOR.CopyToProto(timestamp)
    return descriptor_pb2.FileDescriptorSet(file=[timestamp, file])


@pytest.fixture
def descriptors(tmp_path: Path) -> Path:
    path = tmp_path / "orders.desc"
    path.write_bytes(order_proto().SerializeToString())
    return path


def message(values: Mapping[str, Any]) -> bytes:
    pool = descriptor_pool.DescriptorPool()
    for each in order_proto().file:
        pool.Add(each)
    built = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))(**values)
    data: bytes = built.SerializeToString()
    return data


def test_protobuf_messages_of_a_descriptor_set_have_their_types(descriptors: Path) -> None:
    full = message(
        {
            "id": 2**63,
            "data": b"\xff",
            "state": 1,
            "item": {"sku": "x"},
            "items": [{"sku": "y"}, {}],
            "tags": {"a": 1},
            "at": {"seconds": 1_769_860_800, "nanos": 5_000},
            "note": "",
        }
    )

    assert decoded([full, b"", message({"state": 7})], Protobuf(descriptors, "shop.Order")) == [
        {
            "id": 2**63,
            "data": b"\xff",
            "state": "OLD",
            "item": {"sku": "x"},
            "items": [{"sku": "y"}, {"sku": ""}],
            "tags": [("a", 1)],
            "at": datetime(2026, 1, 31, 12, 0, 0, 5, tzinfo=UTC),
            "note": "",
        },
        nothing := {
            "id": 0,
            "data": b"",
            "state": "NEW",
            "item": None,
            "items": [],
            "tags": [],
            "at": None,
            "note": None,
        },
        {**nothing, "state": "7"},
    ]


def test_a_time_that_arrow_cannot_hold_is_bad(descriptors: Path) -> None:
    times = [message({"at": {"seconds": seconds}}) for seconds in (1, 253_402_300_799)]

    good, bad = rows([times[0], b"\x0a\xff", times[1]], Protobuf(descriptors, "shop.Order", on_error="keep"))[
        ::2
    ]

    assert (good["value"]["at"], good["value_error"]) == (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None)
    assert bad["value"] is None
    assert bad["value_error"] == {
        "reason": "OverflowError: Python int too large to convert to C long",
        "data": times[1],
    }


def test_bytes_that_are_no_message_are_bad(descriptors: Path) -> None:
    [row] = rows([b"\x0a\xff"], Protobuf(descriptors, "shop.Order", on_error="keep"))

    assert "DecodeError" in row["value_error"]["reason"]


def test_a_descriptor_set_without_the_message_is_refused(descriptors: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no message shop\.Ordre"):
        Protobuf(descriptors, "shop.Ordre").open("orders", "value")
    with pytest.raises(ValueError, match="contains itself"):
        Protobuf(descriptors, "shop.Node").open("orders", "value")
    incomplete = tmp_path / "incomplete.desc"
    incomplete.write_bytes(descriptor_pb2.FileDescriptorSet(file=order_proto().file[1:]).SerializeToString())
    with pytest.raises(ValueError, match=r"no complete set of descriptors"):
        Protobuf(incomplete, "shop.Order").open("orders", "value")

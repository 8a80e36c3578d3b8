"""What a declared message class is like to use."""

from __future__ import annotations

import subprocess
import sys
import types
import typing
from typing import Any

import pytest

from pykafka_broker.protocol import messages as package
from pykafka_broker.protocol.fields import REQUIRED, Field, schema_of, version_range
from pykafka_broker.protocol.messages import API_NAMES, module_name, request_type, response_type
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.protocol.messages.records.metadata import TopicRecord
from pykafka_broker.protocol.schema import array, i16, i32, message, string
from pykafka_broker.testing.messages import INTEGERS, declared


@message()
class Point:
    x: int = i32()
    y: int = i32(default=7)
    tags: list[str] = array(string(), default=[])


def test_fields_without_a_default_must_be_given_and_only_by_keyword() -> None:
    assert (Point(x=1).x, Point(x=1).y) == (1, 7)
    with pytest.raises(TypeError, match="'x'"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        Point(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'z'"):
        Point(x=1, z=2)  # type: ignore[call-arg]


def test_every_object_has_a_list_of_its_own() -> None:
    first, second = Point(x=1), Point(x=1)
    first.tags.append("only here")

    assert second.tags == []
    assert Point(x=1).tags == []


def test_messages_are_values_but_mutable_ones() -> None:
    point = Point(x=1, tags=["a"])

    assert point == Point(x=1, y=7, tags=["a"])
    assert point != Point(x=2, tags=["a"])
    assert point.__eq__((1, 7, ["a"])) is NotImplemented
    assert repr(point) == "Point(x=1, y=7, tags=['a'])"
    with pytest.raises(TypeError, match="unhashable"):
        hash(point)


def test_a_misspelt_field_cannot_be_set() -> None:
    point = Point(x=1)
    with pytest.raises(AttributeError):
        point.z = 2  # type: ignore[attr-defined]


def test_a_class_may_have_methods_of_its_own() -> None:
    @message()
    class Range:
        """From here to there."""

        first: int = i16()
        last: int = i16()

        def length(self) -> int:
            return self.last - self.first

    assert Range(first=2, last=5).length() == 3
    assert Range.__doc__ == "From here to there."


def test_the_schema_says_what_was_declared() -> None:
    schema = schema_of(MetadataRequest)

    assert (schema.name, schema.api_key) == ("MetadataRequest", 3)
    assert (schema.versions, schema.flexible) == (range(14), range(9, 2**15))
    assert [field.name for field in schema.fields][:2] == ["topics", "allow_auto_topic_creation"]
    assert schema_of(MetadataRequestTopic(name="t")).versions == range(0)
    assert getattr(TopicRecord, "api_key", None) == schema_of(TopicRecord).api_key == 2


@pytest.mark.parametrize(
    ("text", "versions"),
    [("3", range(3, 4)), ("3-5", range(3, 6)), ("3+", range(3, 2**15)), ("none", range(0))],
)
def test_a_version_range_is_written_as_in_kafka(text: str, versions: range) -> None:
    assert version_range(text) == versions


def test_a_version_that_kafka_has_not_finished_is_declared_but_not_served() -> None:
    init_producer_id = schema_of(request_type(22))

    assert (init_producer_id.versions, init_producer_id.served_versions) == (range(7), range(6))
    assert schema_of(MetadataRequest).served_versions == schema_of(MetadataRequest).versions


def test_every_api_is_found_by_its_key() -> None:
    for api_key, name in API_NAMES.items():
        for cls, suffix in ((request_type(api_key), "Request"), (response_type(api_key), "Response")):
            assert cls.__name__ == name + suffix
            assert schema_of(cls).api_key == api_key
    assert module_name(23) == "offset_for_leader_epoch"
    with pytest.raises(KeyError):
        request_type(4)


def test_a_request_and_its_response_have_the_same_versions() -> None:
    for api_key in API_NAMES:
        request, response = schema_of(request_type(api_key)), schema_of(response_type(api_key))
        assert (request.versions, request.flexible) == (response.versions, response.flexible)


def test_looking_up_one_api_imports_no_other() -> None:
    program = f"""
import sys
from {package.__name__} import request_type
request_type(12)
print([name for name in sys.modules if name.startswith("{package.__name__}.")])
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == str([package.__name__ + ".heartbeat"])


def python_type(field: Field) -> Any:
    """The annotation that suits a declared field."""
    if field.kind == "records":
        return Any
    plain: Any
    if field.kind == "array":
        assert field.element is not None
        plain = types.GenericAlias(list, (python_type(field.element),))
    elif field.kind == "struct":
        plain = field.struct
    else:
        scalars = {"f64": float, "boolean": bool, "string": str, "uuid": bytes, "binary": bytes}
        plain = int if field.kind in INTEGERS else scalars[field.kind]
    return plain | None if field.nullable or field.default is None else plain


def test_annotations_say_what_the_declarations_say() -> None:
    for cls in declared():
        annotations = typing.get_type_hints(cls)
        for field in schema_of(cls).fields:
            assert annotations[field.name] == python_type(field), f"{cls.__name__}.{field.name}"


def test_a_field_that_some_version_lacks_has_a_default() -> None:
    for cls in declared():
        for field in schema_of(cls).fields:
            if field.tag is not None or field.versions != version_range("0+"):
                assert field.default is not REQUIRED, f"{cls.__name__}.{field.name}"

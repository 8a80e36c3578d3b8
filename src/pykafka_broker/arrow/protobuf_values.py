"""Protobuf values, of a message in a set of descriptors, as `protoc` writes it:

    protoc --include_imports --descriptor_set_out=orders.desc orders.proto

Messages are structs, null where they are not set; so are fields with presence (optional, oneof, of proto2).
Other fields have their defaults. Enums are strings, the number where it has no name; maps are maps;
`google.protobuf.Timestamp` is a timestamp. A message that contains itself has no Arrow type. Decoded by
Google's library, record by record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from pykafka_broker.arrow.core.values import OnError, Outcome, decode_each
from pykafka_broker.log.disk.files import OsFileSystem

TIMESTAMP = "google.protobuf.Timestamp"

#: Converts a value of a field.
_Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Protobuf:
    """Values are messages of this full name, such as `shop.Order`."""

    descriptor_set: str | PathLike[str]
    message: str
    on_error: OnError = "error"

    def open(self, topic: str, column: str) -> ProtobufDecoder:
        """The decoder.

        Raises:
            ImportError: protobuf is not installed.
            OSError: the file cannot be read.
            ValueError: it is no set of descriptors, lacks the message, or that has no Arrow type.
        """
        return ProtobufDecoder(_message_class(fspath(self.descriptor_set), self.message))


class ProtobufDecoder:
    """Decodes the messages of a column."""

    __slots__ = ("_class", "_convert", "type")

    def __init__(self, message_class: Any) -> None:
        self._class = message_class
        self.type, self._convert = _message(message_class.DESCRIPTOR, ())

    def decode(self, data: pa.Array) -> Outcome:
        return decode_each(data, self.type, self._decode_one)

    def _decode_one(self, data: bytes) -> object:
        return self._convert(self._class.FromString(data))


def _message_class(path: str, name: str) -> Any:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory
    except ModuleNotFoundError:
        raise ImportError("Protobuf needs protobuf: python3 -m pip install protobuf") from None
    data = OsFileSystem().read_file(path)
    pool = descriptor_pool.DescriptorPool()
    try:
        for each in descriptor_pb2.FileDescriptorSet.FromString(data).file:
            pool.Add(each)
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except (message.DecodeError, TypeError) as error:
        raise ValueError(f"{path} is no complete set of descriptors: {error}") from None
    except KeyError:
        raise ValueError(f"{path} has no message {name}") from None


def _message(descriptor: Any, inside: tuple[str, ...]) -> tuple[pa.DataType, _Convert]:
    """The type of a message, and the function that makes a row of one."""
    if descriptor.full_name == TIMESTAMP:
        return pa.timestamp("ns", tz="UTC"), lambda value: value.seconds * 1_000_000_000 + value.nanos
    if descriptor.full_name in inside:
        raise ValueError(f"the message {descriptor.full_name} contains itself")
    fields, converts = [], []
    for each in descriptor.fields:
        kind, convert = _field(each, (*inside, descriptor.full_name))
        fields.append(pa.field(each.name, kind))
        converts.append((each.name, each.has_presence, convert))

    def row(value: Any) -> dict[str, Any]:
        return {
            name: None if has_presence and not value.HasField(name) else convert(getattr(value, name))
            for name, has_presence, convert in converts
        }

    return pa.struct(fields), row


def _field(field: Any, inside: tuple[str, ...]) -> tuple[pa.DataType, _Convert]:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        keys, values = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        key_type, _ = _one(keys, inside)
        value_type, convert = _one(values, inside)
        return pa.map_(key_type, value_type), lambda found: [(key, convert(found[key])) for key in found]
    kind, convert = _one(field, inside)
    # FieldDescriptor.is_repeated is of protobuf 6.31, which deprecates the label.
    if field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED:
        return pa.list_(kind), lambda found: [convert(each) for each in found]
    return kind, convert


def _one(field: Any, inside: tuple[str, ...]) -> tuple[pa.DataType, _Convert]:
    """The type of a field, or of each of its values."""
    if field.message_type is not None:
        return _message(field.message_type, inside)
    if field.enum_type is not None:
        names: Mapping[int, Any] = field.enum_type.values_by_number
        return pa.string(), lambda number: names[number].name if number in names else str(number)
    if field.type == field.TYPE_BYTES:
        return pa.binary(), _same
    return _SCALARS[field.cpp_type], _same


def _same(value: Any) -> Any:
    return value


#: By the numbers of `FieldDescriptor.CPPTYPE_*`.
_SCALARS = {
    1: pa.int32(),
    2: pa.int64(),
    3: pa.uint32(),
    4: pa.uint64(),
    5: pa.float64(),
    6: pa.float32(),
    7: pa.bool_(),
    9: pa.string(),
}

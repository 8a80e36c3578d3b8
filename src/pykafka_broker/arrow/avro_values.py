"""Avro values: of one schema, from a file; or each of the schema that its header names in a registry.

    5 bytes of the header: 0, the schema's id (i32); then the value in Avro's binary encoding

Ids may differ from record to record. Each schema is fetched once, and its records are resolved to one
schema, that of the column. Decoded by fastavro, record by record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from os import PathLike, fspath
from typing import Any, Union

import pyarrow as pa

from pykafka_broker.arrow.core.avro_types import arrow_type, without_uuids
from pykafka_broker.arrow.core.values import OnError, Outcome, decode_each
from pykafka_broker.arrow.registry import Registry, RegistrySchema
from pykafka_broker.arrow.schema_file import read_schema

#: A schema: the path of a file with it (.avsc), or the content of one.
AvroSchema = Union[str, PathLike[str], Mapping[str, Any]]

_MAGIC = 0
_HEADER_BYTES = 5


@dataclass(frozen=True, slots=True)
class Avro:
    """Values are of this schema, without a header."""

    schema: AvroSchema
    on_error: OnError = "error"

    def open(self, topic: str, column: str) -> PlainAvroDecoder:
        """The decoder.

        Raises:
            ImportError: fastavro is not installed.
            OSError: the file cannot be read.
            ValueError: it is no Avro schema, or one without an Arrow type.
        """
        return PlainAvroDecoder(_parsed(_loaded(self.schema), {}))


@dataclass(frozen=True, slots=True)
class RegistryAvro:
    """Values begin with a header that names their schema in a registry, Confluent's or one that answers
    like it.

    The columns are those of `schema`; without one, of the schema with the id `schema_id`; without that, of
    the newest schema of `subject`, which is `<topic>-value` (or `-key`) unless it is given. `headers` are
    sent with each request, as for authorization; a URL may have user and password in it.
    """

    url: str
    schema: AvroSchema | None = None
    subject: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = 30.0
    on_error: OnError = "error"
    schema_id: int | None = None

    def pinned(self, topic: str, column: str) -> RegistryAvro:
        """The same, fixed to the schema that its columns have now.

        Raises:
            ConnectionError: the registry does not answer.
            OSError: the file of the schema cannot be read.
            ValueError: the registry has no such subject, or does not tell the id of its schema.
        """
        if self.schema is not None:
            return replace(self, schema=_loaded(self.schema))
        if self.schema_id is not None:
            return self
        found = Registry(self.url, self.headers, self.timeout_s).newest(self.subject or f"{topic}-{column}")
        if found.number is None:
            raise ValueError(f"the registry {self.url} does not tell the id of schema {found.name}")
        return replace(self, schema_id=found.number)

    def open(self, topic: str, column: str) -> RegistryAvroDecoder:
        """The decoder; asks the registry.

        Raises:
            ImportError: fastavro is not installed.
            ConnectionError: the registry does not answer.
            ValueError: the registry has no such subject, or the schema has no Arrow type.
        """
        registry = Registry(self.url, self.headers, self.timeout_s)
        if self.schema is not None:
            reader = _parsed(_loaded(self.schema), {})
        elif self.schema_id is not None:
            reader = _registered(registry, registry.schema(self.schema_id))
        else:
            reader = _registered(registry, registry.newest(self.subject or f"{topic}-{column}"))
        return RegistryAvroDecoder(registry, reader)


class PlainAvroDecoder:
    """Decodes values of one schema."""

    __slots__ = ("_read", "type")

    def __init__(self, schema: _Parsed) -> None:
        self.type: pa.DataType = schema.type
        self._read = _reader(schema, None)

    def decode(self, data: pa.Array) -> Outcome:
        return decode_each(data, self.type, self._read)


class RegistryAvroDecoder:
    """Decodes values of the schemas that they name."""

    __slots__ = ("_readers", "_registry", "_schema", "type")

    def __init__(self, registry: Registry, schema: _Parsed) -> None:
        self._registry = registry
        self._schema = schema
        self.type: pa.DataType = schema.type
        #: Schema id -> the reader, or the error if the schema cannot be used.
        self._readers: dict[int, Callable[[bytes], object] | ValueError] = {}

    def decode(self, data: pa.Array) -> Outcome:
        return decode_each(data, self.type, self._decode_one)

    def _decode_one(self, data: bytes) -> object:
        if len(data) < _HEADER_BYTES or data[0] != _MAGIC:
            raise ValueError("does not begin with 0 and the id of a schema")
        number = int.from_bytes(data[1:_HEADER_BYTES], "big")
        reader = self._readers.get(number)
        if reader is None:
            reader = self._readers[number] = self._reader_of(number)
        if isinstance(reader, ValueError):
            raise reader
        return reader(data[_HEADER_BYTES:])

    def _reader_of(self, number: int) -> Callable[[bytes], object] | ValueError:
        try:
            return _reader(_registered(self._registry, self._registry.schema(number)), self._schema)
        except ValueError as error:
            return error


# -- schemas
# ----------


class _Parsed:
    """A schema as fastavro takes it, and the type of its values."""

    __slots__ = ("_type", "avro", "expanded")

    def __init__(self, avro: Any, expanded: Any) -> None:
        self.avro = avro
        self.expanded = expanded

    @property
    def type(self) -> pa.DataType:
        """Arrow's type; ValueError if there is none."""
        return arrow_type(self.expanded)


def _loaded(schema: AvroSchema) -> Any:
    if isinstance(schema, Mapping):
        return schema
    return read_schema(fspath(schema))


def _registered(registry: Registry, schema: RegistrySchema) -> _Parsed:
    """A schema of the registry, with those that it refers to.

    Raises:
        ValueError: it is no Avro schema.
    """
    named: dict[str, Any] = {}
    for each in registry.references(schema):
        _parsed(_text(each), named)
    return _parsed(_text(schema), named)


def _text(schema: RegistrySchema) -> Any:
    if schema.kind != "AVRO":
        raise ValueError(f"schema {schema.name} of the registry is of {schema.kind}, not Avro")
    # A primitive type may stand there by its bare name.
    return json.loads(schema.text) if schema.text[:1] in '{["' else schema.text


def _parsed(schema: Any, named: dict[str, Any]) -> _Parsed:
    fastavro = _fastavro()
    plain = without_uuids(schema)
    try:
        expanded = fastavro.schema.parse_schema(plain, dict(named), expand=True, _write_hint=False)
        return _Parsed(fastavro.schema.parse_schema(plain, named), expanded)
    except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType, KeyError, TypeError) as error:
        raise ValueError(f"no Avro schema: {type(error).__name__}: {error}") from None


def _reader(writer: _Parsed, reader: _Parsed | None) -> Callable[[bytes], object]:
    """Reads a value that was written with one schema as one of another schema."""
    read = _fastavro().schemaless_reader
    written, wanted = writer.avro, reader.avro if reader is not None and reader.avro != writer.avro else None

    def read_one(data: bytes) -> object:
        stream = BytesIO(data)
        try:
            value = read(stream, written, wanted)
        except EOFError:
            raise ValueError(f"the value does not end within its {len(data)} bytes") from None
        left = len(data) - stream.tell()
        if left:
            raise ValueError(f"{left} bytes follow the value")
        return value

    return read_one


def _fastavro() -> Any:
    try:
        import fastavro
        import fastavro.schema
    except ModuleNotFoundError:
        raise ImportError("Avro needs fastavro: python3 -m pip install fastavro") from None
    return fastavro

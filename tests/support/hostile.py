"""Messages of a hostile peer that knows the protocol: taken apart and put together wrong.

pieces(message, version)        the bytes of a message, each with its place and what it stands for
damaged(pieces)                 every length, count, varint, tag and null of it replaced by each hostile value
hostile_bytes()                 a Hypothesis strategy: any message and version, damaged in one to three ways
record_pieces(records)          the same for the records of a batch
sealed(section, count, ...)     a batch around them, honest but for the fields that are given
bomb(codec, size)               a batch that grows when it is decompressed

`pieces` is an encoder of its own, piece by piece; joined, they are what `encode` gives.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from pykafka_broker.protocol.fields import Field, blank, schema_of
from pykafka_broker.protocol.records.batch import ATTRIBUTES_OFFSET, CRC_OFFSET, HEADER_BYTES, Codec
from pykafka_broker.protocol.records.compression import compress
from pykafka_broker.protocol.records.crc import crc32c
from pykafka_broker.testing.messages import as_of, everything, full, messages

CODES = {"i8": "b", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "f64": "d", "boolean": "?"}

#: Varints as no client writes them: one without an end, one that is too long, and a 0 in five bytes.
ENDLESS_VARINT = b"\xff" * 12
OVERLONG_VARINT = b"\x80" * 5 + b"\x01"
LONG_ZERO = b"\x80\x80\x80\x80\x00"


class Piece(NamedTuple):
    """Some bytes of a message. `kind` says what they stand for, "value" if that has no structure."""

    place: str
    kind: str
    data: bytes


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> bytes:
    return uvarint(value << 1 if value >= 0 else ~(value << 1))


# --- messages -----------------------------------------------------------------------------------------


def pieces(message: Any, version: int) -> list[Piece]:
    """The bytes of `message` in `version`, which must be able to carry it."""
    schema = schema_of(message)
    return _struct(message, version, version in schema.flexible, schema.name)


def _struct(message: Any, version: int, flexible: bool, place: str) -> list[Piece]:
    out: list[Piece] = []
    tagged = []
    for field in schema_of(message).fields:
        value = getattr(message, field.name)
        if version not in field.versions:
            continue
        at = f"{place}.{field.name}"
        if field.tag is None:
            out += _value(field, value, version, flexible, at)
        elif value != (blank(field.struct) if field.struct and version in field.nullable else field.default):
            tagged.append((field.tag, at, _value(field, value, version, flexible, at)))
    if flexible:
        out.append(Piece(place, "tag count", uvarint(len(tagged))))
        for tag, at, content in sorted(tagged):
            out += (
                Piece(at, "tag", uvarint(tag)),
                Piece(at, "tag size", uvarint(sum(len(piece.data) for piece in content))),
                *content,
            )
    return out


def _value(field: Field, value: Any, version: int, flexible: bool, place: str) -> list[Piece]:
    if field.kind in CODES:
        return [Piece(place, "value", struct.pack(f">{CODES[field.kind]}", value))]
    if field.kind == "uuid":
        return [Piece(place, "value", value)]
    if field.kind == "struct":
        if version not in field.nullable:
            return _struct(value, version, flexible, place)
        if value is None:
            return [Piece(place, "presence", b"\xff" if field.tag is None else b"\0")]
        return [Piece(place, "presence", b"\1"), *_struct(value, version, flexible, place)]
    if field.kind == "string" and value is not None:
        value = value.encode()
    head = _length(field, None if value is None else len(value), flexible, place)
    if value is None:
        return [head]
    if field.kind != "array":
        return [head, Piece(place, "value", bytes(value))]
    assert field.element is not None
    out = [head]
    for index, item in enumerate(value):
        out += _value(field.element, item, version, flexible, f"{place}[{index}]")
    return out


def _length(field: Field, length: int | None, flexible: bool, place: str) -> Piece:
    if flexible and field.compact:
        return Piece(place, "compact length", uvarint(0 if length is None else length + 1))
    if field.kind == "string":
        return Piece(place, "int16 length", struct.pack(">h", -1 if length is None else length))
    return Piece(place, "int32 length", struct.pack(">i", -1 if length is None else length))


def hostile_values(piece: Piece, left: int) -> Iterator[bytes]:
    """The bytes to write instead of a piece that has `left` bytes behind it."""
    if piece.kind == "int16 length":
        for length in (-0x8000, -2, -1, 0, 1, left, left + 1, 0x7FFF):
            yield struct.pack(">h", min(length, 0x7FFF))
    elif piece.kind == "int32 length":
        for length in (-(2**31), -2, -1, 0, 1, left, left + 1, 1_000_001, 2**31 - 1):
            yield struct.pack(">i", length)
    elif piece.kind in ("compact length", "tag count", "tag size", "tag"):
        for number in (0, 1, 2, left + 1, left + 2, 10_001, 2**31 - 1, 2**31, 2**32 - 1):
            yield uvarint(number)
        yield from (LONG_ZERO, OVERLONG_VARINT, ENDLESS_VARINT)
    elif piece.kind == "presence":
        yield from (b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff")
    elif piece.kind == "zigzag":
        for number in (-(2**63), -(2**31), -2, -1, 0, 1, left, left + 1, 2**31 - 1, 2**63 - 1):
            yield zigzag(number)
        yield from (LONG_ZERO, OVERLONG_VARINT, ENDLESS_VARINT)
    else:
        size = len(piece.data)
        yield from (
            bytes(size),
            b"\xff" * size,
            (b"\x7f" + b"\xff" * size)[:size],
            (b"\x80" + bytes(size))[:size],
        )


def join(parts: Sequence[Piece]) -> bytes:
    return b"".join([piece.data for piece in parts])


def damaged(parts: Sequence[Piece], *, values: bool = False) -> Iterator[tuple[str, bytes]]:
    """Every structural piece with every hostile value in its place, plain values too if told so.

    Gives what was done, and the bytes.
    """
    whole = join(parts)
    at = 0
    for piece in parts:
        behind = whole[at + len(piece.data) :]
        if values or piece.kind != "value":
            for value in hostile_values(piece, len(behind)):
                yield f"{piece.place}: {piece.kind} {value.hex()}", whole[:at] + value + behind
        at += len(piece.data)


EVERYTHING = everything()
#: Messages with a field of every kind that is there, in every version.
FULL = {
    (cls, version): pieces(as_of(full(cls), version), version)
    for cls in EVERYTHING
    for version in schema_of(cls).versions
}


@st.composite
def hostile_bytes(draw: st.DrawFn) -> tuple[type[Any], int, bytes]:
    """A message class, a version, and bytes that are nearly a message of them."""
    cls = draw(st.sampled_from(EVERYTHING))
    version = draw(st.sampled_from(schema_of(cls).versions))
    parts = FULL[cls, version]
    if draw(st.booleans()):
        parts = pieces(as_of(draw(messages(cls)), version), version)
    return cls, version, draw(spoilt(parts))


@st.composite
def spoilt(draw: st.DrawFn, parts: Sequence[Piece]) -> bytes:
    """`parts` joined, after one to three changes."""
    changed = [*parts]
    for _ in range(draw(st.integers(1, 3))):
        if not changed:
            break
        at = draw(st.integers(0, len(changed) - 1))
        piece = changed[at]
        change = draw(
            st.sampled_from(["replace", "replace", "replace", "drop", "repeat", "move", "insert", "cut"])
        )
        if change == "replace":
            left = sum(len(behind.data) for behind in changed[at + 1 :])
            value = draw(st.sampled_from([*hostile_values(piece, left)]))
            changed[at] = piece._replace(data=value)
        elif change == "drop":
            del changed[at]
        elif change == "repeat":
            until = draw(st.integers(at, len(changed)))
            changed[at:at] = changed[at:until] * draw(st.integers(1, 5))
        elif change == "move":
            changed.insert(draw(st.integers(0, len(changed) - 1)), changed.pop(at))
        elif change == "insert":
            changed.insert(at, Piece("", "value", draw(st.binary(max_size=8))))
        else:
            del changed[at + 1 :]
            changed[at] = piece._replace(data=piece.data[: draw(st.integers(0, len(piece.data)))])
    return join(changed)


# --- record batches -----------------------------------------------------------------------------------

#: The fields of a batch header behind the length and before the records; `struct` codes.
BATCH_FIELDS = {
    "partition_leader_epoch": "i",
    "magic": "b",
    "crc": "I",
    "attributes": "h",
    "last_offset_delta": "i",
    "base_timestamp": "q",
    "max_timestamp": "q",
    "producer_id": "q",
    "producer_epoch": "h",
    "base_sequence": "i",
    "records_count": "i",
}


#: Key, value and headers.
PlainRecord = tuple[bytes | None, bytes | None, dict[str, bytes | None]]


def record_pieces(records: Sequence[PlainRecord]) -> list[Piece]:
    """The records section of a batch: key, value and headers of each record."""
    out = []
    for index, (key, value, headers) in enumerate(records):
        place = f"records[{index}]"
        body = [
            Piece(f"{place}.attributes", "value", b"\0"),
            Piece(f"{place}.timestamp_delta", "zigzag", zigzag(index)),
            Piece(f"{place}.offset_delta", "zigzag", zigzag(index)),
            *_record_bytes(f"{place}.key", key),
            *_record_bytes(f"{place}.value", value),
            Piece(f"{place}.headers", "zigzag", zigzag(len(headers))),
        ]
        for name, content in headers.items():
            body += _record_bytes(f"{place}.headers.name", name.encode())
            body += _record_bytes(f"{place}.headers.value", content)
        out += [Piece(place, "zigzag", zigzag(len(join(body)))), *body]
    return out


def _record_bytes(place: str, data: bytes | None) -> list[Piece]:
    if data is None:
        return [Piece(place, "zigzag", zigzag(-1))]
    return [Piece(place, "zigzag", zigzag(len(data))), Piece(place, "value", data)]


def sealed(section: bytes, count: int, codec: Codec = Codec.NONE, **fields: int) -> bytes:
    """A batch around a records section, honest in everything that `fields` do not say otherwise."""
    content = compress(codec, section) if codec else section
    honest = dict.fromkeys(BATCH_FIELDS, -1)
    honest |= {"magic": 2, "crc": 0, "attributes": int(codec), "base_timestamp": 0, "records_count": count}
    honest |= {"last_offset_delta": count - 1, "max_timestamp": max(count - 1, 0)}
    values = honest | fields
    layout = struct.Struct(">" + "".join(BATCH_FIELDS.values()))
    body = layout.pack(*[values[name] for name in BATCH_FIELDS]) + content
    batch = bytearray(struct.pack(">qi", fields.get("base_offset", 0), len(body)) + body)
    assert len(batch) == HEADER_BYTES + len(content)
    if "crc" not in fields:
        struct.pack_into(">I", batch, CRC_OFFSET, crc32c(memoryview(batch)[ATTRIBUTES_OFFSET:]))
    return bytes(batch)


def bomb(codec: Codec, plain_bytes: int) -> bytes:
    """A batch that says it has one record, and has `plain_bytes` zeros."""
    return sealed(bytes(plain_bytes), 1, codec)

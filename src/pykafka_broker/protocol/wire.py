"""The functions that generated codecs call for uncommon cases, and the limits of decoding."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Protocol, Union

from pykafka_broker.protocol.buffers import Buffer
from pykafka_broker.protocol.errors import ProtocolError

MAX_ARRAY_ELEMENTS = 1_000_000
#: The most elements of all arrays of a message, except arrays of numbers and ids: an empty string takes one
#: byte in a frame and eight in a list, so a frame of 100 MB with nested arrays could become a gigabyte.
MAX_ELEMENTS = 1_000_000
MAX_TAGS = 10_000
#: The elements that a tagged field counts as: skipping an unknown one takes 0.4 us.
ELEMENTS_PER_TAG = 10
MAX_STRING_BYTES = 0x7FFF


class StoredBytes(Protocol):
    """Bytes that an answer announces now and reads while they are sent."""

    def __len__(self) -> int:
        """The number of bytes that have not been taken yet."""

    def take_cached(self) -> Buffer | None:
        """The next piece, never empty, or None if it must be read from disk."""

    async def take(self) -> Buffer:
        """The next piece, from disk if necessary; raises OSError if it cannot be read."""


#: The value of a `records` field when it is encoded.
Content = Union[Buffer, list[Buffer], tuple[Buffer, ...], StoredBytes]
#: The position in the encoded bytes where the content of a `records` field belongs, and that content.
Cut = tuple[int, Content]


def uvarint(buf: Buffer, pos: int) -> tuple[int, int]:
    """Read an unsigned varint of at most five bytes."""
    value = shift = 0
    while True:
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, pos
        shift += 7
        if shift > 28:
            raise ProtocolError("a varint is longer than five bytes")


def uvarint_bytes(value: int) -> bytes:
    """Write an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag_count(buf: Buffer, pos: int, left: list[int]) -> tuple[int, int]:
    """Read how many tagged fields follow; `left` is the number of elements the message may still have."""
    count, pos = uvarint(buf, pos)
    if count > MAX_TAGS:
        raise ProtocolError(f"{count} tagged fields, more than the {MAX_TAGS} we accept")
    left[0] -= count * ELEMENTS_PER_TAG
    if left[0] < 0:
        raise refuse_elements("tagged fields")
    return count, pos


def tag_header(buf: Buffer, pos: int, end: int) -> tuple[int, int, int]:
    """Read a tagged field's number and size; return the number, and the start and the end of its value."""
    tag, pos = uvarint(buf, pos)
    size, pos = uvarint(buf, pos)
    if size > end - pos:
        raise ProtocolError(f"tagged field {tag} claims {size} bytes, {end - pos} are left")
    return tag, pos, pos + size


def skip_tags(buf: Buffer, pos: int, end: int, left: list[int] | None = None) -> int:
    """Skip a struct's tagged fields, all unknown; returns the position after them."""
    count, pos = tag_count(buf, pos, [MAX_ELEMENTS] if left is None else left)
    for _ in range(count):
        _, _, pos = tag_header(buf, pos, end)
    return pos


def refuse_null(field: str) -> ProtocolError:
    """The error for a null where the field may not be null."""
    return ProtocolError(f"{field} must not be null")


def refuse_length(field: str, length: int, pos: int, end: int) -> ProtocolError:
    """The error for a length beyond the remaining bytes, or beyond our limit."""
    return ProtocolError(f"{field} claims a length of {length}, {max(end - pos, 0)} bytes are left")


def refuse_elements(field: str) -> ProtocolError:
    """The error for a message with more than `MAX_ELEMENTS` elements."""
    return ProtocolError(f"with {field} the message has more than {MAX_ELEMENTS} elements")


class ArrayLayouts(dict[int, Callable[..., Any]]):
    """`pack` or `unpack_from` for arrays of a fixed-width kind, by element count; short ones are cached."""

    def __init__(self, verb: str, code: str) -> None:
        self.verb = verb
        self.code = code

    def __missing__(self, count: int) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(struct.Struct(f">{count}{self.code}"), self.verb)
        if count <= 64:
            self[count] = function
        return function


def buffers_length(content: Content) -> int:
    """The size of a `records` value in bytes."""
    if isinstance(content, (list, tuple)):
        return sum(map(len, content))
    return len(content)


def string_length_bytes(length: int) -> bytes:
    """The compact length of a string of `length - 1` bytes, for lengths of more than one byte."""
    if length > MAX_STRING_BYTES + 1:
        raise ValueError(f"a string of {length - 1} bytes does not fit into a Kafka message")
    return uvarint_bytes(length)

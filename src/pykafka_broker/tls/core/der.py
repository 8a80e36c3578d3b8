"""DER, as far as certificates need it. Every length is checked, as the bytes come from a peer."""

from __future__ import annotations

from collections.abc import Iterator

SEQUENCE = 0x30
SET = 0x31
OBJECT_IDENTIFIER = 0x06
OCTET_STRING = 0x04


def object_identifier(content: bytes) -> str:
    """An object identifier in numbers, as `2.5.4.3`.

    Raises:
        ValueError: the bytes are malformed.
    """
    numbers: list[int] = []
    number = 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not content or content[-1] & 0x80:
        raise ValueError("An object identifier is cut short")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def only(encoded: bytes, tag: int) -> bytes:
    """The content of `encoded`, which must be a single value with `tag`.

    Raises:
        ValueError: `encoded` is something else.
    """
    found = values(encoded)
    content = expect(next(found, None), tag)
    if next(found, None) is not None:
        raise ValueError("Bytes follow a value of DER")
    return content


def expect(value: tuple[int, bytes, bytes] | None, tag: int) -> bytes:
    """The content of a value of this tag.

    Raises:
        ValueError: the value has another tag, or is None.
    """
    if value is None or value[0] != tag:
        raise ValueError(f"A value of DER with the tag {tag:#04x} is missing")
    return value[1]


def values(encoded: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """The values one after the other: tag, content, and the bytes of both.

    Raises:
        ValueError: one is cut short.
    """
    pos = 0
    while pos < len(encoded):
        start, tag = pos, encoded[pos]
        pos += 1
        length = encoded[pos] if pos < len(encoded) else 0x80
        pos += 1
        if length & 0x80:
            size = length & 0x7F
            if not 1 <= size <= 4 or pos + size > len(encoded):
                raise ValueError("A length of DER cannot be read")
            length = int.from_bytes(encoded[pos : pos + size], "big")
            pos += size
        if pos + length > len(encoded):
            raise ValueError("A value of DER is cut short")
        yield tag, encoded[pos : pos + length], encoded[start : pos + length]
        pos += length

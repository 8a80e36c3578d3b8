"""Pushes as clients encode them, without the library that decodes them."""

from __future__ import annotations

import struct
from collections.abc import Mapping

DELTA, CUMULATIVE = 1, 2
#: The module that decodes them.
METRICS_PB2 = "opentelemetry.proto.metrics.v1.metrics_pb2"


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, content: bytes) -> bytes:
    """A message, a string or bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def attributes(number: int, labels: Mapping[str, str]) -> bytes:
    return b"".join(
        field(number, field(1, key.encode()) + field(2, field(1, value.encode())))
        for key, value in labels.items()
    )


def number_point(value: float, labels: Mapping[str, str]) -> bytes:
    kind, form = (b"\x31", "<q") if isinstance(value, int) else (b"\x21", "<d")
    encoded = kind + struct.pack(form, value)
    times = b"\x11" + struct.pack("<Q", 1) + b"\x19" + struct.pack("<Q", 2)
    return field(1, times + encoded + attributes(7, labels))


def gauge(name: str, value: float, **labels: str) -> bytes:
    return field(1, name.encode()) + field(3, b"unit") + field(5, number_point(value, labels))


def total(name: str, value: float, temporality: int, *, is_monotonic: bool = True, **labels: str) -> bytes:
    points = number_point(value, labels)
    return field(1, name.encode()) + field(
        7, points + b"\x10" + varint(temporality) + b"\x18" + varint(is_monotonic)
    )


def histogram(name: str) -> bytes:
    return field(1, name.encode()) + field(9, field(1, b""))


def metrics_data(*metrics: bytes, resource: Mapping[str, str] | None = None) -> bytes:
    scope = field(1, field(1, b"scope")) + b"".join(field(2, metric) for metric in metrics)
    return field(1, field(1, attributes(1, resource or {})) + field(2, scope))

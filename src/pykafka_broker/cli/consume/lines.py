"""A record as a line of output: chosen parts of it, as the console consumer prints them, or JSON."""

from __future__ import annotations

import os
from typing import Any

import click

from pykafka_broker.cli.consume.reader import ReadRecord
from pykafka_broker.system.named_tuple import NamedTuple

PARTS = ("timestamp", "partition", "offset", "headers", "key", "value")


class Printed(NamedTuple):
    """The text form of printed records; the fields are options."""

    parts: str
    key_separator: str
    null_marker: str

    def chosen_parts(self) -> tuple[str, ...]:
        """The parts of a record to print.

        Raises:
            click.BadParameter: a record has no such part.
        """
        chosen = PARTS if self.parts == "all" else tuple(part.strip() for part in self.parts.split(","))
        if unknown := [part for part in chosen if part not in PARTS]:
            raise click.BadParameter(f"{unknown[0]!r} is none of {', '.join(PARTS)}", param_hint="--print")
        return chosen


class TextOutput:
    """Chosen parts of a record on a line, as the console consumer prints them."""

    def __init__(self, parts: tuple[str, ...], separator: str, null_marker: str) -> None:
        self.parts = frozenset(parts)
        self.separator = os.fsencode(separator)
        self.null = os.fsencode(null_marker)

    def line(self, read: ReadRecord) -> bytes:
        record = read.record
        printed = []
        if "timestamp" in self.parts:
            kind = "LogAppendTime" if read.is_append_time else "CreateTime"
            printed.append(f"{kind}:{record.timestamp}".encode())
        if "partition" in self.parts:
            printed.append(b"Partition:%d" % read.partition)
        if "offset" in self.parts:
            printed.append(b"Offset:%d" % record.offset)
        if "headers" in self.parts:
            headers = b",".join(
                name.encode(errors="surrogateescape") + b":" + self._shown(value)
                for name, value in record.headers
            )
            printed.append(headers or b"NO_HEADERS")
        if "key" in self.parts:
            printed.append(self._shown(record.key))
        if "value" in self.parts:
            printed.append(self._shown(record.value))
        return self.separator.join(printed) + b"\n"

    def _shown(self, data: bytes | None) -> bytes:
        return self.null if data is None else data


class JsonOutput:
    """A record as a JSON object. Bytes that are not UTF-8 are in `key_base64` or `value_base64`."""

    def __init__(self, topic: str) -> None:
        self.topic = topic

    def line(self, read: ReadRecord) -> bytes:
        import json

        record = read.record
        shown: dict[str, Any] = {
            "topic": self.topic,
            "partition": read.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestamp_type": "LogAppendTime" if read.is_append_time else "CreateTime",
            "headers": [
                {"key": _printable(name), **_as_text("value", value)} for name, value in record.headers
            ],
            **_as_text("key", record.key),
            **_as_text("value", record.value),
        }
        return json.dumps(shown, ensure_ascii=False).encode() + b"\n"


def _printable(name: str) -> str:
    """A header's name; bytes of it that are not UTF-8 become U+FFFD."""
    return name.encode(errors="surrogateescape").decode(errors="replace")


def _as_text(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        import base64

        return {f"{name}_base64": base64.b64encode(data).decode()}

"""The values of records for a person: JSON, Avro, Protobuf, text, hex; and coordinators' records."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import click

from pykafka_broker.cli.record_json import DECODERS, Decoder
from pykafka_broker.console.settings import Settings
from pykafka_broker.system.named_tuple import NamedTuple

#: What a visitor may choose; the last two only if the console was told where to look.
AUTOMATIC, HEX, AVRO, PROTOBUF = "auto", "hex", "avro", "protobuf"
#: The topics whose records have a form of their own.
INTERNAL = {
    "__consumer_offsets": DECODERS["offsets"],
    "__transaction_state": DECODERS["transaction-log"],
    "__share_group_state": DECODERS["share-group-state"],
}


class Shown(NamedTuple):
    """A value as a text, and decoded, if it could be."""

    text: str
    decoded: object = None


def as_text(data: bytes | None) -> str:
    """Bytes as text, or as hex if they are none."""
    if data is None:
        return "null"
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.hex(" ")


#: Decodes the values of some records: (offset, key, value).
Decode = Callable[[Sequence[tuple[int, bytes | None, bytes | None]]], list[Shown]]


def choices(settings: Settings) -> list[tuple[str, str]]:
    """The formats that a visitor may choose."""
    return [
        (AUTOMATIC, "JSON or text"),
        (HEX, "hex"),
        *([(AVRO, "Avro, by the registry")] if settings.registry else []),
        *([(PROTOBUF, "Protobuf")] if settings.protobuf else []),
    ]


def decoder(settings: Settings, topic: str, kind: str, message: str) -> Decode:
    """What decodes the values of a topic; `message` is the name of a Protobuf message.

    Raises:
        click.ClickException: the schema cannot be had.
    """
    if kind == HEX:
        return lambda records: [Shown("null" if v is None else v.hex(" ")) for _, _, v in records]
    if kind in (AVRO, PROTOBUF) and any(kind == known for known, _ in choices(settings)):
        return _by_schema(settings, topic, kind, message)
    if topic in INTERNAL:
        return lambda records: [_of_coordinator(INTERNAL[topic], *record) for record in records]
    return lambda records: [_as_json(value) for _, _, value in records]


def _as_json(data: bytes | None) -> Shown:
    text = as_text(data)
    try:
        return Shown(text, None if data is None else json.loads(text))
    except (ValueError, RecursionError):
        return Shown(text)


def _of_coordinator(decode: Decoder, offset: int, key: bytes | None, value: bytes | None) -> Shown:
    shown_key, shown_value = decode(offset, key, value)
    text = shown_value if shown_key is None else f"{shown_key} {shown_value}"
    return Shown(text or "", _as_json((shown_value or "").encode()).decoded)


def _by_schema(settings: Settings, topic: str, kind: str, message: str) -> Decode:
    try:
        import pyarrow as pa

        from pykafka_broker.arrow import Protobuf, RegistryAvro

        if kind == AVRO:
            form: Any = RegistryAvro(str(settings.registry), timeout_s=settings.timeout_s)
        else:
            form = Protobuf(str(settings.protobuf), message)
        opened = form.open(topic, "value")
    except (ImportError, ValueError) as error:
        raise click.ClickException(str(error)) from None

    def decode(records: Sequence[tuple[int, bytes | None, bytes | None]]) -> list[Shown]:
        values, bad = opened.decode(pa.array([value for *_, value in records], pa.binary()))
        reasons = dict(bad)
        return [
            Shown(f"({reasons[row]}) {as_text(records[row][2])}")
            if row in reasons
            else Shown(json.dumps(value, default=str, ensure_ascii=False), value)
            for row, value in enumerate(values.to_pylist())
        ]

    return decode

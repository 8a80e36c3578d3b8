"""The encodings of keys and values, in words: `value=json:order.schema.json`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.python_packages import MAP_IN_ARROW, insist_on

if TYPE_CHECKING:
    from pykafka_broker.arrow.core.values import Format

KINDS = ("json", "avro", "registry")


def parse_format(text: str) -> tuple[str, Format]:
    """A column and its format: `COLUMN=json:FILE`, `COLUMN=avro:FILE` or `COLUMN=registry:URL`.

    Raises:
        SparkError: it is none of these, or a package is not installed.
    """
    column, _, encoded = text.partition("=")
    kind, _, schema = encoded.partition(":")
    if kind not in KINDS or not schema:
        raise SparkError(f"{text!r} is not COLUMN=KIND:SCHEMA with a kind of {', '.join(KINDS)}.")
    insist_on(MAP_IN_ARROW, "Decoding needs")
    from pykafka_broker.arrow import Avro, Json, RegistryAvro

    makers: dict[str, Callable[[str], Format]] = {"json": Json, "avro": Avro, "registry": RegistryAvro}
    return column, makers[kind](schema)

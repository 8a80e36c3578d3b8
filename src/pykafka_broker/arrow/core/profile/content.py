"""A guess at the format of keys and values, from a sample of records. Pure.

The sample has the `SAMPLED` records whose place (partition and offset) has the smallest hash: any record of
the topic may be among them, and the same ones are in every run. A share of the sample is right within about
six percentage points. The formats are guesses: bytes may look like several of them, and the first one counts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from pykafka_broker.arrow.core.profile.murmur3 import Hashes, mixed
from pykafka_broker.arrow.core.profile.results import Content
from pykafka_broker.protocol.records.batch import varint
from pykafka_broker.protocol.records.errors import InvalidRecord
from pykafka_broker.system.named_tuple import NamedTuple

SAMPLED = 256
#: Of larger keys and values nothing is said.
LARGEST_BYTES = 256 * 1024

#: What a key or a value may be called.
FORMATS = (
    "null",
    "empty",
    "large",
    # Confluent's wire format: a zero byte, the four bytes of a schema's id, and what the schema describes.
    "registry json",
    "registry protobuf",
    "registry avro",
    # An object or an array.
    "json",
    # UTF-8 without control characters, but for tabs and line ends.
    "text",
    # Four or eight bytes.
    "number",
    "protobuf",
    "binary",
)

_REGISTRY_BYTES = 5
_NUMBER_BYTES = (4, 8)
_TEXT_CONTROLS = frozenset("\t\n\r")
#: The lengths of Protobuf's fixed wire types; 0 is a varint, 2 has its length before it.
_FIXED_BYTES = {1: 8, 5: 4}
_VARINT, _LENGTH = 0, 2
_MOST_MESSAGE_INDEXES = 32


class Look(NamedTuple):
    """What a key or a value looks like."""

    format: str
    schema_id: int | None = None


def look(data: bytes | None) -> Look:
    """What these bytes look like."""
    if data is None:
        return Look("null")
    if not data:
        return Look("empty")
    if len(data) > LARGEST_BYTES:
        return Look("large")
    schema_id = int.from_bytes(data[1:_REGISTRY_BYTES], "big")
    # A number of eight bytes begins like this, too; ids begin at 1.
    if data[0] == 0 and len(data) >= _REGISTRY_BYTES and len(data) not in _NUMBER_BYTES and schema_id:
        return Look(f"registry {_of_registry(data[_REGISTRY_BYTES:])}", schema_id)
    if _is_json(data):
        return Look("json")
    if _is_text(data):
        return Look("text")
    if len(data) in _NUMBER_BYTES:
        return Look("number")
    return Look("protobuf" if _is_protobuf(data, 0) else "binary")


def _of_registry(data: bytes) -> str:
    """The format of what follows the id of a schema."""
    if _is_json(data):
        return "json"
    try:
        # Protobuf has the place of the message in its file first: how many indexes, and those.
        count, at = varint(data, 0)
        for _ in range(min(count >> 1, _MOST_MESSAGE_INDEXES)):
            _, at = varint(data, at)
    except (IndexError, InvalidRecord):
        return "avro"
    is_protobuf = not count & 1 and count >> 1 <= _MOST_MESSAGE_INDEXES and _is_protobuf(data, at)
    return "protobuf" if is_protobuf else "avro"


def _is_json(data: bytes) -> bool:
    if data.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _is_text(data: bytes) -> bool:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return text.isprintable() or all((c >= " " and c != "\x7f") or c in _TEXT_CONTROLS for c in text)


def _is_protobuf(data: bytes, at: int) -> bool:
    """Whether the bytes from `at` on are fields as Protobuf writes them."""
    try:
        while at < len(data):
            tag, at = varint(data, at)
            kind = tag & 7
            if not 0 < tag >> 3 < 1 << 29:
                return False
            if kind == _VARINT:
                _, at = varint(data, at)
            elif kind == _LENGTH:
                size, at = varint(data, at)
                at += size
            elif kind in _FIXED_BYTES:
                at += _FIXED_BYTES[kind]
            else:
                return False
    except (IndexError, InvalidRecord):
        return False
    return at == len(data)


class Sample:
    """The looks of sampled records."""

    __slots__ = ("_looks", "_ranks")

    def __init__(self) -> None:
        self._ranks: Hashes = np.empty(0, np.uint64)
        self._looks: list[tuple[Look, Look]] = []

    def add(
        self,
        partitions: npt.NDArray[np.int64],
        offsets: npt.NDArray[np.int64],
        look_at: Callable[[int], tuple[Look, Look]],
    ) -> None:
        """Look at those of these records that belong to the sample: at the key and the value of a row."""
        places = mixed(partitions.astype(np.uint64) + np.uint64(1)) + offsets.astype(np.uint64)
        ranks = mixed(places)
        rows = np.arange(len(ranks))
        if len(self._ranks) == SAMPLED:
            rows = np.flatnonzero(ranks < self._ranks.max())
        if len(rows) > SAMPLED:
            rows = rows[np.argpartition(ranks[rows], SAMPLED - 1)[:SAMPLED]]
        if rows.size:
            self._absorb(ranks[rows], [look_at(row) for row in rows.tolist()])

    def merge(self, other: Sample) -> None:
        """Add the sample of other records."""
        self._absorb(other._ranks, other._looks)

    def _absorb(self, ranks: Hashes, looks: Sequence[tuple[Look, Look]]) -> None:
        ranks = np.concatenate([self._ranks, ranks])
        looks = [*self._looks, *looks]
        kept = np.argsort(ranks)[:SAMPLED]
        self._ranks, self._looks = ranks[kept], [looks[row] for row in kept.tolist()]

    def results(self) -> tuple[list[Content], list[Content]]:
        """The formats of keys, and those of values."""
        return _contents(key for key, _ in self._looks), _contents(value for _, value in self._looks)


def _contents(looks: Iterable[Look]) -> list[Content]:
    counts = Counter(looks)
    # What Avro has written may look like Protobuf now and then, but not the other way round.
    avro_ids = {schema_id for kind, schema_id in counts if kind == "registry avro"}
    sampled: Counter[str] = Counter()
    ids: dict[str, set[int]] = {}
    for (kind, schema_id), count in counts.items():
        if kind == "registry protobuf" and schema_id in avro_ids:
            kind = "registry avro"
        sampled[kind] += count
        if schema_id is not None:
            ids.setdefault(kind, set()).add(schema_id)
    ordered = sorted(sampled.items(), key=lambda item: (-item[1], FORMATS.index(item[0])))
    return [Content(kind, count, sorted(ids.get(kind, ()))) for kind, count in ordered]

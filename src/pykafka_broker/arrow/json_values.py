"""JSON values, whose schema is given: as a JSON Schema file, or as Arrow's own.

All records of a batch are parsed together by Arrow: their bytes are joined, each in brackets of its own.
Where Arrow refuses them, the two halves are parsed, and so on down to the bad record.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from os import PathLike, fspath

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from pykafka_broker.arrow.core.values import BadRecord, OnError, Outcome
from pykafka_broker.arrow.json_schema import read_json_schema

#: Arrow counts the rows of what it was given, which is one text here.
_OF_ITS_ONLY_ROW = re.compile(r" in row 0$")
_BEFORE, _BEHIND = b'{"v":[', b"]}\n"


@dataclass(frozen=True, slots=True)
class Json:
    """Values are JSON texts in UTF-8.

    `schema` is the path of a JSON Schema file (`json_schema.py` lists the parts that count), an Arrow schema,
    whose fields are those of an object, or any Arrow type. Fields that it does not have are left out,
    missing ones are null.
    """

    schema: str | PathLike[str] | pa.Schema | pa.DataType
    on_error: OnError = "error"

    def open(self, topic: str, column: str) -> JsonDecoder:
        """The decoder.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is no JSON Schema that has an Arrow type.
        """
        schema = self.schema
        if isinstance(schema, pa.Schema):
            return JsonDecoder(pa.struct(list(schema)))
        if isinstance(schema, pa.DataType):
            return JsonDecoder(schema)
        return JsonDecoder(read_json_schema(fspath(schema)))


class JsonDecoder:
    """Parses the texts of a column."""

    __slots__ = ("_parse_options", "type")

    def __init__(self, kind: pa.DataType) -> None:
        self.type = kind
        self._parse_options = pyarrow.json.ParseOptions(
            explicit_schema=pa.schema([pa.field("v", pa.list_(kind))]),
            newlines_in_values=True,
            unexpected_field_behavior="ignore",
        )

    def decode(self, data: pa.Array) -> Outcome:
        rows = pc.indices_nonzero(data.is_valid())
        texts = data if len(rows) == len(data) else data.take(rows)
        bad: list[BadRecord] = []
        pieces: list[pa.Array] = []
        self._parse(texts, 0, pieces, bad)
        values = (
            pa.concat_arrays([piece.cast(self.type) for piece in pieces])
            if pieces
            else pa.array([], self.type)
        )
        if len(rows) != len(data):
            places = pc.index_in(pa.array(range(len(data)), pa.uint64()), rows.cast(pa.uint64()))
            values = values.take(places)
            bad = [BadRecord(rows[row].as_py(), reason) for row, reason in bad]
        return Outcome(values, bad)

    def _parse(self, texts: pa.Array, first: int, pieces: list[pa.Array], bad: list[BadRecord]) -> None:
        """Append the values of `texts`, of which the first one is number `first`."""
        if not len(texts):
            return
        try:
            pieces.append(self._parsed(texts))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            if len(texts) == 1:
                pieces.append(pa.nulls(1, self.type))
                bad.append(BadRecord(first, _OF_ITS_ONLY_ROW.sub("", str(error))))
                return
            half = len(texts) // 2
            self._parse(texts[:half], first, pieces, bad)
            self._parse(texts[half:], first + half, pieces, bad)

    def _parsed(self, texts: pa.Array) -> pa.Array:
        """The values of these texts.

        Raises:
            pa.ArrowInvalid: one of them is no JSON text, or not of the type.
        """
        lines = pc.binary_join_element_wise(_BEFORE, texts, _BEHIND, b"")
        offsets, data = lines.buffers()[1:]
        begin, end = _extent(lines, offsets)
        table = pyarrow.json.read_json(
            pa.BufferReader(data.slice(begin, end - begin)),
            pyarrow.json.ReadOptions(use_threads=False, block_size=end - begin + 1),
            self._parse_options,
        )
        lists = table.column("v").combine_chunks()
        if len(lists) != len(texts) or pc.any(pc.not_equal(lists.value_lengths(), 1)).as_py():
            raise pa.ArrowInvalid("JSON parse error: not one value, but none or several")
        values = lists.flatten()
        # Texts that are not UTF-8.
        values.validate(full=True)
        return values


def _extent(lines: pa.Array, offsets: pa.Buffer) -> tuple[int, int]:
    """The start and the end of an array's bytes in its buffer."""
    ends = memoryview(offsets).cast("i")
    return ends[lines.offset], ends[lines.offset + len(lines)]

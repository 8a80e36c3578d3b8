"""Generates codec functions from a declaration and a version: the only `exec` of the project.

There is one function per struct: inlining nested structs would gain about 5 %, but the text should stay
readable in tracebacks and pdb. A run of fixed-width fields becomes one `struct.Struct`, which includes the
length or the tag count after the run; ids stay 16 bytes; layouts of short arrays of numbers are cached.

Decoding and encoding, in microseconds (CPython 3.11, a 2-core VM): MetadataRequest v12 with 10 topics 4.4 and
2.0, MetadataResponse v12 with 10 topics of 3 partitions 34 and 22, ProduceRequest v9 with 1 KiB 1.7 and 1.0.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Callable, Iterable
from typing import Any

from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.protocol.fields import REQUIRED, ZEROS, Field, blank, schema_of
from pykafka_broker.protocol.wire import (
    MAX_ARRAY_ELEMENTS,
    MAX_ELEMENTS,
    MAX_STRING_BYTES,
    ArrayLayouts,
    buffers_length,
    refuse_elements,
    refuse_length,
    refuse_null,
    skip_tags,
    string_length_bytes,
    tag_count,
    tag_header,
    uvarint,
    uvarint_bytes,
)

#: struct-module codes of the kinds that have a fixed width.
_CODES = {
    "i8": "b",
    "i16": "h",
    "u16": "H",
    "i32": "i",
    "u32": "I",
    "i64": "q",
    "f64": "d",
    "boolean": "?",
    "uuid": "16s",
}
_layouts = {(verb, code): ArrayLayouts(verb, code) for verb in ("pack", "unpack_from") for code in "bhHiIqd?"}


class Source:
    """The text of a few functions, and the names it refers to."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.lines: list[str] = []
        self.depth = 0
        self.scope: dict[str, Any] = {}

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def block(self, opening: str) -> Block:
        self.line(opening)
        return Block(self)

    def load_function(self, name: str) -> Callable[..., Any]:
        """Compile the text and return its function `name`; tracebacks, pdb and `inspect` find the text."""
        source = "\n".join(self.lines) + "\n"
        exec(compile(source, self.title, "exec"), self.scope)
        linecache.cache[self.title] = (len(source), None, source.splitlines(keepends=True), self.title)
        function: Callable[..., Any] = self.scope[name]
        function.source = source  # type: ignore[attr-defined]
        return function


class Block:
    """`with source.block("if x:"):` indents the lines written inside."""

    __slots__ = ("source",)

    def __init__(self, source: Source) -> None:
        self.source = source

    def __enter__(self) -> None:
        self.source.depth += 1

    def __exit__(self, *_: object) -> None:
        self.source.depth -= 1


class ConstructorSource(Source):
    """Writes an `__init__` that takes keywords only and makes a new list for every list default."""

    def __init__(self, cls: type) -> None:
        schema = schema_of(cls)
        super().__init__(f"<constructor of {schema.name}>")
        self.scope["OMITTED"] = REQUIRED
        parameters = []
        for field in schema.fields:
            if field.default is REQUIRED:
                parameters.append(field.name)
            elif type(field.default) is list:
                parameters.append(f"{field.name}=OMITTED")
            else:
                parameters.append(f"{field.name}={field.default!r}")
        with self.block(
            f"def __init__(self{', *' if parameters else ''}{''.join(', ' + p for p in parameters)}):"
        ):
            for field in schema.fields:
                if type(field.default) is list:
                    self.line(
                        f"self.{field.name} = {field.default!r} if {field.name} is OMITTED else {field.name}"
                    )
                else:
                    self.line(f"self.{field.name} = {field.name}")
            if not schema.fields:
                self.line("pass")

    def load(self) -> Callable[..., None]:
        return self.load_function("__init__")


class CodecSource(Source):
    """The common base of decoder and encoder sources: one function per struct, and runs of fixed-width fields
    packed or unpacked in one go.
    """

    def __init__(self, direction: str, cls: type, version: int) -> None:
        schema = schema_of(cls)
        if version not in schema.versions:
            raise ValueError(f"{schema.name} has no version {version}")
        super().__init__(f"<{direction} {schema.name} v{version}>")
        self.cls = cls
        self.version = version
        self.flexible = version in schema.flexible
        self.entry = f"{direction}_{schema.name}_v{version}"
        self.structs: list[type] = [cls]

    def emit_structs(self) -> None:
        """Write a function per struct; `self.structs` grows as their fields name further ones."""
        for cls in self.structs:
            self.emit_struct(cls)
            self.lines += ["", ""]

    def emit_struct(self, cls: type) -> None:
        raise NotImplementedError

    def function_of(self, cls: type) -> str:
        """The name of the function for `cls`, which will be written if necessary."""
        if cls not in self.structs:
            self.structs.append(cls)
        return f"struct_{cls.__name__}"

    def present(self, cls: type) -> tuple[list[Field], list[Field], list[Field]]:
        """The fields of `cls` that are inline in this version, tagged (by number), and absent."""
        inline, tagged, absent = [], [], []
        for field in schema_of(cls).fields:
            if self.version not in field.versions:
                absent.append(field)
            elif field.tag is None:
                inline.append(field)
            else:
                tagged.append(field)
        return inline, sorted(tagged, key=lambda field: field.tag or 0), absent

    def runs(self, fields: list[Field]) -> Iterable[list[Field]]:
        """Split into runs of fixed-width fields and single other fields."""
        run: list[Field] = []
        for field in fields:
            if field.kind in _CODES:
                run.append(field)
                continue
            if run:
                yield run
                run = []
            yield [field]
        if run:
            yield run

    def fixed(self, verb: str, codes: list[str]) -> tuple[str, int]:
        """Put `pack` or `unpack_from` of a run into the scope; returns its name and the run's width."""
        layout = struct.Struct(">" + "".join(codes))
        name = f"{verb}_{''.join(codes)}".replace("?", "o")
        self.scope[name] = layout.pack if verb == "pack" else layout.unpack_from
        return name, layout.size

    def array(self, verb: str, element: Field) -> tuple[str, int]:
        """Put the layouts of an array into the scope; returns their name and the width of an element."""
        code = _CODES[element.kind]
        name = f"{verb}_{code}_array"
        self.scope[name] = _layouts[verb, code]
        return name, struct.calcsize(f">{code}")

    def nullable(self, field: Field) -> bool:
        return self.version in field.nullable


class DecoderSource(CodecSource):
    """Writes `def struct_X(buf, pos, end, left) -> (message, pos)` per struct, and the function for callers.

    `end` is the end of the bytes that may be read, `left` the number of elements that the message may still
    have. Reading a fixed-width value or a single byte past the buffer's end raises; slicing does not, so
    every slice is checked first.
    """

    def __init__(self, cls: type, version: int) -> None:
        super().__init__("decode", cls, version)
        for helper in (
            uvarint,
            tag_count,
            tag_header,
            skip_tags,
            refuse_null,
            refuse_length,
            refuse_elements,
        ):
            self.scope[helper.__name__] = helper
        self.scope |= {
            "new": object.__new__,
            "ProtocolError": ProtocolError,
            "TRUNCATED": (IndexError, struct.error),
        }

    def load(self) -> Any:
        name = schema_of(self.cls).name
        with self.block(f"def {self.entry}(buf, pos=0):"):
            with self.block("try:"):
                self.line(f"return {self.function_of(self.cls)}(buf, pos, len(buf), [{MAX_ELEMENTS}])")
            with self.block("except TRUNCATED as error:"):
                self.line(f'raise ProtocolError("{name} v{self.version} is cut short") from error')
        self.lines += ["", ""]
        self.emit_structs()
        return self.load_function(self.entry)

    def emit_struct(self, cls: type) -> None:
        inline, tagged, absent = self.present(cls)
        self.scope[cls.__name__] = cls
        with self.block(f"def {self.function_of(cls)}(buf, pos, end, left):"):
            self.line(f"m = new({cls.__name__})")
            for field in absent + tagged:
                self.line(f"m.{field.name} = {self.default(field, field in tagged)}")
            self.emit_inline(cls, inline, tagged)
            if self.flexible and tagged:
                self.emit_tags(cls, tagged)
            self.line("return m, pos")

    def default(self, field: Field, in_version: bool) -> str:
        """The text of the value of a field that is not on the wire; makes a new list or struct each time."""
        if in_version and field.struct is not None and self.nullable(field):
            self.scope["blank"] = blank
            self.scope[field.struct.__name__] = field.struct
            return f"blank({field.struct.__name__})"
        if field.default is not REQUIRED:
            return repr(field.default)
        if field.kind == "array":
            return "None" if self.version in field.nullable else "[]"
        return repr(ZEROS.get(field.kind, 0))

    def emit_inline(self, cls: type, inline: list[Field], tagged: list[Field]) -> None:
        """Read the fields in order; a run includes the length or the tag count that follows it."""
        pending: list[Field] = []
        for run in self.runs(inline):
            if run[0].kind in _CODES:
                pending = run
            else:
                field = run[0]
                if pending:
                    self.emit_run(pending, "" if field.kind == "struct" else "n", self.length_code(field))
                self.emit_value(cls, field, length_is_read=bool(pending))
                pending = []
        if not self.flexible or tagged:
            if pending:
                self.emit_run(pending)
        elif pending:
            self.emit_run(pending, "tags", "B")
            with self.block("if tags:"):
                self.line("pos = skip_tags(buf, pos - 1, end, left)")
        else:
            self.line("pos = skip_tags(buf, pos, end, left) if buf[pos] else pos + 1")

    def emit_run(self, run: list[Field], also: str = "", code: str = "") -> None:
        """Read a run of fixed-width fields, and the value after it into the variable `also`."""
        targets = [f"m.{field.name}" for field in run]
        codes = [_CODES[field.kind] for field in run]
        if also:
            targets.append(also)
            codes.append(code)
        unpack, width = self.fixed("unpack", codes)
        self.line(f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {unpack}(buf, pos)")
        self.line(f"pos += {width}")

    def emit_tags(self, cls: type, tagged: list[Field]) -> None:
        self.line("count, pos = tag_count(buf, pos, left)")
        with self.block("for _ in range(count):"):
            self.line("tag, pos, tag_end = tag_header(buf, pos, end)")
            word = "if"
            for field in tagged:
                with self.block(f"{word} tag == {field.tag}:"):
                    if field.kind in _CODES:
                        self.emit_run([field])
                    else:
                        self.emit_value(cls, field, end="tag_end")
                    with self.block("if pos != tag_end:"):
                        self.line(f'raise ProtocolError("{cls.__name__}.{field.name} does not fill its tag")')
                word = "elif"
            with self.block("else:"):
                self.line("pos = tag_end")

    def emit_value(self, cls: type, field: Field, *, end: str = "end", length_is_read: bool = False) -> None:
        """Read a field of variable width into the message."""
        target = f"m.{field.name}"
        label = f"{cls.__name__}.{field.name}"
        if field.kind == "struct":
            self.emit_struct_value(field, target, end)
            return
        self.emit_length(field, length_is_read)
        if not self.nullable(field):
            with self.block("if n < 0:"):
                self.line(f'raise refuse_null("{label}")')
            self.emit_content(field, target, label, end)
            return
        with self.block("if n < 0:"):
            self.line(f"{target} = None")
        with self.block("else:"):
            self.emit_content(field, target, label, end)

    def emit_content(self, field: Field, target: str, label: str, end: str) -> None:
        if field.kind == "array":
            self.emit_array(field, target, label, end)
        else:
            self.emit_slice(field, target, label, end)

    def emit_struct_value(self, field: Field, target: str, end: str) -> None:
        assert field.struct is not None
        read = f"{target}, pos = {self.function_of(field.struct)}(buf, pos, {end}, left)"
        if not self.nullable(field):
            self.line(read)
            return
        if field.tag is None:
            self.line("pos += 1")
            null = "buf[pos - 1] > 127"
        else:  # Kafka writes null as -1 inline, but as 0 in a tag
            self.line("present, pos = uvarint(buf, pos)")
            null = "not present"
        with self.block(f"if {null}:"):
            self.line(f"{target} = None")
        with self.block("else:"):
            self.line(read)

    def length_code(self, field: Field) -> str:
        """The struct code of a length's first bytes; compact lengths are varints, mostly of one byte."""
        if self.flexible and field.compact:
            return "B"
        return "h" if field.kind == "string" else "i"

    def emit_length(self, field: Field, is_read: bool = False) -> None:
        """Read a length into `n`, or the rest of it if its first bytes are read already; null is negative."""
        code = self.length_code(field)
        if code == "B":
            if not is_read:
                self.line("n = buf[pos]")
                self.line("pos += 1")
            with self.block("if n > 127:"):
                self.line("n, pos = uvarint(buf, pos - 1)")
            self.line("n -= 1")
        elif not is_read:
            unpack, width = self.fixed("unpack", [code])
            self.line(f"n, = {unpack}(buf, pos)")
            self.line(f"pos += {width}")

    def emit_slice(self, field: Field, target: str, label: str, end: str) -> None:
        """Take `n` bytes."""
        self.line("stop = pos + n")
        limit = (
            f" or n > {MAX_STRING_BYTES}"
            if field.kind == "string" and self.flexible and field.compact
            else ""
        )
        with self.block(f"if stop > {end}{limit}:"):
            self.line(f'raise refuse_length("{label}", n, pos, {end})')
        if field.kind == "string":
            self.line(f'{target} = str(buf[pos:stop], "utf-8", "replace")')
        elif field.kind == "binary":
            self.line(f"{target} = bytes(buf[pos:stop])")
        else:
            self.line(f"{target} = memoryview(buf)[pos:stop]")
        self.line("pos = stop")

    def emit_array(self, field: Field, target: str, label: str, end: str) -> None:
        """Read `n` elements; in every message of Kafka an element has at least one byte."""
        element = field.element
        assert element is not None
        with self.block(f"if n > {end} - pos or n > {MAX_ARRAY_ELEMENTS}:"):
            self.line(f'raise refuse_length("{label}", n, pos, {end})')
        if element.kind in _CODES and element.kind != "uuid":
            unpack, width = self.array("unpack_from", element)
            self.line(f"{target} = list({unpack}[n](buf, pos))")
            self.line(f"pos += n * {width}")
            return
        if element.kind == "uuid":
            self.line("stop = pos + n * 16")
            with self.block(f"if stop > {end}:"):
                self.line(f'raise refuse_length("{label}", n, pos, {end})')
            self.line(f"{target} = [bytes(buf[at : at + 16]) for at in range(pos, stop, 16)]")
            self.line("pos = stop")
            return
        self.line("left[0] -= n")
        with self.block("if left[0] < 0:"):
            self.line(f'raise refuse_elements("{label}")')
        self.line(f"{target} = items = []")
        with self.block("for _ in range(n):"):
            if element.kind == "struct":
                assert element.struct is not None
                self.line(f"item, pos = {self.function_of(element.struct)}(buf, pos, {end}, left)")
            else:
                self.emit_length(element)
                with self.block("if n < 0:"):
                    self.line(f'raise refuse_null("{label}[]")')
                self.emit_slice(element, "item", f"{label}[]", end)
            self.line("items.append(item)")


class EncoderSource(CodecSource):
    """Writes `def struct_X(m, out, cuts)` per struct: append `m` to the bytearray `out`, and to `cuts`."""

    def __init__(self, cls: type, version: int) -> None:
        super().__init__("encode", cls, version)
        for helper in (uvarint_bytes, string_length_bytes, buffers_length):
            self.scope[helper.__name__] = helper

    def load(self) -> Any:
        self.emit_structs()
        self.line(f"{self.entry} = {self.function_of(self.cls)}")
        return self.load_function(self.entry)

    def emit_struct(self, cls: type) -> None:
        inline, tagged, _ = self.present(cls)
        with self.block(f"def {self.function_of(cls)}(m, out, cuts):"):
            runs = list(self.runs(inline))
            no_tags = self.flexible and not tagged
            for run in runs:
                if run[0].kind not in _CODES:
                    self.emit_value(run[0], "out")
                elif no_tags and run is runs[-1]:
                    self.emit_run(run, "out", pad="x")
                    no_tags = False
                else:
                    self.emit_run(run, "out")
            if no_tags:
                self.line("out.append(0)")
            elif self.flexible and tagged:
                self.emit_tags(tagged)
            elif not runs:
                self.line("pass")

    def emit_run(self, run: list[Field], out: str, pad: str = "") -> None:
        """Write a run of fixed-width fields; `pad` "x" adds the zero byte for "no tags"."""
        pack, _ = self.fixed("pack", [_CODES[field.kind] for field in run] + [pad] * bool(pad))
        self.line(f"{out} += {pack}({', '.join(f'm.{field.name}' for field in run)})")

    def emit_tags(self, tagged: list[Field]) -> None:
        """Write the tagged fields that differ from their default, in the order of their numbers."""
        with self.block(f"if {' or '.join(self.differs(field) for field in tagged)}:"):
            self.line("count = 0")
            self.line("section = bytearray()")
            for field in tagged:
                with self.block(f"if {self.differs(field)}:"):
                    self.line("count += 1")
                    assert field.tag is not None
                    number = uvarint_bytes(field.tag)
                    if field.kind in _CODES:
                        pack, width = self.fixed("pack", [_CODES[field.kind]])
                        self.line(f"section += {number + uvarint_bytes(width)!r}")
                        self.line(f"section += {pack}(m.{field.name})")
                        continue
                    self.line("body = bytearray()")
                    self.emit_value(field, "body")
                    self.line(f"section += {number!r}")
                    self.line("section += uvarint_bytes(len(body))")
                    self.line("section += body")
            self.line("out += uvarint_bytes(count)")
            self.line("out += section")
        with self.block("else:"):
            self.line("out.append(0)")

    def differs(self, field: Field) -> str:
        if field.struct is not None and self.nullable(field):
            self.scope[f"BLANK_{field.struct.__name__}"] = blank(field.struct)
            return f"m.{field.name} != BLANK_{field.struct.__name__}"
        if field.default is None:
            return f"m.{field.name} is not None"
        if field.default == []:
            return (
                f"(m.{field.name} is None or len(m.{field.name}))"
                if self.nullable(field)
                else f"m.{field.name}"
            )
        return f"m.{field.name} != {field.default!r}"

    def emit_value(self, field: Field, out: str) -> None:
        """Write a field of variable width."""
        self.line(f"value = m.{field.name}")
        if self.nullable(field):
            with self.block("if value is None:"):
                self.emit_null(field, out)
            with self.block("else:"):
                if field.kind == "struct":
                    self.line(f"{out}.append(1)")
                self.emit_content(field, out)
        else:
            self.emit_content(field, out)

    def emit_null(self, field: Field, out: str) -> None:
        if field.kind == "struct":
            self.line(f"{out}.append({255 if field.tag is None else 0})")
        elif self.flexible and field.compact:
            self.line(f"{out}.append(0)")
        else:
            pack, _ = self.fixed("pack", ["h" if field.kind == "string" else "i"])
            self.line(f"{out} += {pack}(-1)")

    def emit_content(self, field: Field, out: str) -> None:
        """Write `value`, which is not null."""
        if field.kind == "struct":
            assert field.struct is not None
            self.line(f"{self.function_of(field.struct)}(value, {out}, cuts)")
        elif field.kind == "string":
            self.line("value = value.encode()")
            self.emit_length(field, out, "len(value)")
            self.line(f"{out} += value")
        elif field.kind == "binary":
            self.emit_length(field, out, "len(value)")
            self.line(f"{out} += value")
        elif field.kind == "records":
            self.emit_length(field, out, "buffers_length(value)")
            self.line(f"cuts.append((len({out}), value))")
        else:
            self.emit_array(field, out)

    def emit_length(self, field: Field, out: str, length: str) -> None:
        if not (self.flexible and field.compact):
            pack, _ = self.fixed("pack", ["h" if field.kind == "string" else "i"])
            self.line(f"{out} += {pack}({length})")
            return
        self.line(f"n = {length} + 1")
        with self.block("if n < 128:"):
            self.line(f"{out}.append(n)")
        with self.block("else:"):
            write = "string_length_bytes" if field.kind == "string" else "uvarint_bytes"
            self.line(f"{out} += {write}(n)")

    def emit_array(self, field: Field, out: str) -> None:
        element = field.element
        assert element is not None
        self.emit_length(field, out, "len(value)")
        if element.kind in _CODES and element.kind != "uuid":
            pack, _ = self.array("pack", element)
            self.line(f"{out} += {pack}[len(value)](*value)")
            return
        with self.block("for item in value:"):
            if element.kind == "uuid":
                self.line(f"{out} += item")
            elif element.kind == "struct":
                assert element.struct is not None
                self.line(f"{self.function_of(element.struct)}(item, {out}, cuts)")
            else:
                if element.kind == "string":
                    self.line("item = item.encode()")
                self.emit_length(element, out, "len(item)")
                self.line(f"{out} += item")

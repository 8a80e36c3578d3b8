"""Message classes for tests: all of them, samples, and Hypothesis strategies derived from declarations.

everything()                   every class that is declared as a message of its own
full(cls)                      one object with no field left at its default
messages(cls)                  a strategy for objects of any version
as_of(message, version)        the part of a message that the version can carry
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, TypeVar

from hypothesis import strategies as st

from pykafka_broker.protocol import messages as package
from pykafka_broker.protocol.fields import REQUIRED, ZERO_UUID, Field, blank, schema_of
from pykafka_broker.protocol.schema import Message

M = TypeVar("M")

INTEGERS = {"i8": (-(2**7), 2**7 - 1), "i16": (-(2**15), 2**15 - 1), "u16": (0, 2**16 - 1)}
INTEGERS |= {"u32": (0, 2**32 - 1), "i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1)}
ZEROS = {"boolean": False, "uuid": ZERO_UUID, "string": "", "binary": b"", "records": b"", "f64": 0.0}


def declared() -> list[type]:
    """Every declared class, nested structs included."""
    names = [module.name for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
    modules = [importlib.import_module(name) for name in names]
    found = {
        value: None
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Message) and value.__module__ == module.__name__
    }
    return list(found)


def everything() -> list[type]:
    """Every class that is a message of its own."""
    return [cls for cls in declared() if schema_of(cls).versions]


def messages(cls: type[M]) -> st.SearchStrategy[M]:
    """Objects of `cls` with any value in any field."""
    fields = {field.name: _values(field) for field in schema_of(cls).fields}
    return st.builds(cls, **fields)


def _values(field: Field) -> st.SearchStrategy[Any]:
    values = _present(field)
    if field.nullable or field.default is None:
        return st.none() | values
    return values


def _present(field: Field) -> st.SearchStrategy[Any]:
    if field.kind in INTEGERS:
        return st.integers(*INTEGERS[field.kind])
    if field.kind == "boolean":
        return st.booleans()
    if field.kind == "f64":
        return st.floats(allow_nan=False)
    if field.kind == "uuid":
        return st.binary(min_size=16, max_size=16)
    if field.kind == "string":
        return st.text(max_size=3) | st.just("x" * 200)
    if field.kind in ("binary", "records"):
        return st.binary(max_size=3) | st.just(b"x" * 200)
    if field.kind == "struct":
        assert field.struct is not None
        return messages(field.struct)
    assert field.element is not None
    return st.lists(_present(field.element), max_size=2)


def full(cls: type[M]) -> M:
    """An object of `cls` in which every field has a value that is neither null nor its default."""
    return cls(**{field.name: _some(field) for field in schema_of(cls).fields})


def _some(field: Field) -> Any:
    if field.kind in INTEGERS:
        return 5
    if field.kind == "boolean":
        return not field.default if field.default is not REQUIRED else True
    if field.kind == "array":
        assert field.element is not None
        return [_some(field.element), _some(field.element)]
    if field.kind == "struct":
        assert field.struct is not None
        return full(field.struct)
    return {"f64": 2.5, "uuid": bytes(range(16)), "string": "name", "binary": b"data", "records": b"batch"}[
        field.kind
    ]


def as_of(message: M, version: int) -> M:
    """A copy with defaults where `version` has no such field, and zeros where it knows no null."""
    values = {}
    for field in schema_of(message).fields:
        value = getattr(message, field.name)
        if version not in field.versions:
            value = field.default
            assert value is not REQUIRED, f"{field.name} may be absent and has no default"
        elif value is None:
            tagged_struct = field.tag is not None and field.kind == "struct"
            if version not in field.nullable and not tagged_struct:
                value = _zero(field, version)
        elif field.kind == "struct":
            value = as_of(value, version)
        elif field.kind == "array" and field.element is not None and field.element.kind == "struct":
            value = [as_of(item, version) for item in value]
        values[field.name] = value
    return type(message)(**values)


def _zero(field: Field, version: int) -> Any:
    if field.kind == "struct":
        assert field.struct is not None
        return as_of(blank(field.struct), version)
    return [] if field.kind == "array" else ZEROS[field.kind]

"""Spoil what a broker said: the proof that a conversation can fail.

Every compared answer of a sabotaged side gets another error code or, without one, another number. The
comparison has to notice that beside an honest side, and the conversation's own expectations even without.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pykafka_broker.protocol.fields import schema_of

NUMBERS = ("i8", "i16", "u16", "i32", "i64")


def spoil_error(message: Any, version: int) -> bool:
    """Change the first error code; False if there is none."""
    for holder, name in places(message, version):
        if name.endswith("error_code"):
            setattr(holder, name, 0 if getattr(holder, name) else -1)
            return True
    return False


def spoil_number(message: Any, version: int) -> bool:
    """Change the first number; False if there is none."""
    for holder, name in places(message, version):
        setattr(holder, name, getattr(holder, name) ^ 1)
        return True
    return False


def places(message: Any, version: int) -> Iterator[tuple[Any, str]]:
    """The structs of a message and the names of their fields that hold a number."""
    for declared in schema_of(message).fields:
        value = getattr(message, declared.name)
        if version not in declared.versions or value is None:
            continue
        if declared.kind == "array" and declared.element is not None and declared.element.kind == "struct":
            for each in value:
                yield from places(each, version)
        elif declared.kind == "struct":
            yield from places(value, version)
        elif declared.kind in NUMBERS:
            yield message, declared.name

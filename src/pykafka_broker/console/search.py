"""What is looked for in records: a text in some part, or a value at a path of a decoded value. Pure.

A path is a part of JSONPath: `$.customer.names[0]`, of which `$.` may be left out.
"""

from __future__ import annotations

import json
import re

from pykafka_broker.system.named_tuple import NamedTuple

#: The parts of a record that may be searched.
PARTS = ("anywhere", "key", "value", "headers")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,9})\]")
_ABSENT = object()


class PathError(Exception):
    """A text is not a path."""


def parse_path(text: str) -> tuple[str | int, ...]:
    """The steps of a path, names and numbers.

    Raises:
        PathError: the text is not a path.
    """
    at = 1 if text.startswith("$") else 0
    steps: list[str | int] = []
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            raise PathError(f"{text!r} is no path: write customer.names[0]")
        steps.append(step[1] if step[2] is None else int(step[2]))
        at = step.end()
    return tuple(steps)


class Search(NamedTuple):
    """The records that are wanted; all of them, if nothing is asked for."""

    text: str = ""
    part: str = PARTS[0]
    #: The steps of a path; none for the whole value.
    path: tuple[str | int, ...] = ()
    #: The value at the path as JSON or text; "" if any will do.
    equals: str = ""

    def matches(self, key: str, value: str, headers: str, decoded: object) -> bool:
        """Whether a record is wanted, by the texts of its parts and its decoded value."""
        if self.text:
            parts = {"key": key, "value": value, "headers": headers}
            looked_at = parts.values() if self.part == PARTS[0] else (parts[self.part],)
            if not any(self.text.lower() in part.lower() for part in looked_at):
                return False
        if not self.path and not self.equals:
            return True
        # A value that was not decoded is its text.
        found = value if decoded is None and not self.path else at_path(decoded, self.path)
        if found is _ABSENT:
            return False
        return self.equals in ("", found) or self.equals == json.dumps(found, default=str, ensure_ascii=False)


def at_path(value: object, path: tuple[str | int, ...]) -> object:
    """What a value has at a path."""
    for step in path:
        if isinstance(value, list):
            value = value[step] if isinstance(step, int) and step < len(value) else _ABSENT
        else:
            value = value.get(step, _ABSENT) if isinstance(value, dict) else _ABSENT
    return value

r"""Java's named character classes in a regular expression, translated for Python.

    \p{Alpha}[\p{Alnum}\P{Punct}]   ->   [a-zA-Z][a-zA-Z0-9...]

The POSIX classes (`Lower`, `Upper`, `ASCII`, `Alpha`, `Digit`, `Alnum`, `Punct`, `Graph`, `Print`, `Blank`,
`Cntrl`, `XDigit`, `Space`) contain only ASCII characters, and Unicode's categories (`\p{L}`, `\pL`, `\p{Lu}`)
those of all scripts, both as in Java. Left out on purpose: scripts, blocks and Java's own classes
(`\p{IsLatin}`, `\p{javaUpperCase}`).
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import cache
from itertools import groupby

#: The first and the last of consecutive characters.
Range = tuple[int, int]

_POSIX = {
    "Lower": "az",
    "Upper": "AZ",
    "ASCII": "\0\x7f",
    "Alpha": "AZaz",
    "Digit": "09",
    "Alnum": "09AZaz",
    "Punct": "!/:@[`{~",
    "Graph": "!~",
    "Print": " ~",
    "Blank": "\t\t  ",
    "Cntrl": "\0\x1f\x7f\x7f",
    "XDigit": "09AFaf",
    "Space": "\t\r  ",
}
#: Unicode's categories: the second letters by the first one.
_CATEGORIES = {"L": "ultmo", "M": "nce", "N": "dlo", "Z": "slp", "C": "cfosn", "P": "dsecoif", "S": "mcko"}
#: A class, another escape, and where a set of characters begins and ends.
_TOKEN = re.compile(r"\\(?P<kind>[pP])(?:\{(?P<name>\w*)\}|(?P<letter>[A-Z]))|\\.|\[\^?\]?|\]", re.DOTALL)


def with_python_classes(pattern: str) -> str:
    """The pattern without Java's classes.

    Raises:
        ValueError: there is no such class.
    """
    is_in_set = False

    def translated(token: re.Match[str]) -> str:
        nonlocal is_in_set
        text = token[0]
        if token["kind"]:
            written = _written(_ranges(token["name"] or token["letter"] or "", token["kind"] == "P"))
            return written if is_in_set else f"[{written}]"
        if text == "]" or (is_in_set and text.endswith("]") and text[0] != "\\"):
            is_in_set = False
        elif text[0] == "[":
            # A `]` right after it is a character of the set.
            is_in_set = True
        return text

    return _TOKEN.sub(translated, pattern)


@cache
def _ranges(name: str, is_negated: bool) -> tuple[Range, ...]:
    if is_negated:
        return tuple(_others(_ranges(name, False)))
    if name in _POSIX:
        ends = [ord(end) for end in _POSIX[name]]
        return tuple(zip(ends[::2], ends[1::2], strict=True))
    if name[:1] not in _CATEGORIES or name[1:] not in ("", *_CATEGORIES[name[0]]):
        raise ValueError(f"unknown class of characters {{{name}}}")
    return tuple(row for category, row in _rows() if category.startswith(name))


@cache
def _rows() -> tuple[tuple[str, Range], ...]:
    """All characters, as ranges of the same category: the category and the range."""
    rows, first = [], 0
    for category, members in groupby(map(unicodedata.category, map(chr, range(sys.maxunicode + 1)))):
        after = first + sum(1 for _ in members)
        rows.append((category, (first, after - 1)))
        first = after
    return tuple(rows)


def _others(ranges: Iterable[Range]) -> Iterable[Range]:
    after = 0
    for first, last in ranges:
        if first > after:
            yield after, first - 1
        after = last + 1
    if after <= sys.maxunicode:
        yield after, sys.maxunicode


def _written(ranges: Iterable[Range]) -> str:
    return "".join(rf"\U{first:08x}-\U{last:08x}" for first, last in ranges)

"""Numbers and names in sentences for people."""

from __future__ import annotations

#: The most characters of a text from outside in a log line.
MOST_CHARACTERS = 300


def counted(number: int, singular: str, plural: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def listed(names: list[str], most: int = 3) -> str:
    """The first names, separated by commas, and the number of the others."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def cut(text: str, most: int = MOST_CHARACTERS) -> str:
    """The text, cut to at most `most` characters."""
    return text if len(text) <= most else f"{text[:most]}..."


def printable(text: str) -> str:
    """Text with control characters and line ends escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

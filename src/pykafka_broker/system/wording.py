"""Numbers and names in sentences for people."""

from __future__ import annotations

#: So many characters of a text that others have chosen stand in a line of the log.
MOST_CHARACTERS = 300


def counted(number: int, singular: str, plural: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def listed(names: list[str], most: int = 3) -> str:
    """A few names as a sentence has them, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def cut(text: str, most: int = MOST_CHARACTERS) -> str:
    """Text that others have chosen, no longer than a line may have it."""
    return text if len(text) <= most else f"{text[:most]}..."


def printable(text: str) -> str:
    """Text without anything that a terminal obeys, or that ends a line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

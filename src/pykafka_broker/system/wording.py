"""Numbers in sentences for people."""

from __future__ import annotations


def counted(number: int, singular: str, plural: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"

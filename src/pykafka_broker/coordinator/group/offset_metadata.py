"""How long the text beside an offset is."""

from __future__ import annotations


def utf16_length(text: str | None) -> int:
    """The length as Java counts it, in UTF-16 units; none has none."""
    if not text:
        return 0
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2

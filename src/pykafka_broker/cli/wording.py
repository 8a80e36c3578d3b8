"""Sizes in sentences for people, and sentences for their terminals."""

from __future__ import annotations

from pykafka_broker.system.wording import printable


def human_size(count: float) -> str:
    """Bytes for a person, in powers of ten, as `12.3 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def printable_lines(text: str) -> str:
    """Text in which only line ends and tabs are left of the characters that control a terminal."""
    if text.isprintable():
        return text
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def folded(text: str, width: int) -> str:
    """Text whose wide lines are broken between words; continuation lines are indented like the first."""
    import textwrap

    lines = []
    for line in text.split("\n"):
        words = line.lstrip()
        indent = line[: len(line) - len(words)]
        wrapper = textwrap.TextWrapper(
            width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines.append(wrapper.fill(words))
    return "\n".join(lines)

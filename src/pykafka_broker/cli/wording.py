"""Sizes and times in sentences for people, and sentences for their terminals."""

from __future__ import annotations

import re

from pykafka_broker.system.wording import printable

#: Control characters but tabs, and those but line ends; also what UTF-8 cannot hold.
_IN_LINES, _IN_TEXTS = (
    re.compile("[\0-\x08\n-\x1f\x7f-\x9f\ud800-\udfff]"),
    re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]"),
)


def human_size(count: float) -> str:
    """Bytes for a person, in powers of ten, as `12.3 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def record_time(timestamp_ms: int) -> str | None:
    """The time of a record, in local time; its producer may have set any number."""
    from datetime import datetime

    if timestamp_ms < 0:
        return None
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000).isoformat(" ", "seconds")
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)


def one_line(text: str) -> str:
    """A line with its control characters escaped, line ends too, but for tabs: a name from outside can end no
    line and control no terminal that the line reaches through a pipe.
    """
    return _IN_LINES.sub(_escaped, text)


def harmless(text: str) -> str:
    """Text of one line or several with its control characters escaped, but for tabs and line ends."""
    return _IN_TEXTS.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return printable(found[0])


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

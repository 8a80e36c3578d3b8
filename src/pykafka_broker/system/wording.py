"""Numbers, times and names in sentences for people, and names in commands that they paste."""

from __future__ import annotations

import shlex

#: The most characters of a text from outside in a log line.
MOST_CHARACTERS = 300

MS_PER_DAY, MS_PER_HOUR, MS_PER_MINUTE, MS_PER_S = 86_400_000, 3_600_000, 60_000, 1_000


def counted(number: int, singular: str, plural: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def duration(ms: int) -> str:
    """Milliseconds for a person, in the largest unit that they fill."""
    for unit, name in ((MS_PER_DAY, "d"), (MS_PER_HOUR, "h"), (MS_PER_MINUTE, "min"), (MS_PER_S, "s")):
        if ms >= unit:
            return f"{ms / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{ms} ms"


def client_in_words(client_id: str | None, principal: str, host: str) -> str:
    """A client at the beginning of a sentence; its host may be as Kafka shows it, with a slash."""
    return f"Client {client_id or '<unknown>'} ({principal}, {host.removeprefix('/')})"


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


def argument(name: str) -> str:
    """A name that others chose, as an argument of a command that can be pasted into bash."""
    if name.isprintable():
        return shlex.quote(name)
    return "$'" + "".join(_escaped(character) for character in name) + "'"


def _escaped(character: str) -> str:
    if character in "'\\":
        return "\\" + character
    return character if character.isprintable() else f"\\U{ord(character):08x}"

"""The width of a terminal, and whether it takes colours."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import IO

#: Columns of a terminal that does not say how wide it is.
DEFAULT_WIDTH = 80


def terminal_width(stream: IO[str]) -> int:
    """The columns of the terminal that a stream goes to, unless COLUMNS says otherwise."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    with suppress(OSError, ValueError):
        return os.get_terminal_size(stream.fileno()).columns or DEFAULT_WIDTH
    return DEFAULT_WIDTH


def wants_colour(stream: IO[str], environ: Mapping[str, str]) -> bool:
    """Whether to write colours to a stream, by NO_COLOR, FORCE_COLOR, CLICOLOR and TERM."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR") or environ.get("CLICOLOR_FORCE", "0") != "0":
        return True
    if environ.get("CLICOLOR") == "0" or environ.get("TERM", "").lower() in ("dumb", "unknown"):
        return False
    return stream.isatty()

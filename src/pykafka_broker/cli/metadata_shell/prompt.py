"""A prompt: lines with history and completion by Python's readline, if Python has it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType

readline: ModuleType | None
try:
    import readline
except ImportError:  # Windows, or a Python that was built without it
    readline = None

PROMPT = ">> "
#: Lines that arrow keys go back to.
HISTORY_LINES = 1_000

#: Given what stands before the word and the word: what it may become.
Complete = Callable[[str, str], list[str]]


def typed_lines(complete: Complete) -> Iterator[str]:
    """The lines that a person types, until end of file. Ctrl-C gives up a line."""
    if readline is not None:
        _prepare(readline, complete)
    while True:
        try:
            yield input(PROMPT)
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            print("^C")


def _prepare(library: ModuleType, complete: Complete) -> None:
    found: list[str] = []

    def candidate(text: str, number: int) -> str | None:
        if number == 0:
            before = library.get_line_buffer()[: library.get_begidx()]
            found[:] = complete(before, text)
        return found[number] if number < len(found) else None

    library.set_completer(candidate)
    library.set_completer_delims(" \t")
    library.set_history_length(HISTORY_LINES)
    is_editline = "libedit" in (library.__doc__ or "")
    with suppress(OSError):
        library.parse_and_bind("bind ^I rl_complete" if is_editline else "tab: complete")


def scripted_lines() -> Iterator[str]:
    """The lines of standard input."""
    for line in sys.stdin:
        yield line.rstrip("\n")

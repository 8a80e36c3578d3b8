"""File descriptors kept for the moment when the process has no other left.

A log that must roll a segment then needs some, and so does turning a new client away: it has to be accepted
to be closed. One that is given back here can be had there at once. That they are few is why `on_short` is
told: the owner can close files that can be opened again later.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

Result = TypeVar("Result")

#: What the system says when the process, or the machine, may open no more files.
EXHAUSTED_ERRORS = frozenset({errno.EMFILE, errno.ENFILE})


class DescriptorReserve:
    """Some descriptors, open on nothing. Any thread."""

    def __init__(self, on_short: Callable[[], object] = lambda: None) -> None:
        #: Called whenever a descriptor is lent, or cannot be, in the thread that needs it.
        self.on_short = on_short
        self._size = 0
        self._held: list[int] = []
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """How many can be lent now."""
        return len(self._held)

    def hold(self, size: int) -> None:
        """Keep so many from now on; 0 gives all back."""
        with self._lock:
            self._size = size
            while len(self._held) > size:
                os.close(self._held.pop())
        self.refill()

    def refill(self) -> None:
        """Take back what was lent, as far as there are descriptors."""
        with self._lock, suppress(OSError):
            while len(self._held) < self._size:
                self._held.append(os.open(os.devnull, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)))

    def lend(self) -> bool:
        """Let the next call that opens something have a descriptor; False if none is left."""
        with self._lock:
            is_lent = bool(self._held)
            if is_lent:
                # The lowest: a limit that was lowered meanwhile may forbid the others.
                self._held.sort(reverse=True)
                os.close(self._held.pop())
        if self._size:
            self.on_short()
        return is_lent

    def use(self, open_: Callable[[], Result]) -> Result:
        """Open something, with a descriptor of the reserve if there is no other."""
        while True:
            try:
                return open_()
            except OSError as error:
                if error.errno not in EXHAUSTED_ERRORS or not self.lend():
                    raise

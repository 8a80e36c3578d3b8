"""File descriptors kept for the time when the process has no others left.

A log needs some to roll a segment, and refusing a client needs one, because a connection must be accepted
before it can be closed. The reserve lends its descriptors for that. When all are lent, the owner closes files
that can be opened again later, and the freed descriptors fill the reserve first. New clients are accepted
only while the reserve is full.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

Result = TypeVar("Result")

#: The errors when the process, or the machine, may open no more files.
EXHAUSTED_ERRORS = frozenset({errno.EMFILE, errno.ENFILE})
#: The most attempts to close files for one open call, because other threads may take the descriptors.
MAX_RECLAIMS = 5


class DescriptorReserve:
    """Some descriptors, open on `os.devnull`. Any thread."""

    def __init__(
        self,
        on_short: Callable[[], object] = lambda: None,
        close_files: Callable[[], object] = lambda: None,
    ) -> None:
        #: Called in the thread that needs a descriptor whenever one is lent, or none is left.
        self.on_short = on_short
        #: Closes files that can be opened again; called in the thread that needs a descriptor if all are
        #: lent.
        self.close_files = close_files
        self._size = 0
        self._held: list[int] = []
        self._lock = threading.Lock()
        #: Held while files are closed, so that other threads need not close more.
        self._reclaim_lock = threading.Lock()

    @property
    def held(self) -> int:
        """The number of descriptors that can be lent now."""
        return len(self._held)

    def hold(self, size: int) -> None:
        """Keep `size` descriptors; 0 releases all."""
        with self._lock:
            self._size = size
            while len(self._held) > size:
                os.close(self._held.pop())
        self.refill()

    def refill(self) -> bool:
        """Replace the lent descriptors, as far as possible; return whether the reserve is full."""
        with self._lock, suppress(OSError):
            while len(self._held) < self._size:
                self._held.append(os.open(os.devnull, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)))
        return len(self._held) >= self._size

    def lend(self) -> bool:
        """Free a descriptor for the next call that opens something; False if none is left."""
        with self._lock:
            is_lent = bool(self._held)
            if is_lent:
                # The lowest: if the limit has been lowered meanwhile, higher ones may be forbidden.
                self._held.sort(reverse=True)
                os.close(self._held.pop())
        if self._size:
            self.on_short()
        return is_lent

    def use(self, open_: Callable[[], Result]) -> Result:
        """Open something; if no descriptor is free, with one of the reserve or of a file closed for it."""
        reclaims = 0
        while True:
            try:
                return open_()
            except OSError as error:
                if error.errno not in EXHAUSTED_ERRORS:
                    raise
                if not self.lend():
                    reclaims += 1
                    if reclaims > MAX_RECLAIMS or not self._reclaim():
                        raise

    def _reclaim(self) -> bool:
        """Close files, and lend one of the freed descriptors; False if there is none."""
        with self._reclaim_lock:
            if not self._held:
                self.close_files()
                self.refill()
        return self.lend()

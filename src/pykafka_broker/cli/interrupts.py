"""Ctrl-C and SIGTERM for commands that run until they are told to stop.

A signal may come between any two steps, and must not interrupt a step: a record would be counted but not
printed, or an answer left unread. So the first signal only asks the command to stop, and cuts short nothing
but waits; a second one ends the command at once.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Notes signals while it is entered."""

    def __init__(self) -> None:
        #: The signal that came; 0 before there was one.
        self.number = 0
        self._is_waiting = False
        self._before: dict[int, Callable[[int, FrameType | None], Any] | int | None] = {}

    @property
    def exit_status(self) -> int:
        """The status that a shell reports for a process ended by the signal; 0 without a signal."""
        return 128 + self.number if self.number else 0

    def __enter__(self) -> Interrupts:
        # An ignored signal stays ignored: Ctrl-C must not reach a shell's background jobs.
        self._before = {
            number: signal.signal(number, self._on_signal)
            for number in SIGNALS
            if signal.getsignal(number) is not signal.SIG_IGN
        }
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        is_second = bool(self.number)
        self.number = number
        if is_second or self._is_waiting:
            raise KeyboardInterrupt

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """In this context a signal, even one that came before it, raises KeyboardInterrupt."""
        self._is_waiting = True
        try:
            if self.number:
                raise KeyboardInterrupt
            yield
        finally:
            self._is_waiting = False

"""The progress of work that takes longer than a second, or what it waits for, on standard error.

A bar is shown on a terminal only, and not if results are printed to the same terminal meanwhile. If progress
is asked for and no bar can be drawn, there is one line a second.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING

import click

from pykafka_broker.cli.terminal import wants_colour
from pykafka_broker.cli.wording import human_size

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

#: Shorter work needs no bar.
SHOWN_AFTER_S = 1.0
#: The interval of lines that show progress instead of a bar.
LINE_INTERVAL_S = 1.0
ERASE_LINE = "\r\x1b[K"


class Shown(Enum):
    """The forms in which progress is shown."""

    NOT = "not"
    BAR = "bar"
    LINES = "lines"


def shown(*, is_asked: bool = False, results_come: bool = False) -> Shown:
    """The form in which to show progress; `results_come`: results are printed meanwhile."""
    if sys.stderr.isatty() and not (results_come and sys.stdout.isatty()):
        return Shown.BAR
    return Shown.LINES if is_asked else Shown.NOT


class Progress:
    """Counts bytes, and records if the work is on records; a bar needs the total of one of them."""

    def __init__(
        self, title: str, how: Shown, total_bytes: int | None = None, total_records: int | None = None
    ) -> None:
        self.title = title
        self.how = how
        self.total_bytes = total_bytes
        self.total_records = total_records
        self.bytes = 0
        self.records = 0
        self._started_s = self._told_s = time.monotonic()
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def advance(self, count: int, records: int = 0) -> None:
        """Count bytes and records that are done."""
        self.bytes += count
        self.records += records
        if self.how is Shown.NOT:
            return
        now = time.monotonic()
        if self.how is Shown.LINES:
            if now - self._told_s >= LINE_INTERVAL_S:
                self._told_s = now
                click.echo(f"{self.title}: {self.text()}", err=True)
        elif self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._completed, rate=self.text())
        elif now - self._started_s >= SHOWN_AFTER_S:
            self._draw()

    @property
    def _completed(self) -> int:
        return self.bytes if self.total_records is None else self.records

    def text(self) -> str:
        """Counts and rates so far."""
        seconds = max(time.monotonic() - self._started_s, 1e-3)
        size = f"{human_size(self.bytes)}, {human_size(self.bytes / seconds)}/s"
        if not self.records:
            return size
        return f"{self.records} records, {self.records / seconds:.0f}/s, {size}"

    def close(self) -> None:
        """Remove the bar; or print a last line with the totals."""
        if self._bar is not None:
            self._bar.stop()
        elif self.how is Shown.LINES:
            click.echo(f"{self.title}: {self.text()}", err=True)

    def _draw(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns: list[ProgressColumn] = [TextColumn("{task.description}", markup=False)]
        total = self.total_bytes if self.total_records is None else self.total_records
        if total is not None:
            columns += [BarColumn(), TimeRemainingColumn()]
        columns.append(TextColumn("{task.fields[rate]}", markup=False))
        console = Console(
            stderr=True, color_system="standard" if wants_colour(sys.stderr, os.environ) else None
        )
        self._bar = RichProgress(*columns, console=console, transient=True)
        self._bar.start()
        self._task = self._bar.add_task(self.title, total=total, completed=self._completed, rate=self.text())


@contextmanager
def progress(
    title: str, how: Shown, total_bytes: int | None = None, total_records: int | None = None
) -> Iterator[Progress]:
    """Show the progress of work while it goes on."""
    telling = Progress(title, how, total_bytes, total_records)
    try:
        yield telling
    finally:
        telling.close()


@contextmanager
def waiting_for(what: str) -> Iterator[None]:
    """Show on a terminal what is being waited for, if that takes longer than a second."""
    if not sys.stderr.isatty():
        yield
        return
    # Only a terminal pays for a thread.
    import threading

    told = []

    def tell() -> None:
        told.append(what)
        click.echo(f"Waiting for {what} ...", nl=False, err=True)

    timer = threading.Timer(SHOWN_AFTER_S, tell)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if told:
            click.echo(ERASE_LINE, nl=False, err=True, color=True)

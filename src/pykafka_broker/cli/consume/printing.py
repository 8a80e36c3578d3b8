"""The loop: prints records as they come, and acknowledges them to the cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Protocol

from pykafka_broker.cli import progress
from pykafka_broker.cli.consume.lines import JsonOutput, TextOutput
from pykafka_broker.cli.consume.reader import ReadRecord
from pykafka_broker.cli.interrupts import Interrupts


class Source(Protocol):
    """A source of records."""

    @property
    def bytes(self) -> int:
        """Bytes of the answers so far."""
        ...

    @property
    def is_finished(self) -> bool:
        """Whether all records have come."""
        ...

    @property
    def distance(self) -> int | None:
        """The number of records to come, if that is known."""
        ...

    def poll(self) -> Iterator[ReadRecord]:
        """The records that one round brings."""
        ...


class Commitments(Protocol):
    """Commits or acknowledges printed records."""

    @property
    def refused(self) -> Iterable[str]:
        """The commits or acknowledgements that the cluster has refused."""
        ...

    def maybe_commit(self) -> None:
        """Commit if it is time."""
        ...

    def commit(self) -> None:
        """Commit now, at the end."""
        ...


class Printer:
    """Prints the records of a reader, and commits those printed."""

    def __init__(
        self,
        reader: Source,
        show: TextOutput | JsonOutput,
        commits: Commitments,
        interrupts: Interrupts,
    ) -> None:
        self.reader = reader
        self.show = show
        self.commits = commits
        self.interrupts = interrupts
        self.count = 0
        self._out = sys.stdout.buffer

    def run(self, max_messages: int | None, idle_s: float | None, telling: progress.Progress) -> None:
        """Print records until every partition has reached its end, `max_messages` are printed, or nothing
        came for `idle_s`.

        Raises:
            KeyboardInterrupt: a signal came.
        """
        last_came = time.monotonic()
        while not self.reader.is_finished:
            count, size = self.count, self.reader.bytes
            for record in self.reader.poll():
                self._out.write(self.show.line(record))
                self.count += 1
                if self.count == max_messages or self.interrupts.number:
                    return
            self._out.flush()
            telling.advance(self.reader.bytes - size, self.count - count)
            self.commits.maybe_commit()
            if self.count > count:
                last_came = time.monotonic()
            elif idle_s is not None and time.monotonic() - last_came >= idle_s:
                return

    def end(self) -> None:
        """Commit the printed records."""
        self._out.flush()
        self.commits.commit()

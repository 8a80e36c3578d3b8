"""Files that appends need, made in threads.

A roll or a new leader epoch makes a file before the append, which may wait for the disk longer than any write
does. An append on the event loop returns `NamesDue` instead; a thread makes the file, and then the append is
repeated.

After a change of leader, or in a new topic, each partition of a request needs a file. All files due in one
turn of the event loop are one job per directory. One job per file would interrupt a busy event loop once per
file, and parallel jobs wait for each other: a thousand files took one thread 0.19 s of processor time, three
threads 0.58 s (CPython 3.11, two cores).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar, Union

from pykafka_broker.log.disk.files import directory_name
from pykafka_broker.log.partition.rolling import NamesDue, Roller
from pykafka_broker.log.segment.segment import Segment
from pykafka_broker.machine.threads import RunOnDisk
from pykafka_broker.protocol.errors import KafkaError

#: The outcome for a log: the segment to go on in, if one was due, or the error.
_Made = Union[Segment, OSError, None]

Result = TypeVar("Result")


class DeferredFiles:
    """Makes the files that appends wait for. Event loop only."""

    def __init__(self, run_awaited: RunOnDisk) -> None:
        self._run_awaited = run_awaited
        #: By log, files being made or due in this turn; the result is the error, or None.
        self._making: dict[Roller, asyncio.Future[KafkaError | None]] = {}
        #: Files due in this turn of the event loop.
        self._due: list[NamesDue] = []
        self._jobs: set[asyncio.Task[None]] = set()

    @property
    def under_way(self) -> list[asyncio.Future[KafkaError | None]]:
        """The work that a stop has to wait for."""
        return list(self._making.values())

    def repeat(self, due: NamesDue, append: Callable[[], Result | NamesDue]) -> asyncio.Future[Result]:
        """Have a thread make the files that an append missed, then repeat the append; its result.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, the disk refuses, or the partition was deleted; or the error of
                the append.
        """
        return asyncio.ensure_future(self._repeat(self._begin(due), append))

    async def _repeat(
        self, made: asyncio.Future[KafkaError | None], append: Callable[[], Result | NamesDue]
    ) -> Result:
        while True:
            await asyncio.wait((made,))
            error = made.result()
            if error is not None:
                raise error
            result = append()
            if not isinstance(result, NamesDue):
                return result
            made = self._begin(result)

    async def make(self, due: NamesDue) -> None:
        """Have a thread make the files that an append would miss.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, the disk refuses, or the partition was deleted.
        """
        [error] = await self.make_all((due,))
        if error is not None:
            raise error

    async def make_all(self, dues: Iterable[NamesDue]) -> list[KafkaError | None]:
        """As `make` for many appends at once; for each of them the error that `make` would raise, or None."""
        made = [self._begin(due) for due in dues]
        if made:
            await asyncio.wait(made)
        return [each.result() for each in made]

    def _begin(self, due: NamesDue) -> asyncio.Future[KafkaError | None]:
        roller = due.roller
        made = self._making.get(roller)
        if made is None:
            loop = asyncio.get_running_loop()
            roller.makes_names = True
            made = self._making[roller] = loop.create_future()
            if not self._due:
                loop.call_soon(self._start)
            self._due.append(due)
        return made

    def _start(self) -> None:
        """Hand what is due to a thread of each directory."""
        dues, self._due = self._due, []
        by_directory: defaultdict[str, list[NamesDue]] = defaultdict(list)
        for due in dues:
            by_directory[directory_name(due.roller.state.directory)].append(due)
        for log_dir, due_there in by_directory.items():
            job = asyncio.ensure_future(self._make(log_dir, due_there))
            self._jobs.add(job)
            job.add_done_callback(self._jobs.discard)

    async def _make(self, log_dir: str, dues: Sequence[NamesDue]) -> None:
        try:
            made = await self._run_awaited(log_dir, partial(_make_in_turn, dues))
        except asyncio.CancelledError:
            for due in dues:
                self._ends(due.roller).cancel()
            raise
        except Exception as error:
            for due in dues:
                self._ends(due.roller).set_exception(error)
            return
        for due, one in zip(dues, made, strict=True):
            self._go_on(due.roller, one)

    def _go_on(self, roller: Roller, made: _Made) -> None:
        """Give a log the segment made for it, and wake its appends."""
        refusal = None
        try:
            if isinstance(made, OSError):
                raise made
            if made is not None and not roller.state.closed:
                roller.adopt(made)
        except OSError as error:
            refusal = roller.names_refused(error)
        except Exception as error:
            self._ends(roller).set_exception(error)
            return
        self._ends(roller).set_result(refusal)

    def _ends(self, roller: Roller) -> asyncio.Future[KafkaError | None]:
        roller.makes_names = False
        return self._making.pop(roller)


def _make_in_turn(dues: Iterable[NamesDue]) -> list[_Made]:
    """The outcome of each. Worker thread."""
    made: list[_Made] = []
    for due in dues:
        try:
            made.append(due.roller.make_names(due.base_offset))
        except OSError as error:
            made.append(error)
    return made

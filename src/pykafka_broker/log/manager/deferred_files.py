"""Files that an append needs, made in a thread.

A roll or a new leader epoch makes a file before the append, which may wait for the disk longer than any write
does. An append on the event loop raises `NamesDue` instead; a thread makes the file, and then the append is
repeated.
"""

from __future__ import annotations

import asyncio
from functools import partial

from pykafka_broker.log.disk.files import directory_name
from pykafka_broker.log.partition.rolling import NamesDue, Roller
from pykafka_broker.machine.threads import RunOnDisk


class DeferredFiles:
    """Makes the files that appends wait for. Event loop only."""

    def __init__(self, run_awaited: RunOnDisk) -> None:
        self._run_awaited = run_awaited
        #: Logs whose files are being made.
        self._making: dict[Roller, asyncio.Future[None]] = {}

    @property
    def under_way(self) -> list[asyncio.Future[None]]:
        """The work that a stop has to wait for."""
        return list(self._making.values())

    async def make(self, due: NamesDue) -> None:
        """Have a thread make the files that an append has missed; the append is to be repeated then.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, the disk refuses, or the partition was deleted.
        """
        roller = due.roller
        task = self._making.get(roller)
        if task is None:
            roller.makes_names = True
            task = self._making[roller] = asyncio.ensure_future(self._make(roller, due.base_offset))
        await asyncio.shield(task)

    async def _make(self, roller: Roller, base_offset: int | None) -> None:
        state = roller.state
        try:
            log_dir = directory_name(state.directory)
            new = await self._run_awaited(log_dir, partial(roller.make_names, base_offset))
            if new is not None and not state.closed:
                roller.adopt(new)
        except OSError as error:
            raise roller.names_refused(error) from error
        finally:
            roller.makes_names = False
            del self._making[roller]

"""Files that an append needs, made in a thread.

A roll or a new leader epoch makes a file before the append, which may wait for the disk longer than any write
does. An append on the event loop raises `NamesDue` instead; a thread makes the file, and then the append is
repeated.
"""

from __future__ import annotations

import asyncio
from functools import partial

from pykafka_broker.log.disk.file_work import RunOnDisk
from pykafka_broker.log.disk.files import directory_name
from pykafka_broker.log.partition.partition_log import NamesDue, PartitionLog


class DeferredFiles:
    """Makes the files that appends wait for. Event loop only."""

    def __init__(self, run_awaited: RunOnDisk) -> None:
        self._run_awaited = run_awaited
        #: Logs whose files are being made.
        self._making: dict[PartitionLog, asyncio.Future[None]] = {}

    @property
    def under_way(self) -> list[asyncio.Future[None]]:
        """What a stop has to wait for."""
        return list(self._making.values())

    async def make(self, due: NamesDue) -> None:
        """Have a thread make what an append has missed; it is to be repeated then.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, the disk refuses, or the partition was deleted.
        """
        log: PartitionLog = due.log
        task = self._making.get(log)
        if task is None:
            log.makes_names = True
            task = self._making[log] = asyncio.ensure_future(self._make(log, due.base_offset))
        await asyncio.shield(task)

    async def _make(self, log: PartitionLog, base_offset: int | None) -> None:
        try:
            new = await self._run_awaited(directory_name(log.directory), partial(log.make_names, base_offset))
            if new is not None and not log.closed:
                log.adopt(new)
        except OSError as error:
            raise log.names_refused(error) from error
        finally:
            log.makes_names = False
            del self._making[log]

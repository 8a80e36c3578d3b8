"""Logs made as the metadata says: found again, taken over from a move, or made in a new folder.

`partition.metadata` is durable from the first flush on. A power cut before that may leave a log without its
topic id, perhaps one of a deleted topic of the same name. If the other replicas have all acknowledged
records, that log is set aside and copied from the leader again. Otherwise it is taken for the log of the
topic in the metadata, and the file is written again. Apache Kafka syncs the file before the first append, and
sets aside every log that has none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from pykafka_broker.log.disk.checkpoints import encode_partition_metadata
from pykafka_broker.log.disk.directories import LogDir
from pykafka_broker.log.disk.files import FileSystem, directory_name, join
from pykafka_broker.log.disk.names import PARTITION_METADATA
from pykafka_broker.log.manager.directory_failures import DirectoryFailures
from pykafka_broker.log.manager.log_folders import LogFolders, WantedLog
from pykafka_broker.log.manager.placement import Placement
from pykafka_broker.log.manager.registry import LogRegistry
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.machine.threads import RunOnDisk
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.topic_partition import PartitionKey

logger = logging.getLogger("kafka.log.LogManager")

#: If no log is made for this long, callers no longer wait for the rest.
MAKING_PATIENCE_S = 2.0


class LogNotMadeYet(KafkaError):
    """A thread is still making the log: ask again later. KAFKA_STORAGE_ERROR."""

    def __init__(self, wanted: WantedLog) -> None:
        log = f"{wanted.topic}-{wanted.partition}"
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, f"The disk has not made the log of {log} yet")


class LogCreation:
    """Makes the logs of one broker. Event loop only."""

    def __init__(
        self,
        files: FileSystem,
        registry: LogRegistry,
        folders: LogFolders,
        placement: Placement,
        failures: DirectoryFailures,
        *,
        run_awaited: RunOnDisk,
        set_aside: Callable[[PartitionLog], None],
    ) -> None:
        self._files = files
        self._registry = registry
        self._folders = folders
        self._placement = placement
        self._failures = failures
        self._run_awaited = run_awaited
        #: Takes the log of an earlier topic of the same name out of service.
        self._set_aside = set_aside
        #: Makers under way, one for each directory and call.
        self.makers: set[asyncio.Future[dict[PartitionKey, KafkaError]]] = set()
        #: The number of logs that threads have made.
        self._made = 0
        #: Logs that a thread is making, and the ids of their topics.
        self._being_made: dict[PartitionKey, bytes] = {}
        #: The number of new logs that keep their descriptors until idle files are closed: thousands may be
        #: made at once, long before their first records.
        self.max_open = 0
        self._open = 0

    def create(self, wanted: WantedLog) -> PartitionLog:
        """The log, made if there is none. Waits for the disk.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, see `Placement.dir_for` and `LogFolders.make`.
        """
        log = self._existing(wanted)
        if log is None:
            log_dir = self._placement.dir_for(wanted, self._placement.log_counts())
            log = self._folders.make(wanted, log_dir, stays_open=self._stays_open())
            self._registry.served[wanted.topic, wanted.partition] = log
        return log

    async def create_all(self, wanted: Sequence[WantedLog]) -> list[PartitionLog | KafkaError]:
        """As `create` for each, with the file work of new logs in worker threads: a log, or the error.

        If no log was made for `MAKING_PATIENCE_S`, the missing ones get `LogNotMadeYet`; a later call finds
        them.
        """
        made: dict[int, PartitionLog | KafkaError] = {}
        missing: dict[LogDir, list[WantedLog]] = {}
        counts = self._placement.log_counts()
        for number, one in enumerate(wanted):
            try:
                log = self._existing(one)
                if log is None:
                    log_dir = self._placement.dir_for(one, counts)
                    counts[log_dir.path] += 1
                    missing.setdefault(log_dir, []).append(one)
                else:
                    made[number] = log
            except KafkaError as error:
                made[number] = error

        makers = [asyncio.ensure_future(self._make_all(wanted, dir_)) for dir_, wanted in missing.items()]
        self.makers.update(makers)
        for maker in makers:
            maker.add_done_callback(self.makers.discard)
        await self._wait_for(makers)
        refused = {key: error for maker in makers if maker.done() for key, error in maker.result().items()}
        for number, one in enumerate(wanted):
            if number not in made:
                key = one.topic, one.partition
                log = self._registry.served.get(key)
                if log is not None and log.topic_id == one.topic_id:
                    made[number] = log
                else:
                    made[number] = refused.get(key) or LogNotMadeYet(one)
        return [made[number] for number in range(len(wanted))]

    async def _wait_for(self, makers: Sequence[asyncio.Future[Any]]) -> None:
        """Return when all logs are made, or none was made for `MAKING_PATIENCE_S`."""
        pending: set[asyncio.Future[Any]] = set(makers)
        made = -1
        while pending and made != self._made:
            made = self._made
            _, pending = await asyncio.wait(pending, timeout=MAKING_PATIENCE_S)

    async def _make_all(self, wanted: Sequence[WantedLog], log_dir: LogDir) -> dict[PartitionKey, KafkaError]:
        """Make logs in a directory and take them into service; the errors of those that could not be made."""
        refused: dict[PartitionKey, KafkaError] = {}
        made: list[PartitionLog] = []

        stay_open = [self._stays_open() for _ in wanted]

        def make() -> None:
            for one, stays_open in zip(wanted, stay_open, strict=True):
                try:
                    made.append(self._folders.make(one, log_dir, stays_open=stays_open))
                    self._made += 1
                except KafkaError as error:
                    refused[one.topic, one.partition] = error

        topic_ids = {(one.topic, one.partition): one.topic_id for one in wanted}
        self._being_made.update(topic_ids)
        served = self._registry.served
        try:
            await self._run_awaited(log_dir.path, make)
        finally:
            for log in made:
                key = log.topic, log.partition
                if self._being_made.get(key) == log.topic_id and key not in served:
                    served[key] = log
                else:  # deleted meanwhile
                    self._folders.remove(log)
            for key, topic_id in topic_ids.items():
                if self._being_made.get(key) == topic_id:
                    del self._being_made[key]
        return refused

    def _stays_open(self) -> bool:
        if self._open >= self.max_open:
            return False
        self._open += 1
        return True

    def idle_are_closed(self) -> None:
        """The files of idle logs, new ones included, are being closed."""
        self._open = 0

    def cancel(self, topic: str, partition: int) -> None:
        """The partition was deleted: a log that a thread is still making is removed afterwards."""
        self._being_made.pop((topic, partition), None)

    def _existing(self, wanted: WantedLog) -> PartitionLog | None:
        """The log that exists already, with the wanted topic id and configuration; None if there is none."""
        log = self._registry.served.get((wanted.topic, wanted.partition)) or self._orphan(wanted)
        if log is None:
            if (wanted.topic, wanted.partition) in self._being_made:
                raise LogNotMadeYet(wanted)
            return None
        if log.topic_id == ZERO_UUID and not wanted.may_begin_anew:
            logger.warning("%s: partition.metadata was lost, written again", log.directory)
            path = join(log.directory, PARTITION_METADATA)
            self._files.replace_file(path, encode_partition_metadata(wanted.topic_id), sync=False)
            log.identify(wanted.topic_id)
        if log.topic_id == wanted.topic_id:
            log.state.reconfigure(wanted.config)
            return log
        self._set_aside(log)
        return None

    def _orphan(self, wanted: WantedLog) -> PartitionLog | None:
        """The future log of a move whose source is not here, put in the source's place. None if there is
        none, or if the source is in a directory that is missing now.
        """
        key = wanted.topic, wanted.partition
        orphans = self._registry.orphans
        copy = orphans.get(key)
        if copy is None or copy.offline is not None:
            return None
        if self._placement.is_elsewhere(wanted.directory_id) and not wanted.may_begin_anew:
            logger.warning("%s waits for the log that it is filled from", copy.directory)
            return None
        logger.warning("%s is all there is of %s: it is served as it is", copy.directory, copy.name)
        try:
            copy.rename_folder(join(directory_name(copy.directory), copy.name))
        except OSError as error:
            self._failures.failed(self._folders.dir_of(copy), error)
            return None
        self._registry.served[key] = orphans.pop(key)
        return copy

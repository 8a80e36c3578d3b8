"""The life of this broker as the controller sees it: registered and fenced, unfenced, shut down (KIP-631).

The broker says which log directories have failed, which are cordoned, and where its replicas are (KIP-858);
the controller, in this process or elsewhere, decides what follows. Reports are sent in the background. One
that fails leaves a line in the log; the next one brings the newest state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, Protocol

from pykafka_broker.cluster.events import DirectoryAssignment, ProducerIdBlock
from pykafka_broker.cluster.image import RegisteredEndpoint
from pykafka_broker.log.disk.directories import LogDir, LogDirs
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.metadata.controller_channel import BrokerReports
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.raft.format import random_uuid

logger = logging.getLogger("kafka.server.BrokerServer")


class Replicas(Protocol):
    """The replicas of this broker."""

    def misplaced(self) -> list[DirectoryAssignment]:
        """The directories of the logs for which the controller has another directory, or none."""
        ...


class BrokerLifecycle:
    """Registers the broker and keeps the controller informed about it. Event loop only."""

    def __init__(self, controller: BrokerReports, dirs: LogDirs, replicas: Replicas) -> None:
        self._controller = controller
        self._dirs = dirs
        self._replicas = replicas
        #: Stands for this start of the broker. Every registration carries it: so the controller can tell one
        #: that is asked for again from another broker with the same id.
        self.incarnation_id = random_uuid()
        #: Given by the controller at registration; -1 before.
        self.broker_epoch = -1
        self._reports: set[asyncio.Task[None]] = set()

    async def register(
        self, listeners: Mapping[str, RegisteredEndpoint], *, rack: str | None, previous_broker_epoch: int
    ) -> None:
        """Register, fenced, with the directories that are in service; a second time amends the first.

        `previous_broker_epoch` is the epoch noted by the last clean stop, -1 if there is none.
        """
        self.broker_epoch = await self._controller.register_broker(
            incarnation_id=self.incarnation_id,
            listeners=listeners,
            directories=[d.directory_id for d in self._dirs.online],
            rack=rack,
            previous_broker_epoch=previous_broker_epoch,
        )

    async def unfence(self, cordoned: Iterable[str]) -> None:
        """The broker is ready to lead. New replicas may be placed in all its directories but `cordoned`."""
        self._controller.cordon(self._cordon(cordoned))
        await self._controller.unfence_broker(self.broker_epoch)

    async def shut_down(self) -> None:
        """Hand over the partitions that this broker leads, and be fenced; it may stop serving after that."""
        try:
            await self._controller.shut_down_broker(self.broker_epoch)
        except KafkaError as error:
            logger.warning("The controller could not note the shutdown: %s", error)

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        """A block of producer ids for this broker."""
        return await self._controller.allocate_producer_ids(self.broker_epoch)

    # -- log directories -------------------------------------------------------------------------------

    def recordon(self, cordoned: Iterable[str]) -> None:
        """Place new replicas in all directories but the `cordoned`; report it if that is a change."""
        before = self._are_cordoned()
        directories = self._cordon(cordoned)
        if before != self._are_cordoned():
            self._report(self._report_cordoned(directories))

    def report_failed(self, log_dir: LogDir) -> None:
        """A log directory has failed: the partitions that this broker leads there need another leader."""
        self._report(self._report_failed(log_dir))

    def report_places(self) -> None:
        """Say where replicas are whose directory the controller does not know."""
        if len(self._dirs.of_partitions) > 1 and (misplaced := self._replicas.misplaced()):
            self._report(self._report_places(misplaced))

    async def assign(self, log: PartitionLog, log_dir: LogDir) -> ErrorCode:
        """Say that a log is to be in `log_dir` from now on; the controller's answer."""
        assignment = DirectoryAssignment(log.topic_id, log.partition, log_dir.directory_id)
        outcomes = await self._controller.assign_replicas_to_dirs(self.broker_epoch, [assignment])
        return outcomes[0]

    def _are_cordoned(self) -> list[bool]:
        return [log_dir.is_cordoned for log_dir in self._dirs.of_partitions]

    def _cordon(self, cordoned: Iterable[str]) -> list[bytes]:
        self._dirs.cordon(frozenset(cordoned))
        return [d.directory_id for d in self._dirs.online if d.is_cordoned]

    def _report(self, report: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(report)
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)

    async def _report_cordoned(self, directories: Sequence[bytes]) -> None:
        try:
            await self._controller.report_cordoned_directories(self.broker_epoch, directories)
        except KafkaError as error:
            logger.warning("The controller could not note which directories are cordoned: %s", error)

    async def _report_failed(self, log_dir: LogDir) -> None:
        try:
            await self._controller.report_failed_directories(self.broker_epoch, [log_dir.directory_id])
        except KafkaError as error:
            logger.warning("The controller could not note the failure of %s: %s", log_dir.path, error)
        self.report_places()  # logs on their way into this directory have stayed where they were

    async def _report_places(self, assignments: Sequence[DirectoryAssignment]) -> None:
        try:
            await self._controller.assign_replicas_to_dirs(self.broker_epoch, assignments)
        except KafkaError as error:
            logger.warning("The controller could not note where %d replicas are: %s", len(assignments), error)

"""Reports the log directories of this broker's replicas (Kafka's AssignmentsManager, KIP-858)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from pykafka_broker.controller.channel import ControllerChannel
from pykafka_broker.controller.core import events
from pykafka_broker.controller.core.events import DirectoryAssignment
from pykafka_broker.log.disk.directories import LogDir, LogDirs
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.machine.backoff import Backoff
from pykafka_broker.machine.clock import Clock
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.system.repeated_lines import RepeatedLines

logger = logging.getLogger("kafka.server.BrokerLifecycleManager")

#: The most replicas in one request, as in Apache Kafka.
MAX_ASSIGNMENTS = 2_250
#: The pauses between attempts to report directories.
PLACES_BACKOFF = Backoff(first_ms=100, greatest_ms=10_000)


class ReplicaPlaces:
    """Reports to the controller, which decides what follows. Event loop only.

    `misplaced()` returns the logs whose directory the controller does not know, or has wrong.
    """

    def __init__(
        self,
        controller: ControllerChannel,
        node_id: int,
        broker_epoch: Callable[[], int],
        dirs: LogDirs,
        misplaced: Callable[[], Sequence[DirectoryAssignment]],
        clock: Clock,
    ) -> None:
        self._controller = controller
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._dirs = dirs
        self._misplaced = misplaced
        self._clock = clock
        self._placing: asyncio.Task[None] | None = None
        self._is_stopped = False
        #: Directories may have changed since `misplaced()` was last read.
        self._has_moved = False
        #: The controller may have replicas as lost because a disk is full, also from an earlier process.
        self._may_have_lost = True
        self._lines = RepeatedLines(logger, clock.now_ms)

    def report_places(self) -> None:
        """Report replicas whose directory the controller does not know or has as lost."""
        if self._broker_epoch() < 0 or self._is_stopped:
            return  # reported after the registration
        was_refusing = self._may_have_lost
        self._may_have_lost = any(log_dir.refusal is not None for log_dir in self._dirs.of_partitions)
        if (len(self._dirs.of_partitions) > 1 or self._may_have_lost or was_refusing) and self._misplaced():
            self._has_moved = True
            if self._placing is None or self._placing.done():
                self._placing = asyncio.get_running_loop().create_task(self._say_places())

    async def assign(self, log: PartitionLog, log_dir: LogDir) -> ErrorCode:
        """Report that a log belongs in `log_dir` from now on; returns the controller's answer."""
        assignment = DirectoryAssignment(log.topic_id, log.partition, log_dir.directory_id)
        [outcome] = await self._assign((assignment,))
        return outcome

    async def _assign(self, assignments: tuple[DirectoryAssignment, ...]) -> tuple[ErrorCode, ...]:
        outcomes: tuple[ErrorCode, ...] = await self._controller.ask(
            events.AssignReplicasToDirs(self._node_id, self._broker_epoch(), assignments)
        )
        return outcomes

    async def _say_places(self) -> None:
        """Report the misplaced replicas, with retries until the controller has noted all of them."""
        failures = 0
        while self._has_moved:
            self._has_moved = False
            misplaced = self._misplaced()
            try:
                for start in range(0, len(misplaced), MAX_ASSIGNMENTS):
                    await self._assign(tuple(misplaced[start : start + MAX_ASSIGNMENTS]))
                failures = 0
            except Exception as error:
                text = f"The controller could not note where {len(misplaced)} replicas are: {error}"
                self._lines.log(logging.WARNING, "places", "", text)
                self._has_moved = True
                await self._clock.sleep(PLACES_BACKOFF.pause_ms(failures))
                failures += 1

    async def stop(self) -> None:
        """Stop reporting."""
        self._is_stopped = True
        if self._placing is not None:
            self._placing.cancel()
            await asyncio.gather(self._placing, return_exceptions=True)

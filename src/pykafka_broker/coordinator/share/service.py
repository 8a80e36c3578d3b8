"""The share coordinator as handlers see it: each event goes to the shard of its share partition's part of
`__share_group_state`.

A handler builds the event of its request with the token that `answer` gives it and the time from `now_ms`.
The service also deletes from the log the records that the core finds redundant.

Nothing here raises for an error of the client: errors are refusals in the answers, and `refusals.py` has the
answers where no shard takes the event.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from pykafka_broker.coordinator.shards import LoadedPartition, Shards
from pykafka_broker.coordinator.share.core import events
from pykafka_broker.coordinator.share.core.events import Event, PruneLog
from pykafka_broker.coordinator.share.core.loading import Loader
from pykafka_broker.coordinator.share.core.state import ShareCoordinatorConfig, Shares
from pykafka_broker.coordinator.share.core.transitions import transition
from pykafka_broker.coordinator.share.keys import coordinator_key
from pykafka_broker.coordinator.share.writing import ShareLog, write
from pykafka_broker.machine.scheduler import Scheduler
from pykafka_broker.machine.shard import Prompt, Shard, ShardCore, ShardPorts
from pykafka_broker.machine.step import Step
from pykafka_broker.machine.turns import Turns
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.records.compression import Codec
from pykafka_broker.protocol.topic_partition import SharePartitionKey

logger = logging.getLogger("kafka.coordinator.share.ShareCoordinatorService")

Answer = TypeVar("Answer")
ShareShard = Shard[Shares, Event]


class ShareService:
    """Routes events to the share partitions coordinated here.

    Batches are compressed with `codec`; an answer waits at most `write_timeout_ms` for its records.
    """

    def __init__(
        self,
        config: ShareCoordinatorConfig,
        log: ShareLog,
        scheduler: Scheduler,
        *,
        codec: Codec,
        write_timeout_ms: int,
    ) -> None:
        #: May be replaced at any time; applies from the next event on.
        self.config = config
        self.now_ms = scheduler.now_ms
        #: Loads and unloads partitions.
        self.shards: Shards[Shares, Event] = Shards(self._new_loader, self._new_shard)
        self._scheduler: Scheduler = Turns(scheduler)
        self._log = log
        self._codec = codec
        self._write_timeout_ms = write_timeout_ms

    # ---- requests ----

    def partition_for(self, key: SharePartitionKey) -> int:
        """The partition of `__share_group_state` that a share partition belongs to.

        Raises:
            KafkaError: NOT_COORDINATOR while there is no topic.

        """
        return self.shards.partition_for(coordinator_key(key))

    def answer(
        self,
        key: SharePartitionKey,
        event_with: Callable[[int], Event],
        *,
        refused: Callable[[KafkaError], Answer],
    ) -> Prompt[Answer] | Awaitable[Answer]:
        """Let the shard of a share partition answer the event that `event_with(token)` builds; see
        `Shards.answer`.
        """
        return self.shards.answer(coordinator_key(key), event_with, refused=refused)

    async def loaded(self, key: SharePartitionKey) -> None:
        """Return when the shard of a share partition is not being loaded.

        Raises:
            KafkaError: NOT_COORDINATOR while there is no topic.

        """
        await self.shards.loaded(self.partition_for(key))

    # ---- the cluster's metadata ----

    def forget_topics(self, topic_ids: frozenset[bytes]) -> None:
        """Forget the share partitions of deleted topics."""
        event = events.TopicsDeleted(topic_ids)

        def forget(shard: ShareShard) -> None:
            try:
                shard.tell(event)
            except KafkaError as error:
                logger.error("Received error while trying to cleanup deleted topics: %s", error)

        self.shards.for_each(forget)

    # ---- shards ----

    def _new_loader(self) -> Loader:
        return Loader(self.config.snapshot_update_records_per_snapshot)

    def _new_shard(self, loaded: LoadedPartition[Shares]) -> ShareShard:
        shard: ShareShard = Shard(
            loaded.state,
            ShardCore(partial(self._transition, loaded.partition), events.TimerFired),
            ShardPorts(
                append=partial(self._append, loaded.partition),
                scheduler=self._scheduler,
                start=partial(self._start, loaded.partition),
            ),
            written=loaded.written,
            committed=loaded.committed,
            commit_timeout_ms=self._write_timeout_ms,
        )
        shard.tell(events.Loaded(self.now_ms()))
        return shard

    def _transition(self, partition: int, state: Shares, event: Event) -> Step[Shares]:
        # Nothing else is written to the log between this and the append of the step's records.
        return transition(state, event, self.config, self._log.end_offset(partition))

    def _append(self, partition: int, records: tuple[object, ...]) -> int:
        return write(self._log, partition, records, now_ms=self.now_ms(), codec=self._codec)

    def _start(self, partition: int, work: object) -> None:
        assert isinstance(work, PruneLog), work
        try:
            self._log.delete_records(partition, work.before_offset)
        except KafkaError as error:
            logger.error(
                "Exception while deleting records in __share_group_state-%d till offset %d: %s",
                partition,
                work.before_offset,
                error,
            )

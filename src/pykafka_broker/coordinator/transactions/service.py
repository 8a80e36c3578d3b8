"""The transaction coordinator as handlers see it: each event goes to the shard of its transactional id's
partition of `__transaction_state`.

A handler builds the event of its request with the token that `answer` gives it and the time from `now_ms`.
The service also fetches a fresh producer id when a decision needs one (`answer_with_producer_id`), and runs
the work that shards start: `marker_work.py`, `find_producer_id.py`.

Nothing here raises for an error of the client: errors are `ErrorCode`s in the answers, and `refusals.py` has
the answers where no shard takes the event.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from pykafka_broker.coordinator.batches import CoordinatorLog
from pykafka_broker.coordinator.shards import LoadedPartition, Shards
from pykafka_broker.coordinator.transactions import refusals
from pykafka_broker.coordinator.transactions.core import events
from pykafka_broker.coordinator.transactions.core.events import (
    Event,
    FindProducerId,
    NeedsProducerId,
    ProducerIdResult,
    WriteMarkers,
)
from pykafka_broker.coordinator.transactions.core.loading import Loader
from pykafka_broker.coordinator.transactions.core.state import TransactionConfig, Transactions
from pykafka_broker.coordinator.transactions.core.transitions import transition
from pykafka_broker.coordinator.transactions.decision_texts import decisions
from pykafka_broker.coordinator.transactions.find_producer_id import AllocateProducerId, find_producer_id
from pykafka_broker.coordinator.transactions.marker_work import MarkerWork, MarkerWriter
from pykafka_broker.coordinator.transactions.writing import write
from pykafka_broker.machine.history import Tell, unheard
from pykafka_broker.machine.scheduler import Scheduler
from pykafka_broker.machine.shard import Prompt, Shard, ShardCore, ShardPorts
from pykafka_broker.machine.step import Step
from pykafka_broker.machine.turns import Turns
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import NO_PRODUCER_ID

Answer = TypeVar("Answer")
TransactionShard = Shard[Transactions, Event]


class TransactionService:
    """Routes events to the transactional ids coordinated here.

    `allocate_producer_id` gives a producer id that no producer has, or raises `KafkaError`. `tell` takes what
    has been decided against producers.
    """

    def __init__(
        self,
        config: TransactionConfig,
        log: CoordinatorLog,
        scheduler: Scheduler,
        *,
        allocate_producer_id: AllocateProducerId,
        markers: MarkerWriter,
        tell: Tell = unheard,
    ) -> None:
        #: May be replaced at any time; applies from the next event on.
        self.config = config
        self.now_ms = scheduler.now_ms
        self.scheduler: Scheduler = Turns(scheduler)
        #: Loads and unloads partitions.
        self.shards: Shards[Transactions, Event] = Shards(Loader, self._new_shard)
        self._log = log
        self._allocate_producer_id = allocate_producer_id
        self._tell = tell
        self._marker_work = MarkerWork(markers, self.scheduler)

    # ---- requests ----

    def partition_for(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` that a transactional id belongs to.

        Raises:
            KafkaError: NOT_COORDINATOR while there is no topic.

        """
        return self.shards.partition_for(transactional_id)

    def answer(
        self,
        transactional_id: str,
        event_with: Callable[[int], Event],
        *,
        refused: Callable[[KafkaError], Answer],
    ) -> Prompt[Answer] | Awaitable[Answer]:
        """Let the shard of an id answer the event that `event_with(token)` builds; see `Shards.answer`.

        An empty id belongs to no shard: INVALID_REQUEST.
        """
        if not transactional_id:
            return Prompt(refused(KafkaError(ErrorCode.INVALID_REQUEST)))
        return self.shards.answer(transactional_id, event_with, refused=refused)

    async def answer_with_producer_id(
        self, transactional_id: str, event_with: Callable[[int, int], Event]
    ) -> ProducerIdResult:
        """The same for the event that `event_with(fresh_producer_id, token)` builds.

        The first attempt has no fresh producer id. If the decision needs one, it is fetched and the event is
        built again.
        """
        fresh_producer_id = NO_PRODUCER_ID
        while True:
            result: ProducerIdResult | NeedsProducerId = await self.answer(
                transactional_id, partial(event_with, fresh_producer_id), refused=refusals.producer_id
            )
            if isinstance(result, ProducerIdResult):
                return result
            try:
                fresh_producer_id = await self._allocate_producer_id()
            except KafkaError as error:
                return refusals.producer_id(error)

    async def list_all(self, event_with: Callable[[int], Event]) -> tuple[ErrorCode, list[Any]]:
        """Let every shard list its transactional ids; see `Shards.list_all`."""
        return await self.shards.list_all(event_with)

    # ---- shards ----

    def _new_shard(self, loaded: LoadedPartition[Transactions]) -> TransactionShard:
        shard: TransactionShard = Shard(
            loaded.state,
            ShardCore(self._transition, events.TimerFired),
            ShardPorts(
                append=partial(self._append, loaded.partition),
                scheduler=self.scheduler,
                start=lambda work: self._start(loaded, shard, work),
                installed=self._installed,
            ),
            written=loaded.written,
            committed=loaded.committed,
        )
        shard.tell(events.Loaded(self.now_ms()))
        return shard

    def _transition(self, state: Transactions, event: Event) -> Step[Transactions]:
        return transition(state, event, self.config)

    def _installed(self, before: Transactions, event: Event, step: Step[Transactions]) -> None:
        for decision in decisions(before, event, step):
            self._tell(decision)

    def _append(self, partition: int, records: tuple[object, ...]) -> int:
        return write(self._log, partition, records, now_ms=self.now_ms())

    def _start(self, loaded: LoadedPartition[Transactions], shard: TransactionShard, work: object) -> None:
        job: Coroutine[Any, Any, None]
        if isinstance(work, WriteMarkers):
            job = self._marker_work.run(work, loaded.leader_epoch, shard.tell)
        else:
            assert isinstance(work, FindProducerId), work
            job = find_producer_id(work, self._allocate_producer_id, self.now_ms, shard.tell)
        self.shards.work.start(loaded.partition, job)

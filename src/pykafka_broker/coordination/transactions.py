"""The transaction coordinator as the broker's API handlers see it: one method per API, over one shard per
partition of `__transaction_state` (`shards.py`).

What a core cannot do by itself is done here: fresh producer ids are fetched when a decision needs one, and
markers are written until every partition has its own. That work belongs to the partition of
`__transaction_state`: it ends when the partition goes, and whoever loads it next begins it anew.

Nothing here raises for what a client did: errors are `ErrorCode`s in the results.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

from pykafka_broker.coordination.batches import MaxBatchBytes, batches_of
from pykafka_broker.coordination.shards import Shards, as_answered
from pykafka_broker.coordinator.markers import Marker
from pykafka_broker.coordinator.txn import events
from pykafka_broker.coordinator.txn.events import (
    DescribedTransaction,
    Event,
    FindProducerId,
    ListedTransaction,
    NeedsProducerId,
    ProducerIdResult,
    WriteMarkers,
)
from pykafka_broker.coordinator.txn.loading import Loader
from pykafka_broker.coordinator.txn.records import Record, encode_record
from pykafka_broker.coordinator.txn.state import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    STATES_BY_NAME,
    TopicPartition,
    TransactionConfig,
    Transactions,
)
from pykafka_broker.coordinator.txn.transitions import transition
from pykafka_broker.machine.scheduler import Scheduler
from pykafka_broker.machine.shard import Shard, ShardCore, ShardPorts
from pykafka_broker.machine.step import Step
from pykafka_broker.machine.turns import Turns
from pykafka_broker.protocol.compile import Buffer
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import build_batch

logger = logging.getLogger("kafka.coordinator.transaction.TransactionCoordinator")

#: How long work that failed waits before it is tried again.
RETRY_MS = 100

TransactionShard = Shard[Transactions, Event]


class MarkerWriter(Protocol):
    """Writes markers into partitions, wherever those are led."""

    async def write(
        self, marker: Marker, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Write `marker` into each partition; the answer comes when those that succeed are committed.

        Partitions that are gone for good are left out of the answer: nobody waits for their outcome.
        """
        ...


class Participation(enum.Enum):
    """What a first write to a partition asks the coordinator for, by the age of the client (KIP-890)."""

    #: Is the partition in the transaction? The client does not know TRANSACTION_ABORTABLE.
    VERIFY_FOR_OLD_CLIENT = "verify for an old client"
    VERIFY = "verify"
    #: Take the partition into the transaction (transaction.version 2).
    ADD = "add"


class TransactionSettings(NamedTuple):
    """Values the service itself acts on."""

    add_partitions_retry_backoff_ms: int = 20
    add_partitions_retry_backoff_max_ms: int = 100


class TransactionService:
    """Routes each request to the shard of its transactional id.

    `append(partition, batch)` appends one record batch (its offsets and leader epoch are for the log to set)
    and returns the log end offset after it, or raises `KafkaError`. `allocate_producer_id` gives a producer
    id that nobody has, or raises `KafkaError`.
    """

    def __init__(
        self,
        *,
        config: TransactionConfig,
        settings: TransactionSettings,
        append: Callable[[int, bytes], int],
        max_batch_bytes: MaxBatchBytes,
        scheduler: Scheduler,
        allocate_producer_id: Callable[[], Awaitable[int]],
        markers: MarkerWriter,
    ) -> None:
        #: May be replaced at any time; hold for the next event.
        self.config = config
        self.settings = settings
        self._append_batch = append
        self._max_batch_bytes = max_batch_bytes
        self._scheduler = Turns(scheduler)
        self._allocate_producer_id = allocate_producer_id
        self._markers = markers
        self._shards: Shards[Transactions, Event] = Shards(new_loader=Loader, new_shard=self._new_shard)
        #: Leader epochs of the partitions that are served or loaded.
        self._coordinator_epochs: dict[int, int] = {}
        self._work: dict[int, set[asyncio.Task[None]]] = {}

    # ---- partitions ----

    def set_partition_count(self, count: int) -> None:
        """Say how many partitions `__transaction_state` has; 0 while there is no such topic."""
        self._shards.set_partition_count(count)

    def partition_for(self, transactional_id: str) -> int:
        """The partition a transactional id belongs to.

        Raises:
            KafkaError: NOT_COORDINATOR while there is no topic.

        """
        return self._shards.partition_for(transactional_id)

    async def load(
        self,
        partition: int,
        batches: Iterable[Buffer] | AsyncIterator[Buffer],
        *,
        coordinator_epoch: int,
        high_watermark: int | None = None,
    ) -> None:
        """Serve a partition from now on, after reading its log; see `Shards.load`."""
        self.unload(partition)
        self._coordinator_epochs[partition] = coordinator_epoch
        await self._shards.load(partition, batches, high_watermark=high_watermark)

    def unload(self, partition: int) -> None:
        """Stop serving a partition: everybody who waits is told to look for the coordinator again."""
        self._shards.unload(partition)
        for task in self._work.pop(partition, ()):
            task.cancel()

    def close(self) -> None:
        """Stop serving all partitions."""
        for partition in tuple(self._coordinator_epochs):
            self.unload(partition)

    @property
    def loaded_partitions(self) -> frozenset[int]:
        """The partitions that are served."""
        return self._shards.loaded_partitions

    def on_high_watermark(self, partition: int, offset: int) -> None:
        """Everything below `offset` of a partition is committed."""
        self._shards.on_high_watermark(partition, offset)

    def _new_shard(
        self, partition: int, state: Transactions, written: int, committed: int
    ) -> TransactionShard:
        shard: TransactionShard = Shard(
            state,
            ShardCore(self._transition, _timer_event),
            ShardPorts(
                append=lambda records: self._append(partition, records),
                scheduler=self._scheduler,
                start=lambda work: self._start(partition, shard, work),
            ),
            written=written,
            committed=committed,
        )
        shard.tell(events.Loaded(self._scheduler.now_ms()))
        return shard

    def _transition(self, state: Transactions, event: Event) -> Step[Transactions]:
        return transition(state, event, self.config)

    def _append(self, partition: int, records: tuple[object, ...]) -> int:
        now_ms = self._scheduler.now_ms()
        encoded = [(now_ms, *encode_record(record), ()) for record in records if isinstance(record, Record)]
        end_offset = 0
        for batch in batches_of(encoded, self._max_batch_bytes(partition)):
            end_offset = self._append_batch(partition, build_batch(batch))
        return end_offset

    # ---- work ----

    def _start(self, partition: int, shard: TransactionShard, work: object) -> None:
        job: Coroutine[Any, Any, None]
        if isinstance(work, WriteMarkers):
            job = self._write_markers(partition, shard, work)
        else:
            assert isinstance(work, FindProducerId), work
            job = self._find_producer_id(shard, work)
        tasks = self._work.setdefault(partition, set())
        task = asyncio.get_running_loop().create_task(job)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _write_markers(self, partition: int, shard: TransactionShard, work: WriteMarkers) -> None:
        marker = Marker(
            work.producer_id,
            work.producer_epoch,
            work.commit,
            self._coordinator_epochs[partition],
            work.transaction_version,
        )
        left = work.partitions
        is_first = True
        while left:
            results = await self._markers.write(marker, left)
            if ErrorCode.TRANSACTION_COORDINATOR_FENCED in results.values():
                logger.warning(
                    "A later coordinator than that of epoch %d has ended transaction %s.",
                    marker.coordinator_epoch,
                    work.transactional_id,
                )
                return
            left = frozenset(
                partition
                for partition in left
                if results.get(partition, ErrorCode.NONE) not in _MARKER_IS_DONE
            )
            if left:
                if is_first:
                    reasons = sorted({results[partition].name for partition in left})
                    logger.info(
                        "Markers of transaction %s cannot be written to %d partitions yet (%s); trying on.",
                        work.transactional_id,
                        len(left),
                        ", ".join(reasons),
                    )
                is_first = False
                await self._sleep(RETRY_MS)
        while True:
            try:
                shard.tell(
                    events.MarkersWritten(
                        self._scheduler.now_ms(),
                        work.transactional_id,
                        work.producer_id,
                        work.producer_epoch,
                    )
                )
            except KafkaError:
                # The decision and the markers stand; only that all is done cannot be noted yet.
                await self._sleep(RETRY_MS)
            else:
                return

    async def _find_producer_id(self, shard: TransactionShard, work: FindProducerId) -> None:
        try:
            producer_id = await self._allocate_producer_id()
            shard.tell(events.AbortTimedOut(self._scheduler.now_ms(), *work, producer_id))
        except KafkaError as error:
            # The next search for transactions over their time tries again.
            logger.warning("Transaction %s timed out and stays open: %s", work.transactional_id, error)

    async def _sleep(self, duration_ms: int) -> None:
        is_over = asyncio.Event()
        handle = self._scheduler.call_at(self._scheduler.now_ms() + duration_ms, is_over.set)
        try:
            await is_over.wait()
        finally:
            handle.cancel()

    # ---- requests ----

    async def init_producer_id(
        self,
        *,
        transactional_id: str,
        timeout_ms: int,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
    ) -> ProducerIdResult:
        """InitProducerId with a transactional id."""
        if not transactional_id:
            return ProducerIdResult(ErrorCode.INVALID_REQUEST)
        return await self._ask_for_producer_id(
            transactional_id,
            lambda fresh_producer_id, token: events.InitProducerId(
                token,
                self._scheduler.now_ms(),
                transactional_id,
                timeout_ms,
                producer_id,
                producer_epoch,
                fresh_producer_id,
            ),
        )

    async def end(
        self,
        *,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        commit: bool,
        client_version: int,
    ) -> ProducerIdResult:
        """EndTxn; the answer comes when the decision is committed, before the markers are written."""
        if not transactional_id:
            return ProducerIdResult(ErrorCode.INVALID_REQUEST)
        return await self._ask_for_producer_id(
            transactional_id,
            lambda fresh_producer_id, token: events.EndTransaction(
                token,
                self._scheduler.now_ms(),
                transactional_id,
                producer_id,
                producer_epoch,
                commit,
                client_version,
                fresh_producer_id,
            ),
        )

    async def _ask_for_producer_id(
        self, transactional_id: str, event_with: Callable[[int, int], Event]
    ) -> ProducerIdResult:
        fresh_producer_id = NO_PRODUCER_ID
        try:
            while True:
                result: ProducerIdResult | NeedsProducerId = await self._shards.ask(
                    transactional_id, partial(event_with, fresh_producer_id)
                )
                if isinstance(result, ProducerIdResult):
                    return result
                fresh_producer_id = await self._allocate_producer_id()
        except KafkaError as error:
            return ProducerIdResult(error.code)

    async def add_partitions(
        self,
        *,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
        client_version: int,
    ) -> ErrorCode:
        """AddPartitionsToTxn and AddOffsetsToTxn."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        added = frozenset(partitions)
        try:
            error: ErrorCode = await self._shards.ask(
                transactional_id,
                lambda token: events.AddPartitions(
                    token,
                    self._scheduler.now_ms(),
                    transactional_id,
                    producer_id,
                    producer_epoch,
                    added,
                    client_version,
                ),
            )
        except KafkaError as failure:
            return failure.code
        return error

    async def verify_partitions(
        self,
        *,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
    ) -> Mapping[TopicPartition, ErrorCode]:
        """AddPartitionsToTxn that only asks whether the partitions have been added."""
        asked = frozenset(partitions)
        if not transactional_id:
            return dict.fromkeys(asked, ErrorCode.INVALID_REQUEST)
        try:
            result: Mapping[TopicPartition, ErrorCode] = await self._shards.ask(
                transactional_id,
                lambda token: events.VerifyPartitions(
                    token, transactional_id, producer_id, producer_epoch, asked
                ),
            )
        except KafkaError as failure:
            return dict.fromkeys(asked, failure.code)
        return result

    async def participate(
        self,
        *,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
        how: Participation,
        retries: bool,
    ) -> Mapping[TopicPartition, ErrorCode]:
        """What a leader of partitions has to ask before it takes a transaction's first records; the errors.

        With `retries`, an earlier transaction that is just being completed is waited for a little, which is
        cheaper than to let the client send its records again.
        """
        asked = frozenset(partitions)
        until_ms = self._scheduler.now_ms() + self.settings.add_partitions_retry_backoff_max_ms
        while True:
            if how is Participation.ADD:
                error = await self.add_partitions(
                    transactional_id=transactional_id,
                    producer_id=producer_id,
                    producer_epoch=producer_epoch,
                    partitions=asked,
                    client_version=VERSION_OF_CLIENTS_THAT_ADD,
                )
                answers: Mapping[TopicPartition, ErrorCode] = dict.fromkeys(asked, error)
            else:
                answers = await self.verify_partitions(
                    transactional_id=transactional_id,
                    producer_id=producer_id,
                    producer_epoch=producer_epoch,
                    partitions=asked,
                )
            is_busy = ErrorCode.CONCURRENT_TRANSACTIONS in answers.values()
            if not (retries and is_busy and self._scheduler.now_ms() < until_ms):
                break
            await self._sleep(self.settings.add_partitions_retry_backoff_ms)
        return {
            partition: _as_producers_know_it(error, how)
            for partition, error in answers.items()
            if error is not ErrorCode.NONE
        }

    # ---- administration ----

    async def describe(self, transactional_id: str) -> DescribedTransaction:
        """DescribeTransactions, for one id."""
        if not transactional_id:
            return DescribedTransaction(ErrorCode.INVALID_REQUEST)
        try:
            described: DescribedTransaction = await self._shards.ask(
                transactional_id, lambda token: events.DescribeTransaction(token, transactional_id)
            )
        except KafkaError as error:
            return DescribedTransaction(error.code)
        return described

    async def list(
        self, *, states: Iterable[str] = (), producer_ids: Iterable[int] = (), duration_ms: int = -1
    ) -> tuple[ErrorCode, list[str], list[ListedTransaction]]:
        """ListTransactions: (error, states nobody knows, the transactional ids coordinated here)."""
        named = tuple(dict.fromkeys(states))
        wanted = frozenset(named)
        ids = frozenset(producer_ids)
        listed: list[ListedTransaction] = []
        try:
            for shard in self._shards.all_loaded():
                listed += await shard.ask(
                    lambda token: events.ListTransactions(
                        token, self._scheduler.now_ms(), wanted, ids, duration_ms
                    )
                )
        except KafkaError as error:
            return as_answered(error).code, [], []
        return ErrorCode.NONE, [name for name in named if name not in STATES_BY_NAME], listed


#: The transaction.version of clients whose writes add their partitions by themselves.
VERSION_OF_CLIENTS_THAT_ADD = 2

#: Answers after which a partition needs no marker any more. An epoch that is over there can only mean that
#: the transaction has been ended already, by whoever.
_MARKER_IS_DONE = frozenset({ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH})


def _as_producers_know_it(error: ErrorCode, how: Participation) -> ErrorCode:
    """The coordinator's answer in the words of Produce and TxnOffsetCommit."""
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and how is Participation.VERIFY_FOR_OLD_CLIENT:
        return ErrorCode.INVALID_TXN_STATE
    return error


def _timer_event(key: Hashable, now_ms: int) -> Event:
    return events.TimerFired(key, now_ms)

"""The transaction coordinator's service: fresh producer ids, markers until they are written, partitions that
come and go.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import pytest

from pykafka_broker.coordinator.markers import Marker
from pykafka_broker.coordinator.transactions import refusals
from pykafka_broker.coordinator.transactions.add_or_verify import FirstWrite, Participation
from pykafka_broker.coordinator.transactions.core import events
from pykafka_broker.coordinator.transactions.core.events import DescribedTransaction, ProducerIdResult
from pykafka_broker.coordinator.transactions.core.records import decode_record
from pykafka_broker.coordinator.transactions.core.state import TransactionConfig
from pykafka_broker.coordinator.transactions.marker_work import RETRY_MS
from pykafka_broker.coordinator.transactions.participation import TransactionParticipation
from pykafka_broker.coordinator.transactions.remote_participation import RemoteParticipation
from pykafka_broker.coordinator.transactions.service import TransactionService
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import BatchFields, build_batch, read_records
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.testing.clock import VirtualClock, settle
from tests.support.transactions import DEFAULT_CONFIG

PARTITIONS = 4
ID = "payments"
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
OK, WAIT = ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS
MINUTE_MS = 60_000


class NoBrokers:
    """A cluster of one broker."""

    def is_reachable(self, broker_id: int) -> bool:
        return False

    async def ask(self, broker_id: int, request: object, *, lowest_version: int = 0) -> Any:
        raise AssertionError(request)


NOWHERE = RemoteParticipation(NoBrokers(), lambda: 0)


class Coordinator:
    """A `__transaction_state` in memory, a service over it, and partitions that may refuse markers."""

    def __init__(
        self,
        config: TransactionConfig = DEFAULT_CONFIG,
        *,
        partitions: int = PARTITIONS,
        commits_at_once: bool = True,
    ) -> None:
        self.clock = VirtualClock()
        self.commits_at_once = commits_at_once
        self.disk_error: KafkaError | None = None
        self.logs: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        self.ends = dict.fromkeys(self.logs, 0)
        self.next_producer_id = 1_000
        self.no_producer_ids: KafkaError | None = None
        self.written: list[tuple[Marker, TopicPartition]] = []
        self.marker_error: Exception | None = None
        #: What the partitions answer instead of taking a marker; None: they are gone.
        self.refusals: dict[TopicPartition, ErrorCode | None] = {}
        self.service = TransactionService(
            config,
            self,
            WallTimers(self.clock),
            allocate_producer_id=self.allocate_producer_id,
            markers=self,
        )
        self.shards = self.service.shards
        self.shards.set_partition_count(partitions)

    def max_batch_bytes(self, partition: int) -> int:
        return 1 << 20

    def append(self, partition: int, batch: bytes, *, guard: int = 0, transaction_version: int = 0) -> int:
        if self.disk_error is not None:
            raise self.disk_error
        records = list(read_records(batch))
        copied = [(record.timestamp, record.key, record.value, ()) for record in records]
        self.logs[partition].append(build_batch(copied, BatchFields(base_offset=self.ends[partition])))
        self.ends[partition] += len(records)
        if self.commits_at_once:
            self.shards.on_high_watermark(partition, self.ends[partition])
        return self.ends[partition]

    async def allocate_producer_id(self) -> int:
        if self.no_producer_ids is not None:
            raise self.no_producer_ids
        self.next_producer_id += 1
        return self.next_producer_id - 1

    async def write(
        self, marker: Marker, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        if self.marker_error is not None:
            raise self.marker_error
        answers = {}
        for partition in partitions:
            error = self.refusals.get(partition, OK)
            if error is not None:
                answers[partition] = error
            if error is OK:
                self.written.append((marker, partition))
        return answers

    async def load_all(self, coordinator_epoch: int = 0) -> None:
        for partition, log in self.logs.items():
            await self.shards.load(partition, list(log), leader_epoch=coordinator_epoch)
        await settle()

    @classmethod
    async def serving(cls, config: TransactionConfig = DEFAULT_CONFIG) -> Coordinator:
        coordinator = cls(config)
        await coordinator.load_all()
        return coordinator

    def written_to(self) -> list[TopicPartition]:
        return sorted(partition for _, partition in self.written)

    # ---- requests ----

    async def init(self, transactional_id: str = ID) -> ProducerIdResult:
        return await self.service.answer_with_producer_id(
            transactional_id,
            lambda fresh_producer_id, token: events.InitProducerId(
                token,
                self.service.now_ms(),
                transactional_id,
                MINUTE_MS,
                fresh_producer_id=fresh_producer_id,
            ),
        )

    async def add(self, producer: ProducerIdResult, *partitions: TopicPartition) -> ErrorCode:
        return await self.service.answer(
            ID,
            lambda token: events.AddPartitions(
                token,
                self.service.now_ms(),
                ID,
                producer.producer_id,
                producer.producer_epoch,
                frozenset(partitions or (T0,)),
                client_version=2,
            ),
            refused=refusals.add_partitions,
        )

    async def verify(
        self, producer_id: int, producer_epoch: int, *partitions: TopicPartition
    ) -> Mapping[TopicPartition, ErrorCode]:
        return await self.service.answer(
            ID,
            lambda token: events.VerifyPartitions(
                token, ID, producer_id, producer_epoch, frozenset(partitions)
            ),
            refused=lambda error: refusals.verify_partitions(partitions, error),
        )

    async def end(self, producer: ProducerIdResult, *, commit: bool = True) -> ProducerIdResult:
        result = await self.service.answer_with_producer_id(
            ID,
            lambda fresh_producer_id, token: events.EndTransaction(
                token,
                self.service.now_ms(),
                ID,
                producer.producer_id,
                producer.producer_epoch,
                commit,
                client_version=2,
                fresh_producer_id=fresh_producer_id,
            ),
        )
        await settle()
        return result

    async def describe(self) -> DescribedTransaction:
        return await self.service.answer(
            ID, lambda token: events.DescribeTransaction(token, ID), refused=refusals.describe
        )

    async def list(self) -> tuple[ErrorCode, list[events.ListedTransaction]]:
        return await self.service.list_all(
            lambda token: events.ListTransactions(token, self.service.now_ms())
        )

    async def open(self) -> ProducerIdResult:
        """A producer with T0 and T1 in its transaction."""
        producer = await self.init()
        assert await self.add(producer, T0, T1) == OK
        return producer

    async def state(self) -> str:
        return (await self.describe()).state

    def newest_state(self) -> str:
        """The state in the newest record of the log."""
        log = self.logs[self.service.partition_for(ID)]
        [record] = read_records(log[-1])
        assert record.key is not None
        decoded = decode_record(bytes(record.key), None if record.value is None else bytes(record.value))
        assert decoded is not None and decoded.metadata is not None
        return decoded.metadata.state.display_name


async def test_every_api_says_who_is_not_the_coordinator() -> None:
    without_topic = Coordinator(partitions=0)
    elsewhere = Coordinator()
    for coordinator in (without_topic, elsewhere):
        wrong = ErrorCode.NOT_COORDINATOR
        producer = await coordinator.init()
        assert producer.error == wrong
        assert await coordinator.add(producer) == wrong
        assert (await coordinator.end(producer)).error == wrong
        assert (await coordinator.describe()).error == wrong
        assert await coordinator.verify(1, 0, T0) == {T0: wrong}
        assert await coordinator.list() == (OK, [])


async def test_while_a_partition_is_read_its_clients_are_told_to_wait() -> None:
    coordinator = Coordinator()
    go_on = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        await go_on.wait()
        for batch in coordinator.logs[0]:
            yield batch

    loads = [
        asyncio.ensure_future(coordinator.shards.load(partition, slowly(), leader_epoch=0))
        for partition in range(PARTITIONS)
    ]
    await settle()
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert (await coordinator.init()).error == loading
    assert await coordinator.list() == (loading, [])

    go_on.set()
    await asyncio.gather(*loads)
    assert (await coordinator.init()).error == OK


async def test_fresh_producer_ids_are_fetched_when_they_are_needed_and_only_then() -> None:
    coordinator = await Coordinator.serving()

    assert await coordinator.init() == ProducerIdResult(OK, 1_000, 0)
    assert await coordinator.init() == ProducerIdResult(OK, 1_000, 1)
    assert await coordinator.init("other") == ProducerIdResult(OK, 1_001, 0)


async def test_when_there_are_no_producer_ids_the_client_is_told_why() -> None:
    coordinator = await Coordinator.serving()
    coordinator.no_producer_ids = KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    assert (await coordinator.init()).error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_markers_carry_the_coordinators_epoch_and_the_transactions_version() -> None:
    coordinator = Coordinator()
    await coordinator.load_all(coordinator_epoch=7)
    producer = await coordinator.open()

    assert await coordinator.end(producer) == ProducerIdResult(OK, 1_000, 1)
    marker = Marker(1_000, 1, True, coordinator_epoch=7, transaction_version=2)
    assert sorted(coordinator.written) == [(marker, T0), (marker, T1)]
    assert await coordinator.state() == coordinator.newest_state() == "CompleteCommit"


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.REQUEST_TIMED_OUT,
    ],
)
async def test_a_marker_that_cannot_be_written_is_tried_until_it_can(error: ErrorCode) -> None:
    coordinator = await Coordinator.serving()
    producer = await coordinator.open()
    coordinator.refusals[T1] = error
    await coordinator.end(producer)
    await coordinator.clock.pass_time(10 * RETRY_MS)
    assert (coordinator.written_to(), await coordinator.state()) == ([T0], "PrepareCommit")

    del coordinator.refusals[T1]
    await coordinator.clock.pass_time(RETRY_MS)
    # T0 has had its marker and gets no second one.
    assert (coordinator.written_to(), await coordinator.state()) == ([T0, T1], "CompleteCommit")


async def test_partitions_that_are_gone_or_have_gone_on_need_no_marker() -> None:
    coordinator = await Coordinator.serving()
    producer = await coordinator.open()
    coordinator.refusals = {T0: None, T1: ErrorCode.INVALID_PRODUCER_EPOCH}
    await coordinator.end(producer)

    assert await coordinator.state() == "CompleteCommit"


async def test_markers_that_cannot_be_written_for_any_reason_are_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    coordinator = await Coordinator.serving()
    producer = await coordinator.open()
    coordinator.marker_error = RuntimeError("no thread")
    await coordinator.end(producer)
    await coordinator.clock.pass_time(10 * RETRY_MS)
    assert await coordinator.state() == "PrepareCommit"

    assert len([record for record in caplog.records if record.exc_info]) == 1

    coordinator.marker_error = None
    await coordinator.clock.pass_time(RETRY_MS)
    assert await coordinator.state() == "CompleteCommit"


async def test_a_coordinator_that_was_replaced_writes_no_more_markers() -> None:
    coordinator = await Coordinator.serving()
    producer = await coordinator.open()
    coordinator.refusals = {T0: ErrorCode.TRANSACTION_COORDINATOR_FENCED}
    await coordinator.end(producer)
    await coordinator.clock.pass_time(10 * RETRY_MS)
    assert await coordinator.state() == "PrepareCommit"

    coordinator.refusals = {}
    await coordinator.load_all(coordinator_epoch=1)
    assert await coordinator.state() == "CompleteCommit"


async def test_a_decision_that_is_not_durable_starts_nothing() -> None:
    coordinator = Coordinator()
    await coordinator.load_all()
    producer = await coordinator.open()
    coordinator.commits_at_once = False
    ending = asyncio.ensure_future(coordinator.end(producer))
    await settle()
    assert not ending.done()
    assert coordinator.written == []

    partition = coordinator.service.partition_for(ID)
    coordinator.shards.on_high_watermark(partition, coordinator.ends[partition])
    assert (await ending).error == OK
    assert coordinator.written_to() == [T0, T1]


async def test_a_decision_that_cannot_be_written_has_not_been_made() -> None:
    coordinator = await Coordinator.serving()
    producer = await coordinator.open()
    coordinator.disk_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert (await coordinator.end(producer)).error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (coordinator.written, await coordinator.state()) == ([], "Ongoing")

    coordinator.disk_error = None
    assert (await coordinator.end(producer, commit=False)).error == OK
    assert await coordinator.state() == "CompleteAbort"


async def test_a_completion_that_cannot_be_written_is_tried_until_it_can() -> None:
    coordinator = await Coordinator.serving()
    producer = await coordinator.open()
    coordinator.refusals[T0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    await coordinator.end(producer)
    coordinator.disk_error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    coordinator.refusals.clear()
    await coordinator.clock.pass_time(10 * RETRY_MS)
    assert (coordinator.written_to(), coordinator.newest_state()) == ([T0, T1], "PrepareCommit")

    coordinator.disk_error = None
    await coordinator.clock.pass_time(RETRY_MS)
    assert coordinator.newest_state() == "CompleteCommit"
    assert coordinator.written_to() == [T0, T1]


async def test_who_loses_its_partition_stops_and_the_next_coordinator_finishes() -> None:
    coordinator = await Coordinator.serving()
    producer = await coordinator.open()
    coordinator.refusals = {T0: ErrorCode.NOT_LEADER_OR_FOLLOWER, T1: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    await coordinator.end(producer)
    coordinator.shards.close()
    coordinator.refusals.clear()
    await coordinator.clock.pass_time(10 * RETRY_MS)
    assert (coordinator.written, coordinator.newest_state()) == ([], "PrepareCommit")
    assert (await coordinator.init()).error == ErrorCode.NOT_COORDINATOR

    await coordinator.load_all(coordinator_epoch=1)
    assert {marker.coordinator_epoch for marker, _ in coordinator.written} == {1}
    assert await coordinator.state() == "CompleteCommit"


async def test_a_transaction_over_its_time_is_aborted() -> None:
    coordinator = await Coordinator.serving()
    await coordinator.open()
    await coordinator.clock.pass_time(MINUTE_MS + 10_000)

    assert await coordinator.state() == "CompleteAbort"
    assert [(marker.commit, partition) for marker, partition in sorted(coordinator.written)] == [
        (False, T0),
        (False, T1),
    ]


async def test_ids_that_are_forgotten_are_gone_after_the_next_load_too() -> None:
    coordinator = await Coordinator.serving(TransactionConfig(transactional_id_expiration_ms=1_000))
    await coordinator.init()
    await coordinator.clock.pass_time(60 * MINUTE_MS)
    await coordinator.load_all()

    assert (await coordinator.describe()).error == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


async def participating(
    coordinator: Coordinator, producer: ProducerIdResult, how: Participation, *, retries: bool = False
) -> Mapping[TopicPartition, ErrorCode]:
    write = FirstWrite(ID, producer.producer_id, producer.producer_epoch, frozenset({T0}))
    return await TransactionParticipation(coordinator.service, lambda _: None, NOWHERE).ask(
        write, how, retries=retries
    )


async def test_partitions_are_verified_or_added_and_errors_are_in_the_words_of_producers() -> None:
    coordinator = await Coordinator.serving()
    producer = await coordinator.init()
    assert await participating(coordinator, producer, Participation.VERIFY_FOR_OLD_CLIENT) == {
        T0: ErrorCode.INVALID_TXN_STATE
    }
    assert await participating(coordinator, producer, Participation.VERIFY) == {
        T0: ErrorCode.TRANSACTION_ABORTABLE
    }
    assert await participating(coordinator, producer, Participation.ADD) == {}
    assert await participating(coordinator, producer, Participation.VERIFY) == {}

    fenced = producer._replace(producer_epoch=producer.producer_epoch - 1)
    assert await participating(coordinator, fenced, Participation.ADD) == {
        T0: ErrorCode.INVALID_PRODUCER_EPOCH
    }


async def test_a_write_waits_for_the_last_transaction_to_be_completed_but_not_for_long() -> None:
    coordinator = await Coordinator.serving()
    producer = await coordinator.open()
    coordinator.refusals[T1] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    going_on = await coordinator.end(producer)
    assert await participating(coordinator, going_on, Participation.ADD) == {T0: WAIT}

    waiting = asyncio.ensure_future(participating(coordinator, going_on, Participation.ADD, retries=True))
    await coordinator.clock.pass_time(99)
    assert not waiting.done()
    await coordinator.clock.pass_time(1)
    assert await waiting == {T0: WAIT}

    coordinator.refusals.clear()
    waiting = asyncio.ensure_future(participating(coordinator, going_on, Participation.ADD, retries=True))
    await coordinator.clock.pass_time(200)
    assert await waiting == {}

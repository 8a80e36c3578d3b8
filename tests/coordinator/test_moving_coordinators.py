"""Transactions whose coordinator moves, or whose partitions do, at every single step.

Two transactions of one producer, a commit and an abort, in three partitions on three brokers. The real
services, logs of partitions and handler of WriteTxnMarkers are driven; the log of `__transaction_state`, the
network and time are the test's. A run without a fault counts the steps: appends to the coordinator's log, and
requests between brokers, before and after each. Then every fault happens at every step once. Whatever
happens, the client gets both transactions to their ends by asking again, all partitions have the outcome
that it was told, and nothing is left open.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable
from functools import partial
from typing import Any

import pytest

from pykafka_broker.apis.write_txn_markers import write_txn_markers
from pykafka_broker.cluster.image import ClusterImage, PartitionRegistration, TopicImage
from pykafka_broker.coordinator.markers import Marker
from pykafka_broker.coordinator.transactions import refusals
from pykafka_broker.coordinator.transactions.core import events, timers
from pykafka_broker.coordinator.transactions.core.events import ProducerIdResult
from pykafka_broker.coordinator.transactions.core.state import TransactionConfig
from pykafka_broker.coordinator.transactions.local_markers import LocalMarkers
from pykafka_broker.coordinator.transactions.marker_routes import MarkerRoutes
from pykafka_broker.coordinator.transactions.remote_markers import RemoteMarkers
from pykafka_broker.coordinator.transactions.service import TransactionService
from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producers import AppendOrigin, transaction_marker
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.machine.step import CancelTimer
from pykafka_broker.machine.wall_timers import WallTimers
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import BatchFields, build_batch, iter_batches, read_records
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.testing.clock import VirtualClock, settle
from pykafka_broker.testing.memory_files import MemoryFiles

pytestmark = pytest.mark.acknowledged

ID = "payments"
PLACES = [TopicPartition("t", index) for index in range(3)]
#: Brokers 1, 2, ... coordinate one after the other; broker 1 leads a partition too.
FIRST_LEADERS = {PLACES[0]: 10, PLACES[1]: 11, PLACES[2]: 1}
#: A client's patience for one request, and that of the test for the end of everything.
REQUEST_MS, GIVE_UP_MS = 10_000, 120_000
NOT_YET = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}


class Fault(enum.Enum):
    """What happens at the step of a run; a request of this step is lost with it."""

    #: The coordinator's partition moves, together with what was just appended.
    MOVES = "the coordinator moves"
    #: The same, and the new leader has not got what was appended last.
    MOVES_WITHOUT_TAIL = "the coordinator moves without its tail"
    #: The old coordinator does not learn of it. Its request is no more lost than late: it arrives in the
    #: middle of the next transaction.
    MOVES_UNNOTICED = "the coordinator moves unnoticed"
    #: Another broker leads the first partition from now on.
    LEADER_MOVES = "a leader moves"
    #: Only the request is lost.
    CONNECTION_BREAKS = "a connection breaks"


class Node:
    """A broker that coordinates, or did, or believes it does."""

    def __init__(self, cluster: Cluster, node_id: int, config: TransactionConfig) -> None:
        self.cluster = cluster
        self.node_id = node_id
        #: The end of the log that an unnoticed former coordinator writes, and that no broker copies.
        self.own_end = 0
        here = LocalMarkers(cluster, Leader(cluster, node_id), cluster.clock.now_ms, 30_000)
        self.service = TransactionService(
            config,
            self,
            WallTimers(cluster.clock),
            allocate_producer_id=cluster.next_producer_id,
            markers=MarkerRoutes(node_id, cluster, here, RemoteMarkers(self)),
        )
        self.service.shards.set_partition_count(1)

    # The log of the coordinator's partition.

    def max_batch_bytes(self, partition: int) -> int:
        return 1 << 20

    def append(self, partition: int, batch: bytes, *, guard: int = 0, transaction_version: int = 0) -> int:
        cluster = self.cluster
        if cluster.coordinator is not self:
            self.own_end += 1
            return self.own_end
        if cluster.step() not in (None, Fault.LEADER_MOVES, Fault.CONNECTION_BREAKS):
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        cluster.state_log.append(batch)
        fault = cluster.step()
        if fault is Fault.MOVES_WITHOUT_TAIL:
            cluster.state_log.pop()
        end = self.own_end = len(cluster.state_log)
        asyncio.get_running_loop().call_soon(cluster.commit, self, end)
        return end + (fault is Fault.MOVES_WITHOUT_TAIL)

    # The other brokers.

    def is_reachable(self, broker_id: int) -> bool:
        return True

    async def ask(self, broker_id: int, request: Any, *, lowest_version: int = 0) -> Any:
        cluster = self.cluster
        if (fault := cluster.step()) is Fault.MOVES_UNNOTICED:
            await cluster.in_second_transaction.wait()
        elif fault not in (None, Fault.LEADER_MOVES):
            raise ConnectionError("lost")
        markers = LocalMarkers(cluster, Leader(cluster, broker_id), cluster.clock.now_ms, 30_000)
        context: Any = Context(markers)
        answer = await write_txn_markers.handle(request, context)
        if cluster.step() not in (None, Fault.LEADER_MOVES):
            raise ConnectionError("the answer is lost")
        return answer


class Context:
    """The part of a request's context that WriteTxnMarkers uses."""

    #: A coordinator asks, and no administrator.
    client_id = "1"

    def __init__(self, markers: LocalMarkers) -> None:
        self.node = self
        self.markers = markers


class Leader:
    """The partitions that one broker leads."""

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self._cluster = cluster
        self._node_id = node_id

    def led(self, topic: str, partition: int) -> Any:
        place = TopicPartition(topic, partition)
        if self._cluster.leaders[place] != self._node_id:
            return None
        return LedPartition(self._cluster.logs[place])

    def why_not_led(self, topic: str, partition: int) -> ErrorCode:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER


class LedPartition:
    """A log, which all its replicas have at once."""

    def __init__(self, log: PartitionLog) -> None:
        self._log = log
        self.committing = self

    def append_marker(self, batch: bytes, now_ms: int, transaction_version: int) -> int:
        self._log.writer.append_internal(batch, 0, now_ms, AppendOrigin.COORDINATOR, 0, transaction_version)
        return self._log.state.log_end_offset

    def acknowledged(self, end: int, acks: int, timeout_ms: int) -> Awaitable[ErrorCode] | None:
        return None


class Cluster:
    """Three partitions with data, one partition of transactional ids, and who leads them."""

    def __init__(self, version: int, fault: Fault | None = None, at_step: int = -1) -> None:
        self.clock = VirtualClock()
        self.config = TransactionConfig(transaction_version=version)
        self.leaders = dict(FIRST_LEADERS)
        environment = Environment(MemoryFiles())
        self.logs = {
            place: create_log(
                environment, LogIdentity(f"/logs/t-{place.partition}", *place, b"t" * 16), LogConfig()
            )
            for place in PLACES
        }
        #: Batches of one record.
        self.state_log: list[bytes] = []
        self.fault = fault
        self.at_step = at_step
        self.steps = 0
        self.in_second_transaction = asyncio.Event()
        self.next_id = 1_000
        self.nodes: list[Node] = []
        self._moving: list[asyncio.Task[None]] = []

    @property
    def coordinator(self) -> Node:
        return self.nodes[-1]

    @property
    def image(self) -> ClusterImage:
        partitions = {
            place.partition: PartitionRegistration(place.partition, (leader,), (leader,), leader)
            for place, leader in self.leaders.items()
        }
        return ClusterImage(topics={"t": TopicImage("t", b"t" * 16, partitions)})

    async def next_producer_id(self) -> int:
        self.next_id += 1
        return self.next_id

    async def complete_transaction(self, partition: int, marker: Marker) -> ErrorCode:
        raise AssertionError("no offsets here")

    # ---- faults ----

    def step(self) -> Fault | None:
        """One step more; the fault, if it happens now."""
        number, self.steps = self.steps, self.steps + 1
        if number != self.at_step:
            return None
        if self.fault is Fault.LEADER_MOVES:
            self.leaders[PLACES[0]] = 12
        elif self.fault is not Fault.CONNECTION_BREAKS:
            asyncio.get_running_loop().call_soon(self.move, self.fault is not Fault.MOVES_UNNOTICED)
        return self.fault

    def move(self, is_noticed: bool = True) -> None:
        """Another broker coordinates."""
        if is_noticed:
            self.coordinator.service.shards.unload(0)
        self.lead_anew()

    def lead_anew(self) -> None:
        node = Node(self, len(self.nodes) + 1, self.config)
        self.nodes.append(node)
        log = [
            build_batch(
                [(record.timestamp, record.key, record.value, ()) for record in read_records(batch)],
                BatchFields(base_offset=offset),
            )
            for offset, batch in enumerate(self.state_log)
        ]
        loading = node.service.shards.load(0, log, leader_epoch=len(self.nodes), high_watermark=0)
        self._moving.append(asyncio.get_running_loop().create_task(self._serve(node, loading)))

    async def _serve(self, node: Node, loading: Awaitable[bool]) -> None:
        await loading
        self.commit(node, len(self.state_log))

    def commit(self, node: Node, end: int) -> None:
        """All replicas have this much of the coordinator's log."""
        if node is self.coordinator:
            node.service.shards.on_high_watermark(0, end)

    async def stop(self) -> None:
        self.in_second_transaction.set()
        for node in self.nodes:
            node.service.shards.close()
        await settle()

    # ---- what partitions hold ----

    def outcomes(self, place: TopicPartition) -> list[tuple[bytes, str]]:
        """Each value of a partition with the outcome of its transaction."""
        log = self.logs[place]
        data = log.reader.plan_read(0, 1 << 20, limit="log_end").read()
        found: list[tuple[bytes, str]] = []
        open_since = 0
        for position, header in iter_batches(data):
            batch = bytes(data[position : position + header.size_in_bytes])
            marker = transaction_marker(batch, header)
            if marker is None:
                found += [(bytes(record.value or b""), "open") for record in read_records(batch)]
            else:
                ended = "committed" if marker.commit else "aborted"
                found[open_since:] = [(value, ended) for value, _ in found[open_since:]]
                open_since = len(found)
        return found


class Client:
    """A producer that asks again until it knows."""

    def __init__(self, cluster: Cluster, version: int) -> None:
        self.cluster = cluster
        self.version = version
        self.producer = ProducerIdResult(ErrorCode.NONE)

    async def answered(self, asking: Awaitable[Any]) -> Any:
        """The answer, or None where none comes in time."""
        clock = self.cluster.clock
        task = asyncio.ensure_future(asking)
        give_up_ms = clock.monotonic_ms() + REQUEST_MS
        await settle()
        while not task.done():
            if clock.monotonic_ms() >= give_up_ms:
                task.cancel()
                return None
            await clock.pass_time(50)
        return task.result()

    async def _insist(self, ask: Any, error_of: Any) -> Any:
        until_ms = self.cluster.clock.monotonic_ms() + GIVE_UP_MS
        while True:
            answer = await self.answered(ask(self.cluster.coordinator.service))
            error = ErrorCode.NOT_COORDINATOR if answer is None else error_of(answer)
            if error is ErrorCode.NONE:
                return answer
            assert error in NOT_YET, error
            assert self.cluster.clock.monotonic_ms() < until_ms, "the client gives up"
            await self.cluster.clock.pass_time(50)

    async def begin(self) -> None:
        async def ask(service: TransactionService) -> ProducerIdResult:
            return await service.answer_with_producer_id(
                ID,
                lambda fresh_producer_id, token: events.InitProducerId(
                    token, service.now_ms(), ID, 60_000, fresh_producer_id=fresh_producer_id
                ),
            )

        self.producer = await self._insist(ask, lambda answer: answer.error)

    async def write(self, value: bytes) -> None:
        """Write to all partitions."""
        _, producer_id, producer_epoch = self.producer

        async def add(service: TransactionService) -> ErrorCode:
            return await service.answer(
                ID,
                lambda token: events.AddPartitions(
                    token, service.now_ms(), ID, producer_id, producer_epoch, frozenset(PLACES), self.version
                ),
                refused=refusals.add_partitions,
            )

        await self._insist(add, lambda error: error)
        for place in PLACES:
            writer, now_ms = self.cluster.logs[place].writer, self.cluster.clock.now_ms()
            sequence = self._sequences()
            guard = writer.start_verification(
                producer_id, producer_epoch, sequence, bumps_epoch=self.version == 2, now_ms=now_ms
            )
            fields = BatchFields(
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=sequence,
                transactional=True,
            )
            batch = bytearray(build_batch([(now_ms, None, value, ())], fields))
            writer.append(batch, leader_epoch=0, now_ms=now_ms, guard=guard)

    def _sequences(self) -> int:
        """A new epoch counts anew."""
        return 0 if self.version == 2 else len(self.cluster.outcomes(PLACES[2]))

    async def ask_to_end(self, service: TransactionService, *, commit: bool) -> ProducerIdResult:
        """What a coordinator says to EndTxn."""
        _, producer_id, producer_epoch = self.producer
        return await service.answer_with_producer_id(
            ID,
            lambda fresh_producer_id, token: events.EndTransaction(
                token,
                service.now_ms(),
                ID,
                producer_id,
                producer_epoch,
                commit,
                self.version,
                fresh_producer_id,
            ),
        )

    async def end(self, *, commit: bool) -> None:
        """End the transaction, and wait until it is complete."""

        async def describe(service: TransactionService) -> events.DescribedTransaction:
            return await service.answer(
                ID, lambda token: events.DescribeTransaction(token, ID), refused=refusals.describe
            )

        def is_complete(answer: events.DescribedTransaction) -> ErrorCode:
            is_pending = answer.error is ErrorCode.NONE and answer.state.startswith("Prepare")
            return ErrorCode.CONCURRENT_TRANSACTIONS if is_pending else answer.error

        answer = await self._insist(partial(self.ask_to_end, commit=commit), lambda answer: answer.error)
        if self.version == 2:
            self.producer = answer
        described = await self._insist(describe, is_complete)
        assert described.state == ("CompleteCommit" if commit else "CompleteAbort")


async def run(cluster: Cluster, version: int) -> None:
    """Both transactions, and what is to be true in the end."""
    cluster.lead_anew()
    client = Client(cluster, version)
    try:
        await client.begin()
        await client.write(b"first")
        await client.end(commit=True)
        await client.write(b"second")
        cluster.in_second_transaction.set()
        await cluster.clock.pass_time(1_000)
        await client.end(commit=False)
        await cluster.clock.pass_time(30_000)
    finally:
        await cluster.stop()
    for place, log in cluster.logs.items():
        assert cluster.outcomes(place) == [(b"first", "committed"), (b"second", "aborted")], place
        log.state.advance_high_watermark(log.state.log_end_offset)
        assert log.state.last_stable_offset == log.state.log_end_offset, f"{place} has an open transaction"


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("fault", Fault)
async def test_no_transaction_is_half_ended_wherever_it_is_interrupted(fault: Fault, version: int) -> None:
    without = Cluster(version)
    await run(without, version)
    assert without.steps > 20
    assert len(without.nodes) == 1

    for at_step in range(without.steps):
        cluster = Cluster(version, fault, at_step)
        try:
            await run(cluster, version)
        except BaseException as error:
            error.add_note(f"{fault.value} at step {at_step}")
            raise


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("commit", [True, False])
async def test_a_coordinator_that_is_replaced_unnoticed_gives_its_client_no_final_answer(
    version: int, commit: bool
) -> None:
    cluster = Cluster(version)
    cluster.lead_anew()
    client = Client(cluster, version)
    try:
        await client.begin()
        await client.write(b"first")
        await client.end(commit=commit)
        replaced = cluster.coordinator
        cluster.move(is_noticed=False)
        await client.write(b"second")

        answer = await client.answered(client.ask_to_end(replaced.service, commit=commit))

        assert answer is None or answer.error in NOT_YET
        await client.end(commit=commit)
        await cluster.clock.pass_time(30_000)
    finally:
        await cluster.stop()
    ended = "committed" if commit else "aborted"
    for place in PLACES:
        assert cluster.outcomes(place) == [(b"first", ended), (b"second", ended)]


async def test_a_coordinator_that_forgets_the_markers_of_the_one_before_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timers, "markers_of", lambda metadata: CancelTimer("none"))
    with pytest.raises(AssertionError, match="the client gives up"):
        await test_no_transaction_is_half_ended_wherever_it_is_interrupted(Fault.MOVES, 2)


async def test_an_epoch_of_coordinators_that_fences_none_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    write = MarkerRoutes.write

    async def with_the_same_epoch(self: MarkerRoutes, marker: Marker, partitions: Any) -> Any:
        return await write(self, marker._replace(coordinator_epoch=1), partitions)

    monkeypatch.setattr(MarkerRoutes, "write", with_the_same_epoch)
    with pytest.raises(AssertionError):
        await test_no_transaction_is_half_ended_wherever_it_is_interrupted(Fault.MOVES_UNNOTICED, 1)

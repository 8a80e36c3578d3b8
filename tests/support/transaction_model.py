"""A small world in which everything that can happen to transactions does, by seed, and what must hold.

A coordinator core, three partition logs, and producers of both generations, one of them with a rival of the
same transactional id. Requests and answers get lost or come late, markers are written one by one in any
order, the coordinator moves and leaves a zombie behind, partitions are killed, time passes.

What must hold, at any moment: a read_committed consumer sees each record at most once, and only records of
transactions whose producer asked to commit and was not told that they were aborted; the last stable offset
never goes back. And when everything has calmed down: of each transaction all acknowledged records are seen or
none, as its producer was told; nothing hangs.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from pykafka_broker.coordinator.transactions.core import events
from pykafka_broker.coordinator.transactions.core.events import WriteMarkers
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.log.partition.producers import AppendOrigin
from pykafka_broker.log.partition.transaction_guards import NO_GUARD
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import iter_batches, read_records
from pykafka_broker.protocol.records.control import EndTransactionMarker, build_marker_batch
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.testing.memory_files import MemoryFiles
from tests.log.logs import NOW, batch, new_log, reopened
from tests.support.transactions import TransactionWorld

PARTITIONS = 3
OLD, NEW = 1, 2
OK = ErrorCode.NONE
AGAIN = (ErrorCode.CONCURRENT_TRANSACTIONS,)


class World:
    """The broker's side, and what is known of each transaction's fate."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.is_calm = False
        self.coordinator = TransactionWorld()
        self.coordinator.submit(events.Loaded(self.coordinator.now_ms))
        self.coordinator_epoch = 0
        self.files = [MemoryFiles() for _ in range(PARTITIONS)]
        self.logs = [new_log(files) for files in self.files]
        self.stable = [0] * PARTITIONS
        #: Requests on their way whose callers have given up.
        self.late: list[Callable[[], object]] = []
        #: Partitions that have their marker, for each decision that is being carried out.
        self.marked: dict[WriteMarkers, set[TopicPartition]] = {}
        self.transactions = 0
        self.acknowledged: dict[int, set[str]] = {}
        self.asked_to_commit: set[int] = set()
        self.told: dict[int, bool] = {}
        self.producers = [
            Producer(self, "a", NEW),
            Producer(self, "a", NEW),
            Producer(self, "b", NEW),
            Producer(self, "c", OLD),
            Producer(self, "d", OLD),
        ]

    def chance(self, probability: float) -> bool:
        return not self.is_calm and self.random.random() < probability

    def run(self, steps: int) -> None:
        for step in range(steps):
            self.step()
            self.check_stable_offsets()
            if step % 10 == 0:
                self.check_readers()
        self.calm_down()

    def step(self) -> None:
        roll = self.random.random()
        if roll < 0.66:
            self.random.choice(self.producers).act()
        elif roll < 0.86:
            self.write_a_marker()
        elif roll < 0.93:
            self.deliver_something_late()
        elif roll < 0.96:
            self.coordinator.advance(self.random.choice([10, 5_000, 20_000]))
            self.coordinator.find_producer_ids()
        elif roll < 0.98:
            self.move_coordinator()
        else:
            self.kill_partition(self.random.randrange(PARTITIONS))

    # ---- what a broker does ----

    def produce(
        self,
        partition: int,
        txn_id: str,
        producer: tuple[int, int],
        sequence: int,
        value: str,
        version: int,
        *,
        is_late: bool = False,
    ) -> ErrorCode:
        """What a leader does with a transactional batch.

        While the coordinator's answer about a late one is on its way, anything may happen.
        """
        try:
            guard = self.logs[partition].writer.start_verification(
                *producer, sequence, bumps_epoch=version == NEW, now_ms=NOW
            )
            if guard != NO_GUARD:
                place = TopicPartition("t", partition)
                if version == NEW:
                    error = self.coordinator.add(producer, place, txn_id=txn_id)
                else:
                    error = self.coordinator.verify(producer, place, txn_id=txn_id)[place]
                if error is not OK:
                    return error
            while is_late and self.chance(0.8):
                self.step()
            self.logs[partition].writer.append(
                batch(
                    value.encode(),
                    producer_id=producer[0],
                    producer_epoch=producer[1],
                    base_sequence=sequence,
                    transactional=True,
                ),
                leader_epoch=0,
                now_ms=NOW,
                guard=guard,
            )
        except KafkaError as refusal:
            return refusal.code
        self.advance(partition)
        return OK

    def advance(self, partition: int) -> None:
        log = self.logs[partition]
        log.state.advance_high_watermark(log.state.log_end_offset)

    def write_a_marker(self) -> None:
        """One partition of one decision gets its marker; after the last one the transaction is complete."""
        if not self.coordinator.markers:
            return
        decision = self.random.choice(self.coordinator.markers)
        marked = self.marked.setdefault(decision, set())
        left = sorted(decision.partitions - marked)
        if left:
            place = self.random.choice(left)
            self.append_marker(decision, place, self.coordinator_epoch)
            marked.add(place)
        else:
            self.coordinator.markers.remove(decision)
            del self.marked[decision]
            self.coordinator.submit(
                events.MarkersWritten(
                    self.coordinator.now_ms,
                    decision.transactional_id,
                    decision.producer_id,
                    decision.producer_epoch,
                )
            )

    def append_marker(self, decision: WriteMarkers, place: TopicPartition, coordinator_epoch: int) -> None:
        marker = build_marker_batch(
            EndTransactionMarker(decision.commit, coordinator_epoch),
            producer_id=decision.producer_id,
            producer_epoch=decision.producer_epoch,
            timestamp_ms=NOW,
        )
        try:
            self.logs[place.partition].writer.append(
                marker,
                leader_epoch=0,
                now_ms=NOW,
                origin=AppendOrigin.COORDINATOR,
                transaction_version=decision.transaction_version,
            )
        except KafkaError as refusal:
            fenced = {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED}
            assert refusal.code in fenced, refusal
            return
        self.advance(place.partition)

    def deliver_something_late(self) -> None:
        if self.late:
            self.late.pop(self.random.randrange(len(self.late)))()

    def move_coordinator(self) -> None:
        """Another broker takes over; some markers of the old coordinator are still on their way."""
        for decision in self.coordinator.markers:
            for place in sorted(decision.partitions):
                if self.chance(0.5):
                    epoch = self.coordinator_epoch
                    self.late.append(
                        lambda d=decision, p=place, e=epoch: self.append_marker(d, p, e)  # type: ignore[misc]
                    )
        self.coordinator = self.coordinator.reload()
        self.coordinator_epoch += 1
        self.marked.clear()

    def kill_partition(self, partition: int) -> None:
        end = self.logs[partition].state.log_end_offset
        self.files[partition] = self.files[partition].killed()
        self.logs[partition] = reopened(self.files[partition], high_watermark=end)
        self.advance(partition)

    def calm_down(self) -> None:
        """Everything that is on its way arrives, and new producers take the places of all others."""
        self.is_calm = True
        while self.late:
            self.late.pop()()
        for txn_id in tuple(self.coordinator.state.by_id):
            for _ in range(10):
                if self.coordinator.init(txn_id=txn_id).error is OK:
                    break
                self.finish_markers()
            else:
                raise AssertionError(f"{txn_id} hangs")
        self.finish_markers()
        self.check_outcomes()

    def finish_markers(self) -> None:
        while self.coordinator.markers:
            self.write_a_marker()

    # ---- what must hold ----

    def check_stable_offsets(self) -> None:
        for partition, log in enumerate(self.logs):
            assert self.stable[partition] <= log.state.last_stable_offset <= log.state.high_watermark
            self.stable[partition] = log.state.last_stable_offset

    def check_readers(self) -> set[str]:
        seen = [value for log in self.logs for value in visible(log)]
        assert len(seen) == len(set(seen)), "a record is seen twice"
        for value in seen:
            number = int(value.partition(":")[0])
            assert number in self.asked_to_commit, f"{value} is seen, and its commit was not requested"
            assert self.told.get(number, True), f"{value} is seen, and its producer was told it was aborted"
        return set(seen)

    def check_outcomes(self) -> None:
        seen = self.check_readers()
        for number, acknowledged in self.acknowledged.items():
            of_this = {value for value in seen if value.partition(":")[0] == str(number)}
            if self.told.get(number):
                assert of_this == acknowledged, f"transaction {number} was committed and is torn"
            else:
                assert of_this in (set(), acknowledged), f"transaction {number} is torn"
        for log in self.logs:
            assert log.state.last_stable_offset == log.state.log_end_offset, "a transaction hangs"


class Producer:
    """One producer instance; it does what Kafka's clients of its generation do."""

    def __init__(self, world: World, txn_id: str, version: int) -> None:
        self.world = world
        self.txn_id = txn_id
        self.version = version
        self.producer: tuple[int, int] | None = None
        #: The id and epoch to hold when initialising again after an abort that left questions open (KIP-360).
        self.holds = (-1, -1)
        self.sequences: dict[int, int] = {}
        self.number: int | None = None
        self.added: set[int] = set()
        self.must_abort = False
        self.ending: bool | None = None

    def act(self) -> None:
        world = self.world
        if self.producer is None:
            self.initialise()
        elif self.ending is not None:
            self.end(self.ending)
        elif self.number is None:
            world.transactions += 1
            self.number = world.transactions
            world.acknowledged[self.number] = set()
        elif world.chance(0.6):
            self.write()
        elif not self.added:
            self.number, self.must_abort = None, False
        else:
            self.end(not self.must_abort and world.chance(0.7))

    def initialise(self) -> None:
        result = self.world.coordinator.init(self.holds, txn_id=self.txn_id, timeout_ms=30_000)
        if result.error is ErrorCode.PRODUCER_FENCED:
            self.holds = (-1, -1)
        if result.error is OK and not self.world.chance(0.1):
            self.goes_on_as((result.producer_id, result.producer_epoch))
            self.holds = (-1, -1)

    def goes_on_as(self, producer: tuple[int, int]) -> None:
        if producer != self.producer:
            self.sequences.clear()
        self.producer = producer

    def dies(self) -> None:
        """It is fenced, or does not know what else to do; its successor starts from nothing."""
        self.__init__(self.world, self.txn_id, self.version)  # type: ignore[misc]

    def write(self) -> None:
        world, producer, number = self.world, self.producer, self.number
        assert producer is not None and number is not None
        partition = world.random.randrange(PARTITIONS)
        if self.version == OLD and partition not in self.added:
            place = TopicPartition("t", partition)
            error = world.coordinator.add(producer, place, txn_id=self.txn_id, version=OLD)
            if error is not OK:
                return None if error in AGAIN else self.dies()
        self.added.add(partition)
        sequence = self.sequences.get(partition, 0)
        value = f"{number}:{partition}:{sequence}"

        def send(is_late: bool = False) -> ErrorCode:
            return world.produce(
                partition, self.txn_id, producer, sequence, value, self.version, is_late=is_late
            )

        fate = world.random.random()
        if fate < 0.06:
            self.must_abort = True  # lost
            return None
        if fate < 0.14:
            self.must_abort = True
            world.late.append(lambda: send(is_late=True))
            return None
        if fate < 0.22:
            send()  # the answer is lost, so it is sent again
        error = send()
        if error is OK:
            self.sequences[partition] = sequence + 1
            world.acknowledged[number].add(value)
        elif error not in AGAIN:
            self.dies()
        return None

    def end(self, commit: bool) -> None:
        world, producer, number = self.world, self.producer, self.number
        assert producer is not None and number is not None
        self.ending = commit
        if commit:
            world.asked_to_commit.add(number)

        def send() -> events.ProducerIdResult:
            return world.coordinator.end(producer, commit=commit, txn_id=self.txn_id, version=self.version)

        fate = world.random.random()
        if fate < 0.08:
            return  # lost
        if fate < 0.16 and self.version == NEW:
            world.late.append(send)
            return
        result = send()
        if fate < 0.26:
            return  # the answer is lost
        if result.error in AGAIN:
            return
        if result.error is not OK:
            self.dies()
            return
        world.told[number] = commit
        if self.version == NEW:
            self.goes_on_as((result.producer_id, result.producer_epoch))
        elif self.must_abort:
            # An old client cannot tell what became of its records: it wants an epoch that they do not have.
            self.holds, self.producer = producer, None
        self.number, self.ending, self.must_abort = None, None, False
        self.added.clear()


def visible(log: PartitionLog) -> list[str]:
    """The values of a log that a read_committed consumer sees."""
    values: list[str] = []
    offset = 0
    while offset < log.state.last_stable_offset:
        plan = log.reader.plan_read(offset, 1 << 20, limit="last_stable")
        data = plan.read()
        aborted = [(txn.first_offset, txn.producer_id) for txn in plan.aborted_transactions()]
        skipped: set[int] = set()
        for position, header in iter_batches(data):
            while aborted and aborted[0][0] <= header.last_offset:
                skipped.add(aborted.pop(0)[1])
            if header.is_control:
                skipped.discard(header.producer_id)
            elif header.producer_id not in skipped:
                records = read_records(data[position : position + header.size_in_bytes])
                values += [bytes(record.value or b"").decode() for record in records]
            offset = header.next_offset
    return values

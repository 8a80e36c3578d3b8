"""The work of a task: it writes the rows of one partition after the other, each with a producer of its own.

The producer's transactional id is that of the partition in this replay. So a new task fences the previous
one, of a killed run or of an attempt that Spark gave up. Then it asks for the progress of the partition,
leaves out the rows before it, and writes the rest: a transaction has records, and the offset behind them
committed for the group of the replay. If the outcome of a transaction is not known, the progress is asked for
again, and the transaction is sent again only if it was not committed.

A transaction is gathered before it begins, and is open only while it travels: so a stalled source, a slow
rate or a full executor cannot make it time out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from pykafka_broker import __version__
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import Identity
from pykafka_broker.client.core.offset import CommittedOffset
from pykafka_broker.client.core.producer_state import ProducerFenced, TransactionLost
from pykafka_broker.client.producer import Producer
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.spark.replay.claims import Claim, difference, written
from pykafka_broker.spark.replay.errors import ReplayError
from pykafka_broker.spark.replay.pace import Pace
from pykafka_broker.spark.replay.settings import Settings
from pykafka_broker.spark.replay.transactions import Gathering, Transaction, rows_of, runs_of
from pykafka_broker.spark.security import OPEN, secured
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

WRITER = Identity("pykafka-broker-replay", __version__, kind="replay")
#: The time that one request may take.
REQUEST_TIMEOUT_S = 30.0
#: The attempts to commit a transaction.
SENDINGS = 10

RESULT_DDL = (
    "topic STRING, partition INT, records BIGINT, bytes BIGINT, duplicates BIGINT, skipped BIGINT, "
    "transactions BIGINT, position BIGINT"
)


class Assignment(NamedTuple):
    """A partition to write, and its source."""

    target: PartitionKey
    claim: Claim
    #: The largest batch that the topic takes.
    batch_bytes: int


class Job(NamedTuple):
    """The replay, as every task knows it."""

    bootstrap_servers: str
    #: The group of the progress, and the beginning of transactional ids.
    name: str
    assignments: tuple[Assignment, ...]
    settings: Settings
    #: Properties of Kafka's clients.
    security: Mapping[str, str] = OPEN

    def __repr__(self) -> str:
        """The fields without the security, which has secrets."""
        return f"Job({', '.join(map(repr, self[:-1]))})"

    def producer(self, client: Client, target: PartitionKey) -> Producer:
        """The producer that alone may write a partition in this replay."""
        return Producer(
            client,
            f"{self.name}-{target[0]}-{target[1]}",
            transaction_timeout_ms=self.settings.transaction_timeout_ms,
            delivery_timeout_s=self.settings.delivery_timeout_s,
        )


class Written(NamedTuple):
    """The result of a partition; `position` is the offset in the source of the next record."""

    topic: str
    partition: int
    records: int
    bytes: int
    #: Rows that the source has twice.
    duplicates: int
    #: Rows that were there already.
    skipped: int
    transactions: int
    position: int


def task(job: Job) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow` over the rows of `arranged`; it yields `RESULT_DDL`."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        results = [result._asdict() for result in write(job, batches)]
        if results:
            types = (pa.string(), pa.int32(), *[pa.int64()] * 6)
            schema = pa.schema(list(zip(Written._fields, types, strict=True)))
            yield pa.RecordBatch.from_pylist(results, schema)

    return run


def write(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[Written]:
    """Write all rows; yield the result of each partition.

    Raises:
        ReplayError: a record is refused, or the brokers are away for too long.
    """
    with Client(job.bootstrap_servers, REQUEST_TIMEOUT_S, identity=secured(WRITER, job.security)) as client:
        index, writer = -1, None
        for batch in batches:
            for target, run in runs_of(batch, "target"):
                if writer is None or target != index:
                    if writer is not None:
                        yield writer.finish()
                    index, writer = target, PartitionWriter(client, job, job.assignments[target])
                writer.write(run)
        if writer is not None:
            yield writer.finish()


class PartitionWriter:
    """Writes one partition."""

    def __init__(self, client: Client, job: Job, assignment: Assignment) -> None:
        """Fence the task that wrote it before, and ask for the progress.

        Raises:
            ReplayError: the progress is of another replay, or the brokers are away for too long.
        """
        self._group = job.name
        self._target, self._claim = assignment.target, assignment.claim
        self._text = written(assignment.claim)
        self._producer = job.producer(client, assignment.target)
        try:
            self._producer.initialise()
            committed = self._committed()
        except (KafkaError, OSError) as error:
            raise self._failed(error) from None
        reason = "is gone" if committed is None else difference(self._claim, committed.metadata)
        if committed is None or reason:
            raise ReplayError(f"{self._name}: the progress of group '{self._group}' {reason}.")
        settings = job.settings._replace(batch_bytes=assignment.batch_bytes)
        self._gathering = Gathering(settings, committed.offset)
        self._position = committed.offset
        self._pace = Pace(settings.records_per_s, settings.bytes_per_s, time.monotonic())
        self._records = self._bytes = self._transactions = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the transactions that these rows complete.

        Raises:
            ReplayError: a record is refused, or the brokers are away for too long.
        """
        for transaction in self._gathering.add(rows_of(batch)):
            self._send(transaction)

    def finish(self) -> Written:
        """Write the rest.

        Raises:
            ReplayError: a record is refused, or the brokers are away for too long.
        """
        for transaction in self._gathering.finish():
            self._send(transaction)
        topic, partition = self._target
        return Written(
            topic,
            partition,
            self._records,
            self._bytes,
            self._gathering.duplicates,
            self._gathering.skipped,
            self._transactions,
            self._position,
        )

    def _send(self, transaction: Transaction) -> None:
        time.sleep(self._pace.wait_s(transaction.records, transaction.size_bytes, time.monotonic()))
        try:
            self._commit(transaction)
        except (KafkaError, OSError) as error:
            raise self._failed(error, transaction) from None
        self._position = transaction.next_offset
        self._records += transaction.records
        self._bytes += transaction.size_bytes
        self._transactions += 1

    def _commit(self, transaction: Transaction) -> None:
        producer = self._producer
        behind = {self._target: CommittedOffset(transaction.next_offset, self._text)}
        for sending in range(1, SENDINGS + 1):
            try:
                for batch in transaction.batches:
                    producer.write(self._target, batch)
                producer.commit_offsets(self._group, behind)
                producer.commit()
                return
            except TransactionLost:
                if sending == SENDINGS:
                    raise
                producer.recover()
                committed = self._committed()
                if committed is not None and committed.offset >= transaction.next_offset:
                    return

    def _committed(self) -> CommittedOffset | None:
        return self._producer.committed_offsets(self._group, [self._target]).get(self._target)

    @property
    def _name(self) -> str:
        return f"{self._target[0]}-{self._target[1]}"

    def _failed(self, error: Exception, transaction: Transaction | None = None) -> ReplayError:
        """The error with its partition, and the offsets that are not written."""
        reason = error.message if isinstance(error, KafkaError) else str(error)
        if transaction is None:
            return ReplayError(f"{self._name}: {reason}")
        where = f"offsets {transaction.first_offset} to {transaction.next_offset - 1} of the source"
        if isinstance(error, (ProducerFenced, OSError)):
            return ReplayError(f"{self._name}: {reason} Started again, the replay goes on with {where}.")
        self._give_up()
        return ReplayError(f"{self._name} does not take {where}: {reason}")

    def _give_up(self) -> None:
        """Abort the refused transaction, or leave it to its time-out."""
        with suppress(KafkaError, OSError):
            self._producer.abort()

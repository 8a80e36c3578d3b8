"""The events of the transactions of a shard, the answers to the callers, and the work that is started.

Each request carries the token of its answer, and the time if it matters. `client_version` is the client's
transaction.version, derived from the version of its request.
"""

from __future__ import annotations

from typing import Union

from pykafka_broker.coordinator.transactions.core.state import NO_TIMESTAMP
from pykafka_broker.machine.step import Loaded as Loaded
from pykafka_broker.machine.step import TimerFired as TimerFired
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.system.named_tuple import NamedTuple


class NeedsProducerId(NamedTuple):
    """The answer to a request that cannot be decided without a fresh producer id: ask again with one."""


class InitProducerId(NamedTuple):
    """A client asks to become, or to stay, the producer of a transactional id."""

    token: int
    now_ms: int
    transactional_id: str
    timeout_ms: int
    #: The id and epoch that the producer holds (KIP-360); -1 if it holds none.
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    fresh_producer_id: int = NO_PRODUCER_ID
    #: The client in words, for explanations: it decides nothing.
    client: str = ""


class ProducerIdResult(NamedTuple):
    """The answer to InitProducerId and EndTransaction: the producer's next id and epoch."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class AddPartitions(NamedTuple):
    """Partitions join the transaction, and begin it if none is open. Answered with an `ErrorCode`."""

    token: int
    now_ms: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    client_version: int


class VerifyPartitions(NamedTuple):
    """Are these partitions part of the transaction? Answered with an `ErrorCode` for each."""

    token: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]


class EndTransaction(NamedTuple):
    """Commit or abort; answered with a `ProducerIdResult` once the decision is in the log."""

    token: int
    now_ms: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    client_version: int
    fresh_producer_id: int = NO_PRODUCER_ID


class MarkersWritten(NamedTuple):
    """Every partition of a decided transaction has its marker."""

    now_ms: int
    transactional_id: str
    producer_id: int
    producer_epoch: int


class AbortTimedOut(NamedTuple):
    """A timed out transaction that needs a fresh producer id can now be aborted."""

    now_ms: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    fresh_producer_id: int


class DescribeTransaction(NamedTuple):
    """Describe one transactional id."""

    token: int
    transactional_id: str


class DescribedTransaction(NamedTuple):
    """The answer to DescribeTransaction."""

    error: ErrorCode
    state: str = ""
    timeout_ms: int = 0
    start_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    partitions: frozenset[TopicPartition] = frozenset()


class ListTransactions(NamedTuple):
    """List the transactional ids that pass all filters; empty ones let everything through."""

    token: int
    now_ms: int
    states: frozenset[str] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    #: Only transactions that began longer ago than this; negative: all.
    duration_ms: int = NO_TIMESTAMP


class ListedTransaction(NamedTuple):
    """One line of ListTransactions."""

    transactional_id: str
    producer_id: int
    state: str


Event = Union[
    InitProducerId,
    AddPartitions,
    VerifyPartitions,
    EndTransaction,
    MarkersWritten,
    AbortTimedOut,
    DescribeTransaction,
    ListTransactions,
    Loaded,
    TimerFired,
]


# ---- work that is started ----


class WriteMarkers(NamedTuple):
    """Write the outcome into every partition, until each has it; then `MarkersWritten`."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    partitions: frozenset[TopicPartition]
    transaction_version: int


class FindProducerId(NamedTuple):
    """Get a fresh producer id for a transaction that timed out; then `AbortTimedOut`."""

    transactional_id: str
    producer_id: int
    producer_epoch: int

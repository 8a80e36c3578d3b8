"""The state of the transaction coordinator: the producer and the transaction of each transactional id.

`Transactions` is the state of one shard, that is, of one partition of `__transaction_state`. All of it is
immutable and all of it but `last_producer_epoch` is durable: a step writes the metadata that it installs.

    Empty ──┐                      ┌─▶ PrepareCommit ──▶ CompleteCommit ─┐
            ├─▶ Ongoing ───────────┤                                     ├─▶ Ongoing, Empty, PrepareAbort
    Complete┘                      └─▶ PrepareAbort ───▶ CompleteAbort ──┘

*Prepare* is the decision: once it is in the log, the outcome survives any crash. *Complete* says that every
partition has its marker. PrepareEpochFence and Dead are Kafka's names for moments between two records;
nothing is ever stored in them.
"""

from __future__ import annotations

import enum

from pykafka_broker.machine.illegal_state import IllegalState
from pykafka_broker.machine.versioned_map import VersionedMap
from pykafka_broker.protocol.records.batch import (
    EPOCH_BUMP,
    MAX_PRODUCER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
)
from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.system.named_tuple import NamedTuple

NO_TIMESTAMP = -1
#: The timeout of a transaction that an outside coordinator decides on (KIP-939): it never times out.
NO_TIMEOUT_MS = (1 << 31) - 1

#: The transaction.version from which on records are flexible.
FLEXIBLE_RECORDS = 1


class TransactionState(enum.Enum):
    """Kafka's states; the value is the number in the records."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    #: A transaction looks its states up in sets and tables a dozen times; that of `Enum` hashes the name.
    __hash__ = object.__hash__

    @property
    def display_name(self) -> str:
        """The name that administrators see: "CompleteCommit"."""
        return _NAMES[self]

    @property
    def is_over(self) -> bool:
        """No transaction is open: the next one may begin, or the id may be forgotten."""
        return self in _OVER

    @property
    def is_decided(self) -> bool:
        """The outcome is in the log, and markers are being written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


_NAMES = {state: "".join(word.capitalize() for word in state.name.split("_")) for state in TransactionState}
STATES_BY_NAME = {name: state for state, name in _NAMES.items()}
_OVER = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})

#: The states from which each state may be reached.
VALID_PREVIOUS_STATES: dict[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: _OVER,
    TransactionState.ONGOING: _OVER | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: _OVER | {TransactionState.ONGOING},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
}


class TransactionMetadata(NamedTuple):
    """One transactional id: its producer, and its current or last transaction."""

    transactional_id: str
    producer_id: int
    timeout_ms: int
    last_update_ms: int
    #: The producer id before the last change of state; differs only right after an id was replaced.
    previous_producer_id: int = NO_PRODUCER_ID
    #: The producer id after the current transaction, if the epochs of `producer_id` are used up.
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    #: The epoch before the last bump, to recognise a retry of InitProducerId. Soft.
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    #: The transaction.version of the client that began or ended the transaction.
    client_transaction_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        """True if only the last epoch is left, with which the coordinator can still fence."""
        return is_epoch_exhausted(self.producer_epoch)

    def moved_to(self, state: TransactionState, **changes: object) -> TransactionMetadata:
        """The metadata in its next state.

        Raises:
            IllegalState: no transaction goes from its current state to that one.
        """
        if self.state not in VALID_PREVIOUS_STATES[state]:
            raise IllegalState(f"{self.transactional_id} cannot go from {self.state} to {state}: {self}")
        return self._replace(state=state, previous_producer_id=self.producer_id, **changes)  # type: ignore[arg-type]

    def durable(self, transaction_version: int) -> TransactionMetadata:
        """The durable part, at the finalised level of the feature."""
        found = self._replace(last_producer_epoch=NO_PRODUCER_EPOCH)
        if transaction_version >= FLEXIBLE_RECORDS:
            return found
        return found._replace(
            previous_producer_id=NO_PRODUCER_ID, next_producer_id=NO_PRODUCER_ID, client_transaction_version=0
        )


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """True if no producer may get the epoch after this one."""
    return producer_epoch >= MAX_PRODUCER_EPOCH - 1


class TransactionConfig(NamedTuple):
    """The configuration values the coordinator acts on; may be swapped while it runs."""

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 7 * 24 * 60 * 60 * 1000
    transaction_abort_timed_out_interval_ms: int = 10_000
    transaction_remove_expired_interval_ms: int = 60 * 60 * 1000
    #: The wait of a first write for the transaction before it: between two attempts, and in total.
    add_partitions_retry_backoff_ms: int = 20
    add_partitions_retry_backoff_max_ms: int = 100
    #: The finalised level of the feature.
    transaction_version: int = EPOCH_BUMP


class Transactions(NamedTuple):
    """Everything one shard knows."""

    by_id: VersionedMap[str, TransactionMetadata]

    @classmethod
    def empty(cls) -> Transactions:
        """The state of a shard whose partition is empty."""
        return cls(VersionedMap())

    def with_metadata(self, metadata: TransactionMetadata) -> Transactions:
        """The state with one transactional id put in or replaced."""
        return Transactions(self.by_id.with_item(metadata.transactional_id, metadata))

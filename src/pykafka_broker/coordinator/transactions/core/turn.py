"""The parts of a transition: the answer alone, the record of a change, the work that a decision starts."""

from __future__ import annotations

from pykafka_broker.coordinator.transactions.core.events import WriteMarkers
from pykafka_broker.coordinator.transactions.core.records import metadata_record
from pykafka_broker.coordinator.transactions.core.state import (
    TransactionConfig,
    TransactionMetadata,
    Transactions,
    TransactionState,
)
from pykafka_broker.machine.step import Effect, Reply, Start, Step


def answer(state: Transactions, token: int, result: object) -> Step[Transactions]:
    """Answer a request and change nothing."""
    return Step(state, effects=(Reply(token, result),))


def confirmed(
    state: Transactions, metadata: TransactionMetadata, config: TransactionConfig, token: int, result: object
) -> Step[Transactions]:
    """Give a final answer from what is known of an id, and write the id's record again.

    A coordinator that is cut off does not know that another one has taken over and changed this id. Its
    record is never committed, so the producer gets no answer and looks up the coordinator again. Apache
    Kafka's coordinator answers at once.
    """
    return written(state, metadata, config, Reply(token, result))


def written(
    state: Transactions, metadata: TransactionMetadata, config: TransactionConfig, *effects: Effect
) -> Step[Transactions]:
    """The new metadata of one id, its record, and the effects that follow."""
    record = metadata_record(metadata, config.transaction_version)
    return Step(state.with_metadata(metadata), (record,), effects)


def markers_of(metadata: TransactionMetadata) -> Start:
    """The work that a decided transaction still needs."""
    return Start(
        WriteMarkers(
            metadata.transactional_id,
            metadata.producer_id,
            metadata.producer_epoch,
            metadata.state is TransactionState.PREPARE_COMMIT,
            metadata.partitions,
            metadata.client_transaction_version,
        )
    )

"""The partitions of a transaction: adding them, which begins it, and verifying them (KIP-890)."""

from __future__ import annotations

from pykafka_broker.coordinator.transactions.core.events import AddPartitions, VerifyPartitions
from pykafka_broker.coordinator.transactions.core.state import (
    TransactionConfig,
    TransactionMetadata,
    Transactions,
    TransactionState,
)
from pykafka_broker.coordinator.transactions.core.turn import answer, confirmed, written
from pykafka_broker.machine.step import Reply, Step
from pykafka_broker.protocol.errors import ErrorCode


def on_add_partitions(
    state: Transactions, event: AddPartitions, config: TransactionConfig
) -> Step[Transactions]:
    """Add partitions to the open transaction, or begin one with them."""
    metadata = state.by_id.get(event.transactional_id)
    if metadata is None:
        return answer(state, event.token, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if metadata.state.is_decided:
        # Checked first: the producer may already use the id that it gets at the completion.
        return answer(state, event.token, ErrorCode.CONCURRENT_TRANSACTIONS)
    error = fenced(metadata, event.producer_id, event.producer_epoch)
    if error is not ErrorCode.NONE:
        return confirmed(state, metadata, config, event.token, error)
    is_ongoing = metadata.state is TransactionState.ONGOING
    if is_ongoing and event.partitions <= metadata.partitions:
        return answer(state, event.token, ErrorCode.NONE)
    ongoing = metadata.moved_to(
        TransactionState.ONGOING,
        partitions=metadata.partitions | event.partitions,
        start_ms=metadata.start_ms if is_ongoing else event.now_ms,
        last_update_ms=event.now_ms,
        client_transaction_version=event.client_version,
    )
    return written(state, ongoing, config, Reply(event.token, ErrorCode.NONE))


def on_verify_partitions(state: Transactions, event: VerifyPartitions) -> Step[Transactions]:
    """Confirm each partition that has been added; nothing changes."""
    metadata = state.by_id.get(event.transactional_id)
    if metadata is None:
        error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    else:
        error = fenced(metadata, event.producer_id, event.producer_epoch)
        if error is ErrorCode.NONE and metadata.state.is_decided:
            error = ErrorCode.CONCURRENT_TRANSACTIONS
    added = metadata.partitions if metadata is not None else frozenset()
    result = {
        partition: error or (ErrorCode.NONE if partition in added else ErrorCode.TRANSACTION_ABORTABLE)
        for partition in event.partitions
    }
    return answer(state, event.token, result)


def fenced(metadata: TransactionMetadata, producer_id: int, producer_epoch: int) -> ErrorCode:
    """Is the sender the producer of this transactional id?"""
    if metadata.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if metadata.producer_epoch != producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE

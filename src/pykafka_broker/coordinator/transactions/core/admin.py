"""The requests of administrators about transactions: DescribeTransactions, ListTransactions (KIP-664)."""

from __future__ import annotations

from pykafka_broker.coordinator.transactions.core.events import (
    DescribedTransaction,
    DescribeTransaction,
    ListedTransaction,
    ListTransactions,
)
from pykafka_broker.coordinator.transactions.core.state import TransactionMetadata, Transactions
from pykafka_broker.coordinator.transactions.core.turn import answer
from pykafka_broker.machine.step import Step
from pykafka_broker.protocol.errors import ErrorCode


def on_describe(state: Transactions, event: DescribeTransaction) -> Step[Transactions]:
    """Describe one transactional id."""
    metadata = state.by_id.get(event.transactional_id)
    if metadata is None:
        return answer(state, event.token, DescribedTransaction(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND))
    described = DescribedTransaction(
        ErrorCode.NONE,
        metadata.state.display_name,
        metadata.timeout_ms,
        metadata.start_ms,
        metadata.producer_id,
        metadata.producer_epoch,
        metadata.partitions,
    )
    return answer(state, event.token, described)


def on_list(state: Transactions, event: ListTransactions) -> Step[Transactions]:
    """List the transactional ids that pass the filters."""
    listed = tuple(
        ListedTransaction(metadata.transactional_id, metadata.producer_id, metadata.state.display_name)
        for metadata in state.by_id.values()
        if _passes(metadata, event)
    )
    return answer(state, event.token, listed)


def _passes(metadata: TransactionMetadata, event: ListTransactions) -> bool:
    if event.producer_ids and metadata.producer_id not in event.producer_ids:
        return False
    if event.states and metadata.state.display_name not in event.states:
        return False
    return event.duration_ms < 0 or event.now_ms - metadata.start_ms > event.duration_ms

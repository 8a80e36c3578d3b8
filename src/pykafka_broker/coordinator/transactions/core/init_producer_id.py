"""InitProducerId: which client is the producer of a transactional id, and in which epoch (KIP-98, KIP-360).

A caller that names no producer id and epoch is the new producer: the epoch is bumped, and all earlier
producers are fenced. A caller that names its id and epoch stays the producer, or is fenced if there is a
newer producer. A retry finds its epoch already bumped and gets the same answer.

An open transaction is aborted first: the caller gets CONCURRENT_TRANSACTIONS and retries, as while markers
are written. A producer id without epochs left is replaced.
"""

from __future__ import annotations

from pykafka_broker.coordinator.transactions.core.ending import fence_and_abort
from pykafka_broker.coordinator.transactions.core.events import (
    InitProducerId,
    NeedsProducerId,
    ProducerIdResult,
)
from pykafka_broker.coordinator.transactions.core.state import (
    NO_TIMEOUT_MS,
    NO_TIMESTAMP,
    TransactionConfig,
    TransactionMetadata,
    Transactions,
    TransactionState,
    is_epoch_exhausted,
)
from pykafka_broker.coordinator.transactions.core.turn import answer, confirmed, markers_of, written
from pykafka_broker.machine.step import Reply, Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID


def on_init_producer_id(
    state: Transactions, event: InitProducerId, config: TransactionConfig
) -> Step[Transactions]:
    """Give out the next epoch, or refuse."""

    def refuse(error: ErrorCode) -> Step[Transactions]:
        return answer(state, event.token, ProducerIdResult(error))

    if not 0 < event.timeout_ms <= min(config.transaction_max_timeout_ms, NO_TIMEOUT_MS):
        return refuse(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    metadata = state.by_id.get(event.transactional_id)
    if metadata is None:
        if event.fresh_producer_id == NO_PRODUCER_ID:
            return answer(state, event.token, NeedsProducerId())
        metadata = TransactionMetadata(
            event.transactional_id, event.fresh_producer_id, event.timeout_ms, event.now_ms
        )
    elif metadata.state.is_decided:
        return refuse(ErrorCode.CONCURRENT_TRANSACTIONS)
    fenced = ProducerIdResult(ErrorCode.PRODUCER_FENCED)
    if not _may_hold(metadata, event):
        return confirmed(state, metadata, config, event.token, fenced)
    if metadata.state is TransactionState.ONGOING:
        return _abort_first(state, metadata, event, config)

    holds_epoch = event.producer_epoch != NO_PRODUCER_EPOCH
    if metadata.is_epoch_exhausted and event.producer_epoch in (NO_PRODUCER_EPOCH, metadata.producer_epoch):
        if event.fresh_producer_id == NO_PRODUCER_ID:
            return answer(state, event.token, NeedsProducerId())
        producer_id, producer_epoch = event.fresh_producer_id, 0
        last_epoch = metadata.producer_epoch if holds_epoch else NO_PRODUCER_EPOCH
    elif not holds_epoch:
        # All earlier producers are fenced, so no retry has to be recognised.
        producer_id, producer_epoch = metadata.producer_id, metadata.producer_epoch + 1
        last_epoch = NO_PRODUCER_EPOCH
    elif metadata.producer_epoch in (NO_PRODUCER_EPOCH, event.producer_epoch):
        producer_id, producer_epoch = metadata.producer_id, metadata.producer_epoch + 1
        last_epoch = metadata.producer_epoch
    elif event.producer_epoch == metadata.last_producer_epoch:
        producer_id, producer_epoch = metadata.producer_id, metadata.producer_epoch
        last_epoch = metadata.last_producer_epoch
    else:
        return confirmed(state, metadata, config, event.token, fenced)
    begun = metadata.moved_to(
        TransactionState.EMPTY,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        last_producer_epoch=last_epoch,
        timeout_ms=event.timeout_ms,
        partitions=frozenset(),
        start_ms=NO_TIMESTAMP,
        last_update_ms=event.now_ms,
    )
    reply = Reply(event.token, ProducerIdResult(ErrorCode.NONE, producer_id, producer_epoch))
    return written(state, begun, config, reply)


def _may_hold(metadata: TransactionMetadata, event: InitProducerId) -> bool:
    """Whether the caller's producer id is the current or the last one of this transactional id."""
    if event.producer_id == NO_PRODUCER_ID or metadata.producer_epoch == NO_PRODUCER_EPOCH:
        return True
    if event.producer_id == metadata.producer_id:
        return True
    # The id was replaced when its epochs were used up, and the producer did not get the answer.
    return event.producer_id == metadata.previous_producer_id and is_epoch_exhausted(event.producer_epoch)


def _abort_first(
    state: Transactions, metadata: TransactionMetadata, event: InitProducerId, config: TransactionConfig
) -> Step[Transactions]:
    aborted = fence_and_abort(metadata, event.now_ms, config, event.fresh_producer_id)
    if aborted is None:
        return answer(state, event.token, NeedsProducerId())
    reply = Reply(event.token, ProducerIdResult(ErrorCode.CONCURRENT_TRANSACTIONS))
    return written(state, aborted, config, reply, markers_of(aborted))

"""The end of transactions: the decision, the markers, and the next epoch.

A commit or an abort is decided by writing PrepareCommit or PrepareAbort. When that is in the log, the caller
is answered and the markers are written. When all markers are written, CompleteCommit or CompleteAbort is
written, and the next transaction may begin.

Clients of transaction.version 2 (KIP-890) get a new epoch with every end, so that no records of an old
transaction get into the next one. The records of a transaction have the old epoch, its markers the new one.
When its epochs are used up, the producer gets another id: PrepareCommit or PrepareAbort records the id, and
CompleteCommit or CompleteAbort puts it into force. For such a client the epoch tells retries from new
requests:

    state           abort, same epoch | abort, last epoch | commit, same epoch | commit, last epoch
    Ongoing         PrepareAbort      | fenced            | PrepareCommit      | fenced
    Empty           PrepareAbort      | fenced            | invalid state      | fenced
    CompleteAbort   PrepareAbort      | answered again    | invalid state      | fenced
    CompleteCommit  PrepareAbort      | invalid state     | invalid state      | answered again

A commit in the last epoch of an abort is late: the coordinator has aborted the transaction by itself, because
it took longer than its time-out. Apache Kafka 4.3 answers INVALID_TXN_STATE, which ends a Kafka Streams
thread; later releases fence the producer, after which Streams goes on (KAFKA-20785).

Older clients keep their epoch. If one repeats EndTxn with the same result, that is a retry; EndTxn with the
other result, or without a transaction, is an error.
"""

from __future__ import annotations

from pykafka_broker.coordinator.transactions.core.events import (
    AbortTimedOut,
    EndTransaction,
    MarkersWritten,
    NeedsProducerId,
    ProducerIdResult,
)
from pykafka_broker.coordinator.transactions.core.partitions import fenced
from pykafka_broker.coordinator.transactions.core.state import (
    TransactionConfig,
    TransactionMetadata,
    Transactions,
    TransactionState,
)
from pykafka_broker.coordinator.transactions.core.turn import answer, confirmed, markers_of, written
from pykafka_broker.machine.step import Reply, Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.records.batch import (
    EPOCH_BUMP,
    MAX_PRODUCER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
)

_COMPLETE = {True: TransactionState.COMPLETE_COMMIT, False: TransactionState.COMPLETE_ABORT}


def on_end(state: Transactions, event: EndTransaction, config: TransactionConfig) -> Step[Transactions]:
    """Decide, or refuse; an `ErrorCode` of the rules below is a final answer."""
    metadata = state.by_id.get(event.transactional_id)
    if metadata is None:
        return _refuse(state, event, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    end = _end_in_same_epoch if event.client_version < EPOCH_BUMP else _end_with_bump
    ended = end(state, metadata, event, config)
    if isinstance(ended, ErrorCode):
        return confirmed(state, metadata, config, event.token, ProducerIdResult(ended))
    return ended


def _end_in_same_epoch(
    state: Transactions, metadata: TransactionMetadata, event: EndTransaction, config: TransactionConfig
) -> Step[Transactions] | ErrorCode:
    error = fenced(metadata, event.producer_id, event.producer_epoch)
    if error is not ErrorCode.NONE:
        return error
    if metadata.state.is_decided:
        return _refuse(state, event, ErrorCode.CONCURRENT_TRANSACTIONS)
    if metadata.state is TransactionState.ONGOING:
        decided = metadata.moved_to(
            _decision(event.commit),
            next_producer_id=NO_PRODUCER_ID,
            last_update_ms=event.now_ms,
            client_transaction_version=0,
        )
        reply = Reply(event.token, ProducerIdResult(ErrorCode.NONE))
        return written(state, decided, config, reply, markers_of(decided))
    if metadata.state is _COMPLETE[event.commit]:
        return ErrorCode.NONE
    return ErrorCode.INVALID_TXN_STATE


def _end_with_bump(
    state: Transactions, metadata: TransactionMetadata, event: EndTransaction, config: TransactionConfig
) -> Step[Transactions] | ErrorCode:
    if metadata.state.is_decided:
        # Checked first: the producer may already use the id that it gets at the completion.
        return _refuse(state, event, ErrorCode.CONCURRENT_TRANSACTIONS)
    id_was_replaced = (
        metadata.previous_producer_id == event.producer_id
        and event.producer_epoch == MAX_PRODUCER_EPOCH - 1
        and metadata.producer_epoch == 0
    )
    is_retry = id_was_replaced or metadata.producer_epoch == event.producer_epoch + 1
    if metadata.producer_id != event.producer_id and not id_was_replaced:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    is_complete = metadata.state in _COMPLETE.values()
    if event.producer_epoch != metadata.producer_epoch and not (is_complete and is_retry):
        return ErrorCode.PRODUCER_FENCED
    if is_complete and is_retry:
        if metadata.state is not _COMPLETE[event.commit]:
            return ErrorCode.PRODUCER_FENCED if event.commit else ErrorCode.INVALID_TXN_STATE
        again = ProducerIdResult(ErrorCode.NONE, metadata.producer_id, metadata.producer_epoch)
        return confirmed(state, metadata, config, event.token, again)
    is_ongoing = metadata.state is TransactionState.ONGOING
    if event.commit and not is_ongoing:
        return ErrorCode.INVALID_TXN_STATE
    decided = decided_with_bump(
        metadata, event.commit, event.client_version, event.now_ms, event.fresh_producer_id
    )
    if decided is None:
        return answer(state, event.token, NeedsProducerId())
    going_on = _completed(decided, event.now_ms)
    reply = Reply(
        event.token, ProducerIdResult(ErrorCode.NONE, going_on.producer_id, going_on.producer_epoch)
    )
    return written(state, decided, config, reply, markers_of(decided))


def _refuse(state: Transactions, event: EndTransaction, error: ErrorCode) -> Step[Transactions]:
    return answer(state, event.token, ProducerIdResult(error))


def _decision(commit: bool) -> TransactionState:
    return TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT


def decided_with_bump(
    metadata: TransactionMetadata, commit: bool, transaction_version: int, now_ms: int, fresh_producer_id: int
) -> TransactionMetadata | None:
    """The decision with the next epoch; None if that needs a fresh producer id and there is none."""
    if metadata.is_epoch_exhausted and fresh_producer_id == NO_PRODUCER_ID:
        return None
    is_ongoing = metadata.state is TransactionState.ONGOING
    return metadata.moved_to(
        _decision(commit),
        producer_epoch=min(metadata.producer_epoch + 1, MAX_PRODUCER_EPOCH),
        last_producer_epoch=metadata.producer_epoch,
        next_producer_id=fresh_producer_id if metadata.is_epoch_exhausted else NO_PRODUCER_ID,
        # An abort without a transaction has its end as its start.
        start_ms=metadata.start_ms if is_ongoing else now_ms,
        last_update_ms=now_ms,
        client_transaction_version=transaction_version,
    )


def fence_and_abort(
    metadata: TransactionMetadata, now_ms: int, config: TransactionConfig, fresh_producer_id: int
) -> TransactionMetadata | None:
    """Abort an open transaction without a request of its producer, and fence the producer.

    None if that needs a fresh producer id and there is none.
    """
    if config.transaction_version >= EPOCH_BUMP:
        return decided_with_bump(metadata, False, config.transaction_version, now_ms, fresh_producer_id)
    return metadata.moved_to(
        TransactionState.PREPARE_ABORT,
        producer_epoch=min(metadata.producer_epoch + 1, MAX_PRODUCER_EPOCH),
        last_producer_epoch=NO_PRODUCER_EPOCH,
        next_producer_id=NO_PRODUCER_ID,
        last_update_ms=now_ms,
        client_transaction_version=0,
    )


def _completed(metadata: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """The metadata once every partition has its marker."""
    is_replaced = (
        metadata.client_transaction_version >= EPOCH_BUMP and metadata.next_producer_id != NO_PRODUCER_ID
    )
    return metadata.moved_to(
        _COMPLETE[metadata.state is TransactionState.PREPARE_COMMIT],
        producer_id=metadata.next_producer_id if is_replaced else metadata.producer_id,
        producer_epoch=0 if is_replaced else metadata.producer_epoch,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        last_update_ms=now_ms,
    )


def on_markers_written(
    state: Transactions, event: MarkersWritten, config: TransactionConfig
) -> Step[Transactions]:
    """Complete the transaction of these markers, unless an earlier report has completed it."""
    metadata = state.by_id.get(event.transactional_id)
    if (
        metadata is None
        or not metadata.state.is_decided
        or fenced(metadata, event.producer_id, event.producer_epoch) is not ErrorCode.NONE
    ):
        return Step(state)
    return written(state, _completed(metadata, event.now_ms), config)


def on_abort_timed_out(
    state: Transactions, event: AbortTimedOut, config: TransactionConfig
) -> Step[Transactions]:
    """Abort a transaction that timed out, unless it ended while the fresh producer id was fetched."""
    metadata = state.by_id.get(event.transactional_id)
    if (
        metadata is None
        or metadata.state is not TransactionState.ONGOING
        or fenced(metadata, event.producer_id, event.producer_epoch) is not ErrorCode.NONE
    ):
        return Step(state)
    aborted = fence_and_abort(metadata, event.now_ms, config, event.fresh_producer_id)
    assert aborted is not None, event
    return written(state, aborted, config, markers_of(aborted))

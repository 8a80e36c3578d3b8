"""Why a producer was fenced or refused: what an event has decided on a transactional id, for the history of
the node.

Pure: read from the ids before an event, from the event, and from the step. A transaction that begins, commits
or is aborted by its own producer makes no decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pykafka_broker.coordinator.transactions.core import events
from pykafka_broker.coordinator.transactions.core.events import Event, ProducerIdResult
from pykafka_broker.coordinator.transactions.core.state import (
    TransactionMetadata,
    Transactions,
    TransactionState,
)
from pykafka_broker.machine.history import Decision, Kind
from pykafka_broker.machine.step import Reply, Start, Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from pykafka_broker.system.wording import duration

SAME_ID = (
    "If both programs are to run, give each its own transactional.id; if one has taken over from the other, "
    "close the former one, which cannot go on."
)
TOO_LONG = (
    "Commit more often, or raise the producer's transaction.timeout.ms (at most the broker's "
    "transaction.max.timeout.ms). The producer has to be closed or to begin anew."
)
CLOSED = "Close this producer: it cannot go on. A new one with the same transactional.id may begin."
WRONG_STATE = (
    "The producer and the coordinator disagree about its transaction: close the producer and begin anew."
)

#: The refusals that end the work of a producer. CONCURRENT_TRANSACTIONS is none: it asks again.
_FINAL = {
    ErrorCode.PRODUCER_FENCED: CLOSED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: CLOSED,
    ErrorCode.INVALID_PRODUCER_EPOCH: CLOSED,
    ErrorCode.INVALID_TXN_STATE: WRONG_STATE,
}


#: Decide something only if they are refused.
_ROUTINE = (events.AddPartitions, events.EndTransaction)
_DECIDING = frozenset({*_ROUTINE, events.InitProducerId, events.TimerFired, events.AbortTimedOut})


def decisions(before: Transactions, event: Event, step: Step[Transactions]) -> Iterable[Decision]:
    """What `event` has decided against a producer, or for its successor."""
    # Every transaction comes here several times, and next to none is refused.
    kind = type(event)
    if kind not in _DECIDING or (kind in _ROUTINE and _refusal(step) is ErrorCode.NONE):
        return ()
    return _decisions(before, event, step)


def _decisions(before: Transactions, event: Event, step: Step[Transactions]) -> Iterator[Decision]:
    match event:
        case events.InitProducerId():
            was, now = before.by_id.get(event.transactional_id), step.state.by_id.get(event.transactional_id)
            refusal = _refusal(step)
            if refusal in _FINAL:
                yield from _refused(event, refusal, was, "InitProducerId")
            elif was is not None and now is not None and was.producer_epoch != now.producer_epoch:
                yield _taken_over(event, was, now)
        case events.AddPartitions():
            yield from _refused(event, _refusal(step), before.by_id.get(event.transactional_id), "a write")
        case events.EndTransaction():
            ending = "a commit" if event.commit else "an abort"
            yield from _refused(event, _refusal(step), before.by_id.get(event.transactional_id), ending)
        case events.TimerFired() | events.AbortTimedOut():
            for effect in step.effects:
                if isinstance(effect, Start) and isinstance(effect.work, events.WriteMarkers):
                    metadata = before.by_id.get(effect.work.transactional_id)
                    if metadata is not None:
                        yield _timed_out(metadata)


def _refusal(step: Step[Transactions]) -> ErrorCode:
    for effect in step.effects:
        if isinstance(effect, Reply):
            result = effect.result.error if isinstance(effect.result, ProducerIdResult) else effect.result
            if isinstance(result, ErrorCode):
                return result
    return ErrorCode.NONE


def _refused(
    event: events.InitProducerId | events.AddPartitions | events.EndTransaction,
    error: ErrorCode,
    metadata: TransactionMetadata | None,
    what: str,
) -> Iterator[Decision]:
    if error not in _FINAL:
        return
    transactional_id = event.transactional_id
    sender = f"with epoch {event.producer_epoch} of producer id {event.producer_id}"
    names = _names(transactional_id, event.producer_id)
    if metadata is None:
        text = f"The coordinator does not know {transactional_id}, which may have expired."
    elif error is ErrorCode.INVALID_TXN_STATE:
        text = f"The state of its transaction is {metadata.state.display_name}."
    else:
        text = (
            f"The producer is the one with epoch {metadata.producer_epoch} of producer id "
            f"{metadata.producer_id}."
        )
    yield Decision(
        Kind.PRODUCER,
        names,
        f"A producer of {transactional_id} {sender} asked for {what} and was refused with "
        f"{error.name}. {text}",
        _FINAL[error],
    )


def _taken_over(event: events.InitProducerId, was: TransactionMetadata, now: TransactionMetadata) -> Decision:
    who = event.client or "A client"
    names = tuple(
        dict.fromkeys((*_names(event.transactional_id, now.producer_id), *_names("", was.producer_id)))
    )
    if was.state is TransactionState.ONGOING:
        text = (
            f"{who} asked to be the producer of {event.transactional_id}. The producer before it, with epoch "
            f"{was.producer_epoch}, is fenced, and its open transaction is aborted first."
        )
    elif event.producer_epoch != NO_PRODUCER_EPOCH:
        text = f"{who}, the producer of {event.transactional_id}, began the epoch {now.producer_epoch}."
        return Decision(Kind.PRODUCER, names, text)
    else:
        text = (
            f"{who} became the producer of {event.transactional_id}, with epoch {now.producer_epoch} of "
            f"producer id {now.producer_id}. The producer before it, with epoch "
            f"{was.producer_epoch}, is fenced."
        )
    return Decision(Kind.PRODUCER, names, text, SAME_ID)


def _timed_out(metadata: TransactionMetadata) -> Decision:
    return Decision(
        Kind.PRODUCER,
        _names(metadata.transactional_id, metadata.producer_id),
        f"The transaction of {metadata.transactional_id} was aborted, and its producer with epoch "
        f"{metadata.producer_epoch} was fenced, because the transaction was open for longer than its "
        f"transaction.timeout.ms of {duration(metadata.timeout_ms)}.",
        TOO_LONG,
    )


def _names(transactional_id: str, producer_id: int) -> tuple[str, ...]:
    names = (transactional_id,) if transactional_id else ()
    return names if producer_id == NO_PRODUCER_ID else (*names, str(producer_id))

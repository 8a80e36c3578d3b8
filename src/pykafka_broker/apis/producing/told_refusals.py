"""The refusal of a producer's batch, as a decision for the history of the node.

Only refusals are told about that a producer cannot mend by a retry with newer metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.machine.history import Decision, Kind
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import HEADER_BYTES, read_header

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

OLD_EPOCH = (
    "A newer producer has taken its place, or the coordinator has aborted its transaction: "
    "`pykafka-broker explain producer` with the transactional.id says when. Close this producer."
)
GAP = (
    "An earlier batch of this producer was lost or refused, or the broker has forgotten the producer "
    "(producer.id.expiration.ms). An idempotent producer begins a new epoch by itself; a transactional one "
    "has to abort."
)
NO_TRANSACTION = "The producer and the broker disagree about its transaction: abort it, and begin anew."
TOO_FEW = (
    "`pykafka-broker explain partition` says which replicas are missing. The producer tries again until its "
    "delivery.timeout.ms."
)

_OF_PRODUCERS = {
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: GAP,
    ErrorCode.INVALID_PRODUCER_EPOCH: OLD_EPOCH,
    ErrorCode.PRODUCER_FENCED: OLD_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: OLD_EPOCH,
    ErrorCode.INVALID_TXN_STATE: NO_TRANSACTION,
    ErrorCode.TRANSACTION_ABORTABLE: NO_TRANSACTION,
}


def tell_refusal(topic: str, index: int, records: Any, error: KafkaError, ctx: RequestContext) -> None:
    """Tell why a batch was refused, if its producer has to know."""
    partition = f"{topic}-{index}"
    if error.code is ErrorCode.NOT_ENOUGH_REPLICAS:
        text = f"{ctx.in_words} was refused a write with acks=all: {error.message}."
        ctx.node.tell(Decision(Kind.PARTITION, (partition,), text, TOO_FEW))
        return
    remedy = _OF_PRODUCERS.get(error.code)
    if remedy is None or records is None or len(records) < HEADER_BYTES:
        return
    header = read_header(records)
    sent = f"producer id {header.producer_id}, epoch {header.producer_epoch}, sequence {header.base_sequence}"
    said = f": {error.message}" if error.message else ""
    text = f"{ctx.in_words} was refused a batch for {partition} ({sent}) with {error.code.name}{said}."
    ctx.node.tell(Decision(Kind.PRODUCER, (str(header.producer_id), ctx.client_id or ""), text, remedy))

"""Producer ids: each broker gets blocks of a thousand; a cluster never hands out an id twice."""

from __future__ import annotations

from pykafka_broker.controller.core.brokers import check_broker_epoch
from pykafka_broker.controller.core.events import AllocateProducerIds, ProducerIdBlock
from pykafka_broker.controller.core.state import ControllerState, Decision
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records import metadata as m

BLOCK_SIZE = 1_000
_MAX_INT64 = (1 << 63) - 1


def allocate_producer_ids(state: ControllerState, event: AllocateProducerIds) -> Decision:
    """The next block, for a registered broker with the current epoch."""
    check_broker_epoch(state, event.broker_id, event.broker_epoch)
    first = state.image.next_producer_id
    if first > _MAX_INT64 - BLOCK_SIZE:
        text = (
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit"
        )
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
    record = m.ProducerIdsRecord(
        broker_id=event.broker_id, broker_epoch=event.broker_epoch, next_producer_id=first + BLOCK_SIZE
    )
    return Decision((record,), ProducerIdBlock(first, BLOCK_SIZE))

"""AllocateProducerIds (API key 67): a broker fetches a block of producer ids."""

from __future__ import annotations

from pykafka_broker.controller.core.events import AllocateProducerIds, ProducerIdBlock
from pykafka_broker.controller.wire import common
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages import allocate_producer_ids as m


def request(event: AllocateProducerIds, _: common.Terms) -> m.AllocateProducerIdsRequest:
    """The request of a broker."""
    return m.AllocateProducerIdsRequest(broker_id=event.broker_id, broker_epoch=event.broker_epoch)


def read_request(request: m.AllocateProducerIdsRequest) -> AllocateProducerIds:
    """The event of a request."""
    return AllocateProducerIds(request.broker_id, request.broker_epoch)


def response(block: ProducerIdBlock) -> m.AllocateProducerIdsResponse:
    """The answer with a block."""
    return m.AllocateProducerIdsResponse(
        error_code=0, producer_id_start=block.first_producer_id, producer_id_len=block.size
    )


def refused(_: m.AllocateProducerIdsRequest, error: KafkaError) -> m.AllocateProducerIdsResponse:
    """The answer that refuses a request as a whole."""
    return m.AllocateProducerIdsResponse(error_code=int(error.code), producer_id_start=0, producer_id_len=0)


def read_response(response: m.AllocateProducerIdsResponse, _: AllocateProducerIds) -> ProducerIdBlock:
    """The block; KafkaError if there is none for this broker."""
    common.raise_refusal(response.error_code)
    return ProducerIdBlock(response.producer_id_start, response.producer_id_len)

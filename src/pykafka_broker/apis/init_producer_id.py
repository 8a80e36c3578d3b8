"""InitProducerId (API key 22): a producer id and epoch for an idempotent or a transactional producer.

v2 flexible, v3 the caller may name its id and epoch (KIP-360), v4 PRODUCER_FENCED, v5 transaction errors
(KIP-890); v6 (KIP-939) is unstable in 4.3 and not served. Without a transactional id every call returns a new
producer id and epoch 0, even if the caller names its id; with one the transaction coordinator decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_any_topic, on_cluster, on_transactional_id_of_request
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.transactional import known_error
from pykafka_broker.coordinator.transactions.core import events
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

FIRST_VERSION_WITH_PRODUCER_FENCED = 4


def failed(_request: InitProducerIdRequest, error: KafkaError) -> InitProducerIdResponse:
    """The answer to a request that failed as a whole."""
    return _refused(error.code)


@handles(
    InitProducerIdRequest,
    versions="0-5",
    needs=[
        on_transactional_id_of_request(AclOperation.WRITE),
        on_cluster(AclOperation.IDEMPOTENT_WRITE, lambda request: request.transactional_id is None)
        | on_any_topic(AclOperation.WRITE),
    ],
    error_response=failed,
)
async def init_producer_id(request: InitProducerIdRequest, ctx: RequestContext) -> InitProducerIdResponse:
    """Hand out the next id of this broker's block, or the next epoch of a transactional id."""
    # An id without an epoch, or the reverse, is no producer's state (KIP-360).
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        try:
            producer_id = await ctx.node.producer_ids.next_id()
        except KafkaError as error:
            return _refused(error.code)
        return InitProducerIdResponse(error_code=0, producer_id=producer_id, producer_epoch=0)
    transactions, transactional_id = ctx.node.transactions, request.transactional_id
    result = await transactions.answer_with_producer_id(
        transactional_id,
        lambda fresh_producer_id, token: events.InitProducerId(
            token,
            transactions.now_ms(),
            transactional_id,
            request.transaction_timeout_ms,
            request.producer_id,
            request.producer_epoch,
            fresh_producer_id,
            ctx.in_words,
        ),
    )
    error_code = known_error(result.error, ctx, FIRST_VERSION_WITH_PRODUCER_FENCED)
    return InitProducerIdResponse(
        error_code=int(error_code), producer_id=result.producer_id, producer_epoch=result.producer_epoch
    )


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=int(error), producer_id=-1, producer_epoch=-1)

"""EndTxn (API key 26): commit or abort a transaction.

v2 PRODUCER_FENCED, v3 flexible, v4 TRANSACTION_ABORTABLE, v5 bumps and returns the producer's epoch each
time, with a new producer id when the epochs are used up (transaction.version 2, KIP-890).

The answer comes when the decision is durable; markers are written after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_transactional_id_of_request
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.transactional import OLD_CLIENT, known_error
from pykafka_broker.coordinator.transactions.core import events
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from pykafka_broker.protocol.records.batch import EPOCH_BUMP

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

FIRST_VERSION_WITH_EPOCH_BUMP = 5


def failed(_request: EndTxnRequest, error: KafkaError) -> EndTxnResponse:
    """The answer to a request that failed as a whole."""
    return EndTxnResponse(error_code=int(error.code))


@handles(
    EndTxnRequest,
    versions="0-5",
    needs=[on_transactional_id_of_request(AclOperation.WRITE)],
    error_response=failed,
)
async def end_txn(request: EndTxnRequest, ctx: RequestContext) -> EndTxnResponse:
    """The coordinator decides."""
    transactions = ctx.node.transactions
    client_version = EPOCH_BUMP if ctx.version >= FIRST_VERSION_WITH_EPOCH_BUMP else OLD_CLIENT
    result = await transactions.answer_with_producer_id(
        request.transactional_id,
        lambda fresh_producer_id, token: events.EndTransaction(
            token,
            transactions.now_ms(),
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            request.committed,
            client_version,
            fresh_producer_id,
        ),
    )
    return EndTxnResponse(
        error_code=int(known_error(result.error, ctx)),
        producer_id=result.producer_id,
        producer_epoch=result.producer_epoch,
    )

"""ListTransactions (API key 66): the transactional ids this broker coordinates.

v0 filters by state and by producer id (KIP-664), v1 by duration (KIP-994), v2 by a pattern of the id
(KIP-1152; RE2 syntax, the whole id has to match). An empty filter matches everything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_transactional_ids
from pykafka_broker.apis.needs import on_transactional_ids
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.coordinator.transactions.core import events
from pykafka_broker.coordinator.transactions.core.state import STATES_BY_NAME
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(_request: ListTransactionsRequest, error: KafkaError) -> ListTransactionsResponse:
    """The answer to a request that failed as a whole."""
    return ListTransactionsResponse(
        error_code=int(error.code), unknown_state_filters=[], transaction_states=[]
    )


@handles(
    ListTransactionsRequest,
    versions="0-2",
    needs=[on_transactional_ids(AclOperation.DESCRIBE).asked_by_handler()],
    error_response=failed,
)
async def list_transactions(
    request: ListTransactionsRequest, ctx: RequestContext
) -> ListTransactionsResponse:
    """List the transactions that match every filter and that the client may describe; the answer names
    unknown states.
    """
    try:
        matches = _matcher(request.transactional_id_pattern)
    except KafkaError as failure:
        return failed(request, failure)
    transactions = ctx.node.transactions
    states, producer_ids = frozenset(request.state_filters), frozenset(request.producer_id_filters)
    error, listed = await transactions.list_all(
        lambda token: events.ListTransactions(
            token, transactions.now_ms(), states, producer_ids, request.duration_filter
        )
    )
    if error is not ErrorCode.NONE:
        return failed(request, KafkaError(error))
    found = [line for line in listed if matches(line.transactional_id)]
    hidden = denied_transactional_ids(ctx, AclOperation.DESCRIBE, (line.transactional_id for line in found))
    unknown = [name for name in dict.fromkeys(request.state_filters) if name not in STATES_BY_NAME]
    return ListTransactionsResponse(
        error_code=0,
        unknown_state_filters=unknown,
        transaction_states=[
            TransactionState(
                transactional_id=line.transactional_id,
                producer_id=line.producer_id,
                transaction_state=line.state,
            )
            for line in found
            if line.transactional_id not in hidden
        ],
    )


def _matcher(pattern: str | None) -> Callable[[str], object]:
    """Returns a function that tells whether an id matches.

    Raises:
        KafkaError: INVALID_REGULAR_EXPRESSION.
    """
    if not pattern:
        return lambda _: True
    import re2  # seldom needed, and slow to import

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from None
    return lambda transactional_id: compiled.fullmatch(transactional_id) is not None

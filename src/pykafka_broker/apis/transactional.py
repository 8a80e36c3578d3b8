"""Functions that the APIs of transactions share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

#: The transaction.version of a client that keeps its epoch; a newer one's is `EPOCH_BUMP`.
OLD_CLIENT = 0

#: AddPartitionsToTxn, AddOffsetsToTxn and EndTxn know PRODUCER_FENCED from this version on.
FIRST_VERSION_WITH_PRODUCER_FENCED = 2


def known_error(
    error: ErrorCode, ctx: RequestContext, fenced_since: int = FIRST_VERSION_WITH_PRODUCER_FENCED
) -> ErrorCode:
    """`error`, or INVALID_PRODUCER_EPOCH for a client that does not know PRODUCER_FENCED."""
    if error is ErrorCode.PRODUCER_FENCED and ctx.version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error

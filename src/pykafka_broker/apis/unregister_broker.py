"""UnregisterBroker (API key 64): remove a broker that will not come back (KIP-631).

v0 is the only version. A running broker may be removed, too: it then serves no partition, and registers again
at its next start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.controller.core.events import UnregisterBroker
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext


def failed(_request: UnregisterBrokerRequest, error: KafkaError) -> UnregisterBrokerResponse:
    """The answer to a failed request."""
    return UnregisterBrokerResponse(error_code=int(error.code), error_message=error.message)


@handles(
    UnregisterBrokerRequest,
    versions="0",
    needs=[on_cluster(AclOperation.ALTER)],
    error_response=failed,
    forwarded=True,
)
async def unregister_broker(
    request: UnregisterBrokerRequest, ctx: AdministrationContext
) -> UnregisterBrokerResponse:
    """The answer comes when the broker is gone from the metadata of this node."""
    await ctx.node.controller.ask(UnregisterBroker(request.broker_id), requester=ctx.requester)
    return UnregisterBrokerResponse(error_code=int(ErrorCode.NONE), error_message="")

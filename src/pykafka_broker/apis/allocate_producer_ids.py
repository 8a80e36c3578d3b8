"""AllocateProducerIds (API key 67): a broker fetches a block of producer ids from the controller.

v0 is the only version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.controller.wire import allocate_producer_ids as wire
from pykafka_broker.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext


@handles(
    AllocateProducerIdsRequest,
    versions="0",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=wire.refused,
)
async def allocate_producer_ids(
    request: AllocateProducerIdsRequest, ctx: ControllerContext
) -> AllocateProducerIdsResponse:
    """The next block."""
    return wire.response(await ctx.node.controller.ask(wire.read_request(request)))

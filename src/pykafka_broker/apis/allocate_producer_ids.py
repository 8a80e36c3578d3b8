"""AllocateProducerIds (API key 67): a broker fetches a block of producer ids from the controller.

v0 is the only version.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.cluster.events import AllocateProducerIds, ProducerIdBlock
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext


def _refused(request: AllocateProducerIdsRequest, error: KafkaError) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=int(error.code), producer_id_start=0, producer_id_len=0)


@handles(
    AllocateProducerIdsRequest,
    versions="0",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=_refused,
)
async def allocate_producer_ids(
    request: AllocateProducerIdsRequest, ctx: ControllerContext
) -> AllocateProducerIdsResponse:
    """The next block."""
    block: ProducerIdBlock = await ctx.node.active.result_of(
        partial(AllocateProducerIds, broker_id=request.broker_id, broker_epoch=request.broker_epoch)
    )
    return AllocateProducerIdsResponse(
        error_code=0, producer_id_start=block.first_producer_id, producer_id_len=block.size
    )

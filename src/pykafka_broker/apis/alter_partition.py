"""AlterPartition (API key 56): the leader of a partition asks the controller to change the ISR.

v2 topic ids, v3 the epoch of each in-sync broker (KIP-903).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.controller.wire import alter_partition as wire
from pykafka_broker.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext


@handles(
    AlterPartitionRequest,
    versions="2-3",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    quota=Quota.EXEMPT,
    error_response=wire.refused,
)
async def alter_partition(request: AlterPartitionRequest, ctx: ControllerContext) -> AlterPartitionResponse:
    """Each partition succeeds or fails on its own."""
    event = wire.read_request(request, ctx.version)
    return wire.response(await ctx.node.controller.ask(event), request)

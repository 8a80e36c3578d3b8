"""AssignReplicasToDirs (API key 73): a broker reports the log directories of its replicas (KIP-858).

v0 is the only version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.controller.core.directories import check_supported
from pykafka_broker.controller.wire import assign_replicas_to_dirs as wire
from pykafka_broker.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext


@handles(
    AssignReplicasToDirsRequest,
    versions="0",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=wire.refused,
)
async def assign_replicas_to_dirs(
    request: AssignReplicasToDirsRequest, ctx: ControllerContext
) -> AssignReplicasToDirsResponse:
    """An outcome for each replica."""
    # A controller that is not active refuses this, too.
    check_supported(ctx.node.metadata.image)
    return wire.response(await ctx.node.controller.ask(wire.read_request(request)), request)

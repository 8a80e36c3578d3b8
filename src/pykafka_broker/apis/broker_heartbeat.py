"""BrokerHeartbeat (API key 63): a broker shows the controller that it lives, and asks for a new state.

v1 failed log directories, v2 cordoned ones (KIP-1066). As in Kafka's ControllerApis, the controller has half
the interval between two heartbeats to answer: it answers with an error before the broker, which waits for
half a session (`membership/core/heartbeats.py`), gives up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.controller.wire import broker_heartbeat as wire
from pykafka_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext


@handles(
    BrokerHeartbeatRequest,
    versions="0-2",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=wire.refused,
)
async def broker_heartbeat(
    request: BrokerHeartbeatRequest, ctx: ControllerContext
) -> BrokerHeartbeatResponse:
    """The state of the broker after its heartbeat."""
    ctx.node.connections.note(request.broker_id, ctx.connection, sends_heartbeats=True)
    interval_ms: int = ctx.node.configs.current["broker.heartbeat.interval.ms"]
    return wire.response(await ctx.node.controller.ask(wire.read_request(request), interval_ms // 2))

"""BrokerHeartbeat (API key 63): a broker tells the controller that it lives, and asks for a new state.

v1 failed log directories, v2 cordoned ones (KIP-1066). The controller has half the interval between two
heartbeats to answer.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.cluster.events import Heartbeat, HeartbeatResult
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext


def _refused(request: BrokerHeartbeatRequest, error: KafkaError) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(error_code=int(error.code), should_shut_down=False)


@handles(
    BrokerHeartbeatRequest,
    versions="0-2",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=_refused,
)
async def broker_heartbeat(
    request: BrokerHeartbeatRequest, ctx: ControllerContext
) -> BrokerHeartbeatResponse:
    """The state of the broker after its heartbeat."""
    ctx.node.active.note(request.broker_id, ctx.connection, sends_heartbeats=True)
    cordoned = request.cordoned_log_dirs
    event = partial(
        Heartbeat,
        now_ms=ctx.node.active.now_ms(),
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        metadata_offset=request.current_metadata_offset,
        want_fence=request.want_fence,
        want_shutdown=request.want_shut_down,
        offline_directories=tuple(request.offline_log_dirs),
        cordoned_directories=None if cordoned is None else tuple(cordoned),
    )
    interval_ms: int = ctx.node.configs.current["broker.heartbeat.interval.ms"]
    result: HeartbeatResult = await ctx.node.active.result_of(event, interval_ms // 2)
    return BrokerHeartbeatResponse(
        error_code=0,
        is_caught_up=result.is_caught_up,
        is_fenced=result.is_fenced,
        should_shut_down=result.should_shut_down,
    )

"""InitializeShareGroupState (API key 83): initialize the state of share partitions (KIP-932).

v0 only, flexible. The group coordinator sends it when a share group begins to consume a partition, and when
its offsets are reset. The new state has no state batches, and fences writers with an older state epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.sharing.state import Answers, answers_of, failures, results_of
from pykafka_broker.coordinator.share import refusals
from pykafka_broker.coordinator.share.core import events
from pykafka_broker.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionResult,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.protocol.errors import KafkaError
    from pykafka_broker.protocol.topic_partition import SharePartitionKey


def failed(request: InitializeShareGroupStateRequest, error: KafkaError) -> InitializeShareGroupStateResponse:
    """The answer to a request that failed as a whole."""
    return _response(failures(request, events.StateResult, error))


@handles(
    InitializeShareGroupStateRequest,
    versions="0",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=failed,
)
async def initialize_share_group_state(
    request: InitializeShareGroupStateRequest, ctx: RequestContext
) -> InitializeShareGroupStateResponse:
    """Initialize each share partition, with its own error."""
    now_ms = ctx.node.shares.now_ms()

    def event(token: int, key: SharePartitionKey, asked: Any, partition_count: int) -> events.InitializeState:
        return events.InitializeState(
            token, now_ms, key, asked.state_epoch, asked.start_offset, partition_count
        )

    return _response(await answers_of(request, ctx, event, refusals.initialize, takes_empty_topics=True))


def _response(answers: Answers[events.StateResult]) -> InitializeShareGroupStateResponse:
    return InitializeShareGroupStateResponse(
        results=results_of(InitializeStateResult, PartitionResult, answers)
    )

"""WriteShareGroupState (API key 85): store changes of share partitions (KIP-932).

v0 flexible, v1 the number of complete deliveries (KIP-1226). The leaders of partitions send it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.sharing.state import Answers, answers_of, failures, results_of
from pykafka_broker.coordinator.share import refusals
from pykafka_broker.coordinator.share.core import events
from pykafka_broker.coordinator.share.core.batches import StateBatch
from pykafka_broker.protocol.messages.write_share_group_state import (
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.protocol.errors import KafkaError
    from pykafka_broker.protocol.topic_partition import SharePartitionKey


def failed(request: WriteShareGroupStateRequest, error: KafkaError) -> WriteShareGroupStateResponse:
    """The answer to a request that failed as a whole."""
    return _response(failures(request, events.StateResult, error))


@handles(
    WriteShareGroupStateRequest,
    versions="0-1",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=failed,
)
async def write_share_group_state(
    request: WriteShareGroupStateRequest, ctx: RequestContext
) -> WriteShareGroupStateResponse:
    """Apply the changes to the state of each share partition, with its own error."""
    now_ms = ctx.node.shares.now_ms()

    def event(token: int, key: SharePartitionKey, asked: Any, partition_count: int) -> events.WriteState:
        return events.WriteState(
            token,
            now_ms,
            key,
            asked.state_epoch,
            asked.leader_epoch,
            asked.start_offset,
            asked.delivery_complete_count,
            tuple(
                StateBatch(batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state)
                for batch in asked.state_batches
            ),
            partition_count,
        )

    return _response(await answers_of(request, ctx, event, refusals.write))


def _response(answers: Answers[events.StateResult]) -> WriteShareGroupStateResponse:
    return WriteShareGroupStateResponse(results=results_of(WriteStateResult, PartitionResult, answers))

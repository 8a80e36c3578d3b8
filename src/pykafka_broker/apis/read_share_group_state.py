"""ReadShareGroupState (API key 84): load the state of share partitions (KIP-932).

v0 only, flexible. The new leader of a partition sends it; its epoch is stored, and fences earlier leaders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.sharing.state import Answers, answers_of, error_fields, failures
from pykafka_broker.coordinator.share import refusals
from pykafka_broker.coordinator.share.core import events
from pykafka_broker.protocol.messages.read_share_group_state import (
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.protocol.errors import KafkaError
    from pykafka_broker.protocol.topic_partition import SharePartitionKey


def failed(request: ReadShareGroupStateRequest, error: KafkaError) -> ReadShareGroupStateResponse:
    """The answer to a request that failed as a whole."""
    return _response(failures(request, events.ReadResult, error))


@handles(
    ReadShareGroupStateRequest,
    versions="0",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=failed,
)
async def read_share_group_state(
    request: ReadShareGroupStateRequest, ctx: RequestContext
) -> ReadShareGroupStateResponse:
    """Answer with the state of each share partition, or its own error."""
    now_ms = ctx.node.shares.now_ms()

    def event(token: int, key: SharePartitionKey, asked: Any, partition_count: int) -> events.ReadState:
        return events.ReadState(token, now_ms, key, asked.leader_epoch, partition_count)

    return _response(await answers_of(request, ctx, event, refusals.read))


def _response(answers: Answers[events.ReadResult]) -> ReadShareGroupStateResponse:
    return ReadShareGroupStateResponse(
        results=[
            ReadStateResult(
                topic_id=topic_id,
                partitions=[
                    PartitionResult(
                        partition=partition,
                        **error_fields(result.refusal),
                        state_epoch=result.state_epoch,
                        start_offset=result.start_offset,
                        state_batches=[
                            StateBatch(
                                first_offset=batch.first_offset,
                                last_offset=batch.last_offset,
                                delivery_state=batch.delivery_state,
                                delivery_count=batch.delivery_count,
                            )
                            for batch in result.batches
                        ],
                    )
                    for partition, result in results
                ],
            )
            for topic_id, results in answers
        ]
    )

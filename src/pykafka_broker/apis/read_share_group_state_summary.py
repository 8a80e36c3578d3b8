"""ReadShareGroupStateSummary (API key 87): start offsets and epochs of share partitions (KIP-932).

v0 flexible, v1 the number of complete deliveries (KIP-1226). The group coordinator sends it when an
administrator asks for the offsets of a share group. It fences nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.sharing.state import Answers, answers_of, error_fields, failures
from pykafka_broker.coordinator.share import refusals
from pykafka_broker.coordinator.share.core import events
from pykafka_broker.protocol.messages.read_share_group_state_summary import (
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.protocol.errors import KafkaError
    from pykafka_broker.protocol.topic_partition import SharePartitionKey


def failed(
    request: ReadShareGroupStateSummaryRequest, error: KafkaError
) -> ReadShareGroupStateSummaryResponse:
    """The answer to a request that failed as a whole."""
    return _response(failures(request, events.SummaryResult, error))


@handles(
    ReadShareGroupStateSummaryRequest,
    versions="0-1",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=failed,
)
async def read_share_group_state_summary(
    request: ReadShareGroupStateSummaryRequest, ctx: RequestContext
) -> ReadShareGroupStateSummaryResponse:
    """Answer with the offset of each share partition, or its own error."""

    def event(token: int, key: SharePartitionKey, asked: Any, partition_count: int) -> events.ReadSummary:
        return events.ReadSummary(token, key, partition_count)

    return _response(await answers_of(request, ctx, event, refusals.summary))


def _response(answers: Answers[events.SummaryResult]) -> ReadShareGroupStateSummaryResponse:
    return ReadShareGroupStateSummaryResponse(
        results=[
            ReadStateSummaryResult(
                topic_id=topic_id,
                partitions=[
                    PartitionResult(
                        partition=partition,
                        **error_fields(result.refusal),
                        state_epoch=result.state_epoch,
                        leader_epoch=result.leader_epoch,
                        start_offset=result.start_offset,
                        delivery_complete_count=result.delivery_complete_count,
                    )
                    for partition, result in results
                ],
            )
            for topic_id, results in answers
        ]
    )

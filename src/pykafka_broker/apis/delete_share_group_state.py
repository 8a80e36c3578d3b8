"""DeleteShareGroupState (API key 86): delete the state of share partitions (KIP-932).

v0 only, flexible. The group coordinator sends it when a share group is deleted, or its offsets in a topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.sharing.state import Answers, answers_of, failures, results_of
from pykafka_broker.coordinator.share import refusals
from pykafka_broker.coordinator.share.core import events
from pykafka_broker.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionResult,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.protocol.errors import KafkaError
    from pykafka_broker.protocol.topic_partition import SharePartitionKey


def failed(request: DeleteShareGroupStateRequest, error: KafkaError) -> DeleteShareGroupStateResponse:
    """The answer to a request that failed as a whole."""
    return _response(failures(request, events.StateResult, error))


@handles(
    DeleteShareGroupStateRequest,
    versions="0",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=failed,
)
async def delete_share_group_state(
    request: DeleteShareGroupStateRequest, ctx: RequestContext
) -> DeleteShareGroupStateResponse:
    """Delete each share partition's state, with its own error; an unknown one is no error."""

    def event(token: int, key: SharePartitionKey, asked: Any, partition_count: int) -> events.DeleteState:
        return events.DeleteState(token, key, partition_count)

    return _response(await answers_of(request, ctx, event, refusals.delete))


def _response(answers: Answers[events.StateResult]) -> DeleteShareGroupStateResponse:
    return DeleteShareGroupStateResponse(results=results_of(DeleteStateResult, PartitionResult, answers))

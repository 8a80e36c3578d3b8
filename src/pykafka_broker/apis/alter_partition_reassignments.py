"""AlterPartitionReassignments (API key 45): give partitions other replicas, or cancel that (KIP-455).

v0 flexible, v1 may forbid a change of the replication factor (KIP-860).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.controller.core.events import (
    AlterPartitionReassignments,
    NewReplicas,
    TopicReassignment,
    TopicResult,
    refused_topic,
)
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext


def failed(
    request: AlterPartitionReassignmentsRequest, error: KafkaError
) -> AlterPartitionReassignmentsResponse:
    """The answer to a refused request."""
    return AlterPartitionReassignmentsResponse(
        error_code=int(error.code),
        error_message=error.explanation,
        responses=[_response(_refused(topic, error)) for topic in request.topics],
    )


@handles(
    AlterPartitionReassignmentsRequest,
    versions="0-1",
    needs=[on_cluster(AclOperation.ALTER)],
    error_response=failed,
    forwarded=True,
)
async def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, ctx: AdministrationContext
) -> AlterPartitionReassignmentsResponse:
    """Each partition succeeds or fails on its own; an error of the whole request is repeated for each."""
    if not request.topics:
        # As in Apache Kafka, the message is empty and not null.
        return AlterPartitionReassignmentsResponse(
            error_code=int(ErrorCode.NONE), error_message="", responses=[]
        )
    event = AlterPartitionReassignments(
        tuple(_reassignment(topic) for topic in request.topics), request.allow_replication_factor_change
    )
    results = await ctx.node.controller.ask(event, request.timeout_ms, ctx.requester)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=int(ErrorCode.NONE),
        responses=[_response(result) for result in results],
    )


def _reassignment(topic: ReassignableTopic) -> TopicReassignment:
    return TopicReassignment(
        topic.name,
        tuple(
            NewReplicas(
                partition.partition_index,
                None if partition.replicas is None else tuple(partition.replicas),
            )
            for partition in topic.partitions
        ),
    )


def _refused(topic: ReassignableTopic, error: KafkaError) -> TopicResult:
    return refused_topic(topic.name, (each.partition_index for each in topic.partitions), error)


def _response(result: TopicResult) -> ReassignableTopicResponse:
    return ReassignableTopicResponse(
        name=result.topic,
        partitions=[
            ReassignablePartitionResponse(
                partition_index=partition.partition,
                error_code=int(partition.error),
                error_message=partition.message,
            )
            for partition in result.partitions
        ],
    )

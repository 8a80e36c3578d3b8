"""ListPartitionReassignments (API key 46): the partitions that are being reassigned.

v0 is the only version, flexible. Answered from the metadata of the active controller; unknown topics and
partitions, and those that are not being reassigned, are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.controller.core.events import TopicPartitions
from pykafka_broker.controller.core.reassignments import ongoing_reassignments
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import AdministrationContext


def failed(
    request: ListPartitionReassignmentsRequest, error: KafkaError
) -> ListPartitionReassignmentsResponse:
    """The answer to a refused request, with the partitions asked for, as in Apache Kafka."""
    return ListPartitionReassignmentsResponse(
        error_code=int(error.code),
        error_message=error.explanation,
        topics=[
            OngoingTopicReassignment(
                name=topic.name,
                partitions=[
                    OngoingPartitionReassignment(
                        partition_index=partition, replicas=[], adding_replicas=[], removing_replicas=[]
                    )
                    for partition in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ],
    )


@handles(
    ListPartitionReassignmentsRequest,
    versions="0",
    needs=[on_cluster(AclOperation.DESCRIBE)],
    error_response=failed,
    forwarded=True,
)
def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, ctx: AdministrationContext
) -> ListPartitionReassignmentsResponse:
    """List the reassignments of the named partitions; of all without a list."""
    asked = None
    if request.topics is not None:
        asked = [TopicPartitions(topic.name, tuple(topic.partition_indexes)) for topic in request.topics]
    topics = [
        OngoingTopicReassignment(
            name=ongoing.topic,
            partitions=[
                OngoingPartitionReassignment(
                    partition_index=partition.partition_id,
                    replicas=list(partition.replicas),
                    adding_replicas=list(partition.adding),
                    removing_replicas=list(partition.removing),
                )
                for partition in ongoing.partitions
            ],
        )
        for ongoing in ongoing_reassignments(ctx.node.metadata.image, asked)
    ]
    return ListPartitionReassignmentsResponse(error_code=int(ErrorCode.NONE), topics=topics)

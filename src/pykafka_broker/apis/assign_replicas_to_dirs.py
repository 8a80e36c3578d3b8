"""AssignReplicasToDirs (API key 73): a broker says which of its log directories hold its replicas (KIP-858).

v0 is the only version.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.cluster.events import AssignReplicasToDirs, DirectoryAssignment
from pykafka_broker.cluster.features import DIRECTORY_IDS_SINCE
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext


def _refused(request: AssignReplicasToDirsRequest, error: KafkaError) -> AssignReplicasToDirsResponse:
    return AssignReplicasToDirsResponse(error_code=int(error.code), directories=[])


@handles(
    AssignReplicasToDirsRequest,
    versions="0",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    error_response=_refused,
)
async def assign_replicas_to_dirs(
    request: AssignReplicasToDirsRequest, ctx: ControllerContext
) -> AssignReplicasToDirsResponse:
    """An outcome for each replica."""
    if ctx.node.metadata.image.metadata_version < DIRECTORY_IDS_SINCE:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    assignments = tuple(
        DirectoryAssignment(topic.topic_id, partition.partition_index, directory.id)
        for directory in request.directories
        for topic in directory.topics
        for partition in topic.partitions
    )
    outcomes: tuple[ErrorCode, ...] = await ctx.node.active.result_of(
        partial(
            AssignReplicasToDirs,
            broker_id=request.broker_id,
            broker_epoch=request.broker_epoch,
            assignments=assignments,
        )
    )
    return AssignReplicasToDirsResponse(error_code=0, directories=_answers(request, iter(outcomes)))


def _answers(
    request: AssignReplicasToDirsRequest, outcomes: Iterator[ErrorCode]
) -> list[AssignReplicasToDirsResponseDirectoryData]:
    """The request's directories with the outcomes of its replicas, which are in the same order."""
    return [
        AssignReplicasToDirsResponseDirectoryData(
            id=directory.id,
            topics=[
                AssignReplicasToDirsResponseTopicData(
                    topic_id=topic.topic_id,
                    partitions=[
                        AssignReplicasToDirsResponsePartitionData(
                            partition_index=partition.partition_index, error_code=int(next(outcomes))
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in directory.topics
            ],
        )
        for directory in request.directories
    ]

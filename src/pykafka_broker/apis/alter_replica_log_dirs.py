"""AlterReplicaLogDirs (API key 34): move replicas between the log directories of this broker (KIP-113).

v1 is the first served, v2 flexible. The answer comes when the move has begun; DescribeLogDirs shows its
progress. A partition that this broker does not hold gets an error, but is created in the named directory if
the broker gets it later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.told_changes import REPLICAS, tell
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(request: AlterReplicaLogDirsRequest, error: KafkaError) -> AlterReplicaLogDirsResponse:
    """The answer to a request that failed as a whole."""
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=int(error.code))
                    for index in topic.partitions
                ],
            )
            for log_dir in request.dirs
            for topic in log_dir.topics
        ]
    )


@handles(
    AlterReplicaLogDirsRequest,
    versions="1-2",
    needs=[on_cluster(AclOperation.ALTER)],
    error_response=failed,
)
async def alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, ctx: RequestContext
) -> AlterReplicaLogDirsResponse:
    """Move each partition to its directory; if a partition is named twice, the last directory counts."""
    paths: dict[str, dict[int, str]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                paths.setdefault(topic.name, {})[index] = directory.path
    answer = AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(
                        partition_index=index,
                        error_code=int(await ctx.node.log_dir_moves.alter(name, index, path)),
                    )
                    for index, path in partitions.items()
                ],
            )
            for name, partitions in paths.items()
        ]
    )
    moved = (
        f"{topic.topic_name}-{each.partition_index} to {paths[topic.topic_name][each.partition_index]}"
        for topic in answer.results
        for each in topic.partitions
        if not each.error_code
    )
    tell(ctx, REPLICAS, "Altered log directories: ", moved)
    return answer

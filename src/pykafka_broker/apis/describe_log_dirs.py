"""DescribeLogDirs (API key 35): the log directories, their disk space, and the size of every partition.

v1 is the first served, v2 flexible, v3 top-level error, v4 total and usable bytes (KIP-827), v5 cordoned
directories (KIP-1066). A partition that moves to another directory is listed in both: in the new one with
`is_future_key`, and with the offsets that it lacks as its lag. An offline directory is listed with
KAFKA_STORAGE_ERROR; a directory that refuses writes (full, over quota, read-only) has 0 usable bytes,
whatever its volume reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.log.disk.directories import LogDir
from pykafka_broker.log.partition.partition_log import PartitionLog
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from pykafka_broker.protocol.topic_partition import PartitionKey

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

UNKNOWN_BYTES = -1
UNKNOWN_LAG = -1


def failed(_request: DescribeLogDirsRequest, error: KafkaError) -> DescribeLogDirsResponse:
    """The answer to a request that failed as a whole."""
    return DescribeLogDirsResponse(error_code=int(error.code), results=[])


@handles(
    DescribeLogDirsRequest,
    versions="1-5",
    needs=[on_cluster(AclOperation.DESCRIBE)],
    error_response=failed,
)
async def describe_log_dirs(request: DescribeLogDirsRequest, ctx: RequestContext) -> DescribeLogDirsResponse:
    """List all directories, with all partitions or the named ones."""
    wanted: set[PartitionKey] | None = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    results = []
    for log_dir in ctx.node.logs.dirs.of_partitions:
        if not log_dir.is_online:
            results.append(
                DescribeLogDirsResult(
                    error_code=int(ErrorCode.KAFKA_STORAGE_ERROR), log_dir=log_dir.path, topics=[]
                )
            )
            continue
        total_bytes, usable_bytes = await _space(log_dir, ctx)
        logs = ctx.node.logs.logs_in(log_dir)
        results.append(
            DescribeLogDirsResult(
                error_code=0,
                log_dir=log_dir.path,
                topics=_topics(
                    (log for log in logs if wanted is None or (log.topic, log.partition) in wanted),
                    ctx.node.logs.logs,
                ),
                total_bytes=total_bytes,
                usable_bytes=usable_bytes,
                is_cordoned=log_dir.is_cordoned,
            )
        )
    return DescribeLogDirsResponse(error_code=0, results=results)


async def _space(log_dir: LogDir, ctx: RequestContext) -> tuple[int, int]:
    logs = ctx.node.logs
    try:
        total_bytes, usable_bytes = await ctx.node.threads.run_blocking(lambda: logs.space(log_dir))
    except OSError:
        return UNKNOWN_BYTES, UNKNOWN_BYTES
    return total_bytes, usable_bytes if log_dir.refusal is None else 0


def _topics(
    logs: Iterable[PartitionLog], served: Mapping[PartitionKey, PartitionLog]
) -> list[DescribeLogDirsTopic]:
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for log in logs:
        source = served.get((log.topic, log.partition))
        is_future = source is not log
        lag = max(0, log.state.high_watermark - log.state.log_end_offset)
        if source is None or (is_future and source.offline is not None):
            lag = UNKNOWN_LAG
        elif is_future:
            lag = source.state.log_end_offset - log.state.log_end_offset
        topics.setdefault(log.topic, []).append(
            DescribeLogDirsPartition(
                partition_index=log.partition,
                partition_size=log.state.size_bytes,
                offset_lag=lag,
                is_future_key=is_future,
            )
        )
    return [DescribeLogDirsTopic(name=name, partitions=partitions) for name, partitions in topics.items()]

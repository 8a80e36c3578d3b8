"""AlterReplicaLogDirs (API key 34): move replicas between a broker's log directories.

v1 is the oldest served; v2 flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, message, string


@message()
class AlterReplicaLogDirTopic:
    name: str = string(entity="topic_name")
    partitions: list[int] = array(i32())


@message()
class AlterReplicaLogDir:
    path: str = string()
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic)


@message(api_key=34, versions="1-2", flexible="2+", listeners="broker")
class AlterReplicaLogDirsRequest:
    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir)


@message()
class AlterReplicaLogDirPartitionResult:
    partition_index: int = i32()
    error_code: int = i16()


@message()
class AlterReplicaLogDirTopicResult:
    topic_name: str = string(entity="topic_name")
    partitions: list[AlterReplicaLogDirPartitionResult] = array(AlterReplicaLogDirPartitionResult)


@message(api_key=34, versions="1-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    throttle_time_ms: int = i32(default=0)
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult)

"""AssignReplicasToDirs (API key 73): a broker tells the controller which log directory holds which replica.

v0 is the only version, flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, i64, message, uuid


@message()
class AssignReplicasToDirsRequestPartitionData:
    partition_index: int = i32()


@message()
class AssignReplicasToDirsRequestTopicData:
    topic_id: bytes = uuid()
    partitions: list[AssignReplicasToDirsRequestPartitionData] = array(
        AssignReplicasToDirsRequestPartitionData
    )


@message()
class AssignReplicasToDirsRequestDirectoryData:
    id: bytes = uuid()
    topics: list[AssignReplicasToDirsRequestTopicData] = array(AssignReplicasToDirsRequestTopicData)


@message(api_key=73, versions="0", flexible="0+", listeners="controller")
class AssignReplicasToDirsRequest:
    broker_id: int = i32(entity="broker_id")
    broker_epoch: int = i64(default=-1)
    directories: list[AssignReplicasToDirsRequestDirectoryData] = array(
        AssignReplicasToDirsRequestDirectoryData
    )


@message()
class AssignReplicasToDirsResponsePartitionData:
    partition_index: int = i32()
    error_code: int = i16()


@message()
class AssignReplicasToDirsResponseTopicData:
    topic_id: bytes = uuid()
    partitions: list[AssignReplicasToDirsResponsePartitionData] = array(
        AssignReplicasToDirsResponsePartitionData
    )


@message()
class AssignReplicasToDirsResponseDirectoryData:
    id: bytes = uuid()
    topics: list[AssignReplicasToDirsResponseTopicData] = array(AssignReplicasToDirsResponseTopicData)


@message(api_key=73, versions="0", flexible="0+")
class AssignReplicasToDirsResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    directories: list[AssignReplicasToDirsResponseDirectoryData] = array(
        AssignReplicasToDirsResponseDirectoryData
    )

"""DeleteRecords (API key 21): move the start of partitions' logs forward.

v2 flexible; v0 to v2 say the same.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, i64, message, string


@message()
class DeleteRecordsPartition:
    partition_index: int = i32()
    #: -1 for the high watermark.
    offset: int = i64()


@message()
class DeleteRecordsTopic:
    name: str = string(entity="topic_name")
    partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition)


@message(api_key=21, versions="0-2", flexible="2+", listeners="broker")
class DeleteRecordsRequest:
    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic)
    timeout_ms: int = i32()


@message()
class DeleteRecordsPartitionResult:
    partition_index: int = i32()
    low_watermark: int = i64()
    error_code: int = i16()


@message()
class DeleteRecordsTopicResult:
    name: str = string(entity="topic_name")
    partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult)


@message(api_key=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    throttle_time_ms: int = i32(default=0)
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult)

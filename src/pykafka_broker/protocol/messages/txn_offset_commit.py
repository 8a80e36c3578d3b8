"""TxnOffsetCommit (API key 28): store a group's positions once the transaction commits.

v1 throttle time, v2 leader epochs, v3 flexible and the group's member and generation, v4 may answer
TRANSACTION_ABORTABLE, v5 adds the group's offsets to the transaction by itself (transaction.version 2).
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, i32, i64, message, string


@message()
class TxnOffsetCommitRequestPartition:
    partition_index: int = i32()
    committed_offset: int = i64()
    committed_leader_epoch: int = i32("2+", default=-1)
    committed_metadata: str | None = string(nullable=True)


@message()
class TxnOffsetCommitRequestTopic:
    name: str = string(entity="topic_name")
    partitions: list[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition)


@message(api_key=28, versions="0-5", flexible="3+", listeners="broker")
class TxnOffsetCommitRequest:
    transactional_id: str = string(entity="transactional_id")
    group_id: str = string(entity="group_id")
    producer_id: int = i64(entity="producer_id")
    producer_epoch: int = i16()
    generation_id: int = i32("3+", default=-1)
    member_id: str = string("3+", default="")
    group_instance_id: str | None = string("3+", nullable=True, default=None)
    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic)


@message()
class TxnOffsetCommitResponsePartition:
    partition_index: int = i32()
    error_code: int = i16()


@message()
class TxnOffsetCommitResponseTopic:
    name: str = string(entity="topic_name")
    partitions: list[TxnOffsetCommitResponsePartition] = array(TxnOffsetCommitResponsePartition)


@message(api_key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitResponse:
    throttle_time_ms: int = i32(default=0)
    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic)

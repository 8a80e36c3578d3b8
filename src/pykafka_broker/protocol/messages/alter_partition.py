"""AlterPartition (API key 56): a leader asks the controller to change its in-sync replicas.

v2 is the oldest served (topic ids, flexible); v3 the epoch of each in-sync broker.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i8, i16, i32, i64, message, uuid


@message()
class BrokerState:
    broker_id: int = i32(entity="broker_id")
    broker_epoch: int = i64(default=-1)


@message()
class AlterPartitionRequestPartitionData:
    partition_index: int = i32()
    leader_epoch: int = i32()
    new_isr: list[int] = array(i32(entity="broker_id"), "2", default=[])
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, "3+", default=[])
    leader_recovery_state: int = i8(default=0)
    partition_epoch: int = i32()


@message()
class AlterPartitionRequestTopicData:
    topic_id: bytes = uuid()
    partitions: list[AlterPartitionRequestPartitionData] = array(AlterPartitionRequestPartitionData)


@message(api_key=56, versions="2-3", flexible="0+", listeners="controller")
class AlterPartitionRequest:
    broker_id: int = i32(entity="broker_id")
    broker_epoch: int = i64(default=-1)
    topics: list[AlterPartitionRequestTopicData] = array(AlterPartitionRequestTopicData)


@message()
class AlterPartitionResponsePartitionData:
    partition_index: int = i32()
    error_code: int = i16()
    leader_id: int = i32(entity="broker_id")
    leader_epoch: int = i32()
    isr: list[int] = array(i32(entity="broker_id"))
    leader_recovery_state: int = i8(default=0)
    partition_epoch: int = i32()


@message()
class AlterPartitionResponseTopicData:
    topic_id: bytes = uuid()
    partitions: list[AlterPartitionResponsePartitionData] = array(AlterPartitionResponsePartitionData)


@message(api_key=56, versions="2-3", flexible="0+")
class AlterPartitionResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16()
    topics: list[AlterPartitionResponseTopicData] = array(AlterPartitionResponseTopicData)

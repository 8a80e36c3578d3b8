"""ElectLeaders (API key 43): let partitions elect a leader now.

v1 unclean elections beside preferred ones, v2 flexible.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i8, i16, i32, message, string


@message()
class TopicPartitions:
    topic: str = string(entity="topic_name")
    partitions: list[int] = array(i32())


@message(api_key=43, versions="0-2", flexible="2+", listeners="broker controller")
class ElectLeadersRequest:
    election_type: int = i8("1+", default=0)
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable=True)
    timeout_ms: int = i32(default=60000)


@message()
class PartitionResult:
    partition_id: int = i32()
    error_code: int = i16()
    error_message: str | None = string(nullable=True, default=None)


@message()
class ReplicaElectionResult:
    topic: str = string(entity="topic_name")
    partition_result: list[PartitionResult] = array(PartitionResult)


@message(api_key=43, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16("1+", default=0)
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)

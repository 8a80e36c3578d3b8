"""OffsetFetch (API key 9): a group's stored positions.

v1 is the oldest served; v2 null topics for all and a top-level error, v3 throttle time, v5 leader epochs, v6
flexible, v7 require_stable waits out open transactions, v8 many groups at once, v9 member id and epoch
(KIP-848), v10 topic ids instead of names. Up to v7 the one group stands in the top-level fields, from v8 on
in `groups`.
"""

from __future__ import annotations

from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.schema import array, boolean, i16, i32, i64, message, string, uuid


@message()
class OffsetFetchRequestTopic:
    name: str = string(entity="topic_name")
    partition_indexes: list[int] = array(i32())


@message()
class OffsetFetchRequestTopics:
    name: str = string("8-9", default="", entity="topic_name")
    topic_id: bytes = uuid("10+", default=ZERO_UUID)
    partition_indexes: list[int] = array(i32())


@message()
class OffsetFetchRequestGroup:
    group_id: str = string(entity="group_id")
    member_id: str | None = string("9+", nullable=True, default=None)
    member_epoch: int = i32("9+", default=-1)
    topics: list[OffsetFetchRequestTopics] | None = array(OffsetFetchRequestTopics, nullable=True)


@message(api_key=9, versions="1-10", flexible="6+", listeners="broker")
class OffsetFetchRequest:
    group_id: str = string("1-7", default="", entity="group_id")
    #: None asks for every topic.
    topics: list[OffsetFetchRequestTopic] | None = array(
        OffsetFetchRequestTopic, "1-7", nullable="2+", default=[]
    )
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, "8+", default=[])
    require_stable: bool = boolean("7+", default=False)


@message()
class OffsetFetchResponsePartition:
    partition_index: int = i32()
    committed_offset: int = i64()
    committed_leader_epoch: int = i32("5+", default=-1)
    metadata: str | None = string(nullable=True)
    error_code: int = i16()


@message()
class OffsetFetchResponseTopic:
    name: str = string(entity="topic_name")
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition)


@message()
class OffsetFetchResponsePartitions:
    partition_index: int = i32()
    committed_offset: int = i64()
    committed_leader_epoch: int = i32(default=-1)
    metadata: str | None = string(nullable=True)
    error_code: int = i16()


@message()
class OffsetFetchResponseTopics:
    name: str = string("8-9", default="", entity="topic_name")
    topic_id: bytes = uuid("10+", default=ZERO_UUID)
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions)


@message()
class OffsetFetchResponseGroup:
    group_id: str = string(entity="group_id")
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics)
    error_code: int = i16(default=0)


@message(api_key=9, versions="1-10", flexible="6+")
class OffsetFetchResponse:
    throttle_time_ms: int = i32("3+", default=0)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, "1-7", default=[])
    error_code: int = i16("2-7", default=0)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, "8+", default=[])

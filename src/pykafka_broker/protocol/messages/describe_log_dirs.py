"""DescribeLogDirs (API key 35): a broker's log directories and the replicas in them.

v1 is the oldest served; v2 flexible, v3 top-level error, v4 size and free space of the volume, v5 cordoned
directories.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, boolean, i16, i32, i64, message, string


@message()
class DescribableLogDirTopic:
    topic: str = string(entity="topic_name")
    partitions: list[int] = array(i32())


@message(api_key=35, versions="1-5", flexible="2+", listeners="broker")
class DescribeLogDirsRequest:
    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable=True)


@message()
class DescribeLogDirsPartition:
    partition_index: int = i32()
    partition_size: int = i64()
    offset_lag: int = i64()
    is_future_key: bool = boolean()


@message()
class DescribeLogDirsTopic:
    name: str = string(entity="topic_name")
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


@message()
class DescribeLogDirsResult:
    error_code: int = i16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = i64("4+", default=-1)
    usable_bytes: int = i64("4+", default=-1)
    is_cordoned: bool = boolean("5+", default=False)


@message(api_key=35, versions="1-5", flexible="2+")
class DescribeLogDirsResponse:
    throttle_time_ms: int = i32(default=0)
    error_code: int = i16("3+", default=0)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)

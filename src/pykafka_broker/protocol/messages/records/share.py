"""The records of the share coordinator in `__share_group_state`: snapshots and updates.

Keys start with the record type (`api_key`, int16), values with their version (int16). An update counts on top
of all before it; it names the epoch of its snapshot; Apache Kafka ignores that epoch.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i8, i16, i32, i64, message, string, uuid


@message(api_key=0, versions="0")
class ShareSnapshotKey:
    group_id: str = string()
    topic_id: bytes = uuid()
    partition: int = i32()


@message()
class StateBatch:
    first_offset: int = i64()
    last_offset: int = i64()
    delivery_state: int = i8()
    delivery_count: int = i16()


@message(api_key=0, versions="0", flexible="0+")
class ShareSnapshotValue:
    snapshot_epoch: int = i32()
    state_epoch: int = i32()
    leader_epoch: int = i32()
    start_offset: int = i64()
    delivery_complete_count: int = i32(tag=0, default=-1)
    create_timestamp: int = i64()
    write_timestamp: int = i64()
    state_batches: list[StateBatch] = array(StateBatch)


@message(api_key=1, versions="0")
class ShareUpdateKey:
    group_id: str = string()
    topic_id: bytes = uuid()
    partition: int = i32()


@message(api_key=1, versions="0", flexible="0+")
class ShareUpdateValue:
    snapshot_epoch: int = i32()
    leader_epoch: int = i32()
    start_offset: int = i64()
    delivery_complete_count: int = i32(tag=0, default=-1)
    state_batches: list[StateBatch] = array(StateBatch)

"""The subscription and the assignment that consumers put into JoinGroup and SyncGroup of classic groups.

Each is preceded by its version (int16). Clients define the content; the broker reads it only to know which
topics a group is subscribed to and to show assignments. v1 the partitions owned before (cooperative
rebalancing), v2 the generation in which they were owned, v3 the rack.
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, binary, i32, message, string


@message()
class TopicPartition:
    topic: str = string(entity="topic_name")
    partitions: list[int] = array(i32())


@message(versions="0-3")
class ConsumerProtocolSubscription:
    topics: list[str] = array(string())
    user_data: bytes | None = binary(nullable=True, default=None)
    owned_partitions: list[TopicPartition] = array(TopicPartition, "1+", default=[])
    generation_id: int = i32("2+", default=-1)
    rack_id: str | None = string("3+", nullable=True, default=None)


@message(versions="0-3")
class ConsumerProtocolAssignment:
    assigned_partitions: list[TopicPartition] = array(TopicPartition)
    user_data: bytes | None = binary(nullable=True, default=None)

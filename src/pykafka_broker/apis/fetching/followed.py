"""Partitions that this node follows, for readers that need not ask the leader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.replication.core.access import check_leader_epoch, check_topic_id

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.partitions import HeldPartition, Partitions

#: The replica id of a tool that reads any replica, leader or not.
DEBUGGING_REPLICA_ID = -2


def followed(
    partitions: Partitions,
    topic: str,
    partition: int,
    leader_epoch: int,
    *,
    topic_id: bytes = ZERO_UUID,
    from_any_replica: bool,
) -> HeldPartition:
    """The partition, not led here, for a reader that may read from any replica.

    Raises:
        KafkaError: in Apache Kafka's order: the reason why this node does not hold the partition;
            INCONSISTENT_TOPIC_ID for another topic id; FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH if the
            reader's epoch is older or newer than this node's; NOT_LEADER_OR_FOLLOWER without
            `from_any_replica`.
    """
    held = partitions.followed(topic, partition)
    if held is None:
        raise KafkaError(partitions.why_not_led(topic, partition))
    check_topic_id(held.topic_id, topic_id)
    check_leader_epoch(held.leader_epoch, leader_epoch)
    if not from_any_replica:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return held

"""Partitions that this node holds and another broker leads, for requests that came here nevertheless."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.replication.core.access import check_leader_epoch, check_topic_id

if TYPE_CHECKING:
    from pykafka_broker.apis.ports.partitions import HeldPartition, Partitions

#: The replica id of a tool that looks at one replica, whoever leads.
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
    """The partition that `partitions.led` has not found, for a reader that may read from any replica.

    Raises:
        KafkaError: why it cannot be read here, in Apache Kafka's order. INCONSISTENT_TOPIC_ID for a reader
            of an earlier topic of this name. FENCED_LEADER_EPOCH if the reader's epoch is older than what
            this node knows, UNKNOWN_LEADER_EPOCH if it is newer. Then NOT_LEADER_OR_FOLLOWER for a reader
            that has to ask the leader.
    """
    held = partitions.followed(topic, partition)
    if held is None:
        raise KafkaError(partitions.why_not_led(topic, partition))
    check_topic_id(held.topic_id, topic_id)
    check_leader_epoch(held.leader_epoch, leader_epoch)
    if not from_any_replica:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return held

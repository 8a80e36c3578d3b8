"""Access to a partition held here: the limit of a read, checks of topic id and leader epoch, and the errors
for acks=all, which `in_sync.py` decides on.
"""

from __future__ import annotations

from pykafka_broker.log.partition.limit import Limit
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.records.batch import NO_LEADER_EPOCH
from pykafka_broker.replication.core.in_sync import is_max_under_min_isr
from pykafka_broker.replication.core.state import Leadership

#: Isolation levels of the protocol.
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
#: The limit of a consumer's reads by isolation level: the high watermark, or the last stable offset.
CONSUMER_LIMITS: tuple[Limit, Limit] = ("high_watermark", "last_stable")
#: The replica id of consumers. Brokers have ids from 0 on; -2 is a tool that reads one replica.
CONSUMER_REPLICA_ID = -1
#: The replica id of a replica that is being made in another log directory.
FUTURE_REPLICA_ID = -3
#: A producer that waits for all in-sync replicas.
ACKS_ALL = -1


def check_topic_id(topic_id: bytes, asked: bytes) -> None:
    """Refuse a reader whose topic was deleted and created again with the same name (KIP-516).

    A fetch session keeps the name of an id from the first request, so a matching name is not enough.

    Raises:
        KafkaError: INCONSISTENT_TOPIC_ID if `asked` is not the topic's id. ZERO_UUID, of requests that name
            their topics, passes.
    """
    if asked != topic_id and asked != ZERO_UUID:
        raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)


def check_leader_epoch(leader_epoch: int, current_leader_epoch: int) -> None:
    """Refuse a client with another leader epoch than the partition's; -1 passes.

    Raises:
        KafkaError: FENCED_LEADER_EPOCH if the client's epoch is older, UNKNOWN_LEADER_EPOCH if it is newer.
    """
    if current_leader_epoch == leader_epoch:
        return
    if current_leader_epoch > leader_epoch:
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
    if current_leader_epoch != NO_LEADER_EPOCH:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)


def check_follower(leadership: Leadership, replica_id: int, leader_epoch: int) -> None:
    """Refuse a broker that is no follower; `leader_epoch` is the current one, or none.

    Raises:
        KafkaError: UNKNOWN_LEADER_EPOCH for a broker that this node does not know as a replica: a broker just
            added tries again. NOT_LEADER_OR_FOLLOWER if the request names no epoch.
    """
    if replica_id in leadership.followers:
        return
    if leader_epoch == NO_LEADER_EPOCH:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)


def is_end_known(leadership: Leadership, high_watermark: int) -> bool:
    """Whether consumers may be told the end offset (KIP-207): until a new leader's high watermark has reached
    the start of the epoch, it may be behind that of the previous leader.
    """
    return high_watermark >= leadership.epoch_start_offset


def limit_of_fetch(replica_id: int, isolation_level: int) -> Limit:
    """The limit of Fetch: the log end for replicas, `CONSUMER_LIMITS` for consumers and tools."""
    is_replica = replica_id >= 0 or replica_id == FUTURE_REPLICA_ID
    return "log_end" if is_replica else CONSUMER_LIMITS[isolation_level]


def limit_of_offsets(replica_id: int, isolation_level: int) -> Limit:
    """The limit of ListOffsets: the log end for replicas and tools, `CONSUMER_LIMITS` for consumers."""
    return CONSUMER_LIMITS[isolation_level] if replica_id == CONSUMER_REPLICA_ID else "log_end"


def outcome_of_committed(leadership: Leadership | None, required_acks: int) -> ErrorCode:
    """The answer to a producer whose acks are fulfilled."""
    if leadership is not None and required_acks == ACKS_ALL and is_max_under_min_isr(leadership):
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return ErrorCode.NONE


def outcome_without_leader(required_acks: int) -> ErrorCode | None:
    """The answer to a producer whose acks this node cannot fulfil any more, because another broker leads or
    may lead; None for a producer that waits only for a sync, since the sync goes on.
    """
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if required_acks == ACKS_ALL else None


def not_enough_replicas(leadership: Leadership, partition_name: str) -> KafkaError:
    """The error for a producer with acks=all while `is_under_min_isr`; nothing is appended."""
    isr = leadership.isr.committed
    return KafkaError(
        ErrorCode.NOT_ENOUGH_REPLICAS,
        f"The size of the current ISR : {len(isr)} is insufficient to satisfy the min.isr requirement of "
        f"{leadership.min_insync_replicas} for partition {partition_name}, live replica(s) broker.id are : "
        f"{', '.join(map(str, isr))}",
    )

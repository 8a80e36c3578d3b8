"""Leader elections when brokers come and go: in-sync replicas and eligible leader replicas (KIP-966).

A leader stays while it can. Otherwise the most preferred replica that is in sync leads; with none left, an
eligible leader replica, which had everything when it left; then the last known leader, and, where
`unclean.leader.election.enable` allows it, any live replica. The last two may lose records and are marked
as recovering.

Left out until replicas move between brokers: reassignment, preferred-leader balance, AlterPartition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pykafka_broker.cluster.image import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    BrokerRegistration,
    LeaderRecoveryState,
    PartitionRegistration,
    TopicImage,
    changed,
)
from pykafka_broker.cluster.state import MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION, ControllerState
from pykafka_broker.protocol.messages.records import metadata as m

#: Directory id of a replica whose directory has failed; ids 0 and 1 are "unknown" and "not yet assigned".
DIRECTORY_LOST = bytes(15) + b"\x02"
_NOT_A_DIRECTORY = (bytes(16), bytes(15) + b"\x01")


def leader_and_isr_changes(
    state: ControllerState,
    concerns: Callable[[PartitionRegistration], bool],
    *,
    removed: int | None = None,
    added: int | None = None,
    lost: int | None = None,
) -> list[object]:
    """The changes of all partitions that `concerns` picks, when brokers change.

    `removed` leaves every in-sync set, `added` may lead though its registration still says fenced, and `lost`
    is one that crashed: it may lack records it acknowledged and is neither in sync nor eligible any more.
    """
    changes: list[object] = []
    for topic in state.image.topics.values():
        for partition in topic.partitions.values():
            if concerns(partition):
                change = _change(state, topic, partition, removed, added, lost)
                if change is not None:
                    changes.append(change)
    return changes


def directory_changes(
    state: ControllerState,
    topic: TopicImage,
    partition: PartitionRegistration,
    broker_id: int,
    directory: bytes,
) -> list[object]:
    """The changes when a broker says in which of its directories its replica is: perhaps it may lead now, or
    no longer.
    """
    directories = list(partition.directories or [_NOT_A_DIRECTORY[0]] * len(partition.replicas))
    directories[partition.replicas.index(broker_id)] = directory
    placed = partition._replace(directories=tuple(directories))
    changes: list[object] = []
    if placed.directories != partition.directories:
        change = _change(state, topic, placed, None, None, None) or m.PartitionChangeRecord(
            partition_id=partition.partition_id, topic_id=topic.topic_id
        )
        change.directories = directories
        changes.append(change)
        placed = changed(placed, change)
    if not _directory_is_online(state, placed, broker_id):
        removal = _change(state, topic, placed, broker_id, None, None)
        if removal is not None:
            changes.append(removal)
    return changes


def in_isr(broker_id: int) -> Callable[[PartitionRegistration], bool]:
    """Picks the partitions a broker is in sync with."""
    return lambda partition: broker_id in partition.isr


def in_isr_or_elr(broker_id: int) -> Callable[[PartitionRegistration], bool]:
    """Picks the partitions a broker could lead without losing anything."""
    return lambda partition: broker_id in partition.isr or broker_id in partition.elr


def leaderless(partition: PartitionRegistration) -> bool:
    """Picks the partitions without a leader."""
    return partition.leader == NO_LEADER


def leads_something(state: ControllerState, broker_id: int) -> bool:
    """Whether a broker leads any partition."""
    return any(
        partition.leader == broker_id
        for topic in state.image.topics.values()
        for partition in topic.partitions.values()
    )


def _change(
    state: ControllerState,
    topic: TopicImage,
    partition: PartitionRegistration,
    removed: int | None,
    added: int | None,
    lost: int | None,
) -> m.PartitionChangeRecord | None:
    elr_enabled = state.elr_enabled
    isr = tuple(replica for replica in partition.isr if replica not in (removed, lost))
    elr: tuple[int, ...] = ()
    if elr_enabled and len(isr) < _min_insync_replicas(state, topic):
        elr = tuple(sorted({*partition.elr, *partition.isr} - {*isr, lost}))

    def may_lead(replica: int) -> bool:
        if replica in (removed, lost):
            return False
        if replica != added and not state.is_active(replica):
            return False
        return _directory_is_online(state, partition, replica)

    leader, unclean = _elect(state, topic, partition, isr, elr, may_lead)
    record = m.PartitionChangeRecord(partition_id=partition.partition_id, topic_id=topic.topic_id)
    if leader != partition.leader:
        record.leader = leader
        if leader in elr:
            isr, elr = (leader,), tuple(replica for replica in elr if replica != leader)
        if unclean:
            isr, elr = (leader,), ()
            if partition.leader_recovery_state != LeaderRecoveryState.RECOVERING:
                record.leader_recovery_state = LeaderRecoveryState.RECOVERING
    if elr != partition.elr:
        record.eligible_leader_replicas = list(elr)
    # Without eligible replicas the last one in sync stays in the set, though it is gone: only it may lead.
    if isr != partition.isr and (isr or elr_enabled):
        record.isr = list(isr)
    if elr_enabled:
        record.last_known_elr = _last_known_leader(partition, record)
    return None if _changes_nothing(record) else record


def _elect(
    state: ControllerState,
    topic: TopicImage,
    partition: PartitionRegistration,
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    may_lead: Callable[[int], bool],
) -> tuple[int, bool]:
    """The leader from now on, and whether records may be lost with it."""
    candidates = isr or elr
    for replica in _leader_first(partition):
        if replica in candidates and may_lead(replica):
            return replica, False
    if state.elr_enabled and not candidates and len(partition.last_known_elr) == 1:
        last_leader = partition.last_known_elr[0]
        if may_lead(last_leader):
            return last_leader, True
    if state.topic_config(topic.name, UNCLEAN_LEADER_ELECTION) == "true":
        for replica in partition.replicas:
            if may_lead(replica):
                return replica, True
    return NO_LEADER, False


def _leader_first(partition: PartitionRegistration) -> Iterator[int]:
    if partition.leader != NO_LEADER:
        yield partition.leader
    yield from partition.replicas


def _last_known_leader(partition: PartitionRegistration, record: m.PartitionChangeRecord) -> list[int] | None:
    """Remember the leader when the last one in sync goes, and forget it when a replica leads again."""
    known = partition.last_known_elr
    if record.isr is not None and not record.isr:
        return None if known == (partition.leader,) else [partition.leader]
    leads = record.leader if record.leader != NO_LEADER_CHANGE else partition.leader
    return [] if known and leads != NO_LEADER else None


def _changes_nothing(record: m.PartitionChangeRecord) -> bool:
    return (
        record.leader == NO_LEADER_CHANGE
        and record.isr is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
    )


def _min_insync_replicas(state: ControllerState, topic: TopicImage) -> int:
    configured = int(state.topic_config(topic.name, MIN_INSYNC_REPLICAS) or 1)
    return min(configured, len(topic.partitions[0].replicas))


def _directory_is_online(state: ControllerState, partition: PartitionRegistration, replica: int) -> bool:
    """Whether the directory that holds the replica works, as far as the controller knows."""
    broker = state.image.brokers.get(replica)
    return broker is not None and replica in partition.replicas and has_online_directory(broker, partition)


def has_online_directory(broker: BrokerRegistration, partition: PartitionRegistration) -> bool:
    """Whether the directory in which a broker has its replica of a partition works, as far as is known."""
    if not partition.directories:
        return True
    directory = partition.directories[partition.replicas.index(broker.broker_id)]
    if directory in _NOT_A_DIRECTORY:
        return True
    if directory == DIRECTORY_LOST:
        return False
    return not broker.directories or directory in broker.directories

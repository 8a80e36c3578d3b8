"""The change of one partition: its ISR and ELR, and the leader that `elections.py` chooses.

A leader whose election may have lost records is alone in the ISR, and marked as recovering. A reassignment
ends when its new replicas are in sync.

The rules are those of Apache Kafka 4.3, with one exception: a broker that is no longer a replica is neither
eligible (KIP-966) nor the last known leader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pykafka_broker.cluster.features import DIRECTORY_IDS_SINCE
from pykafka_broker.cluster.image import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    LeaderRecoveryState,
    PartitionRegistration,
    TopicImage,
    changed,
)
from pykafka_broker.cluster.min_isr import effective_min_isr
from pykafka_broker.cluster.replica_directories import (
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    directories_of,
    is_online_directory,
)
from pykafka_broker.controller.core.elections import Election, elect, election_allowed, online_replica
from pykafka_broker.controller.core.state import MIN_INSYNC_REPLICAS, ControllerState
from pykafka_broker.protocol.java_hash import int_hash, walked
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.system.named_tuple import NamedTuple

#: metadata.version 3.6-IV0: older brokers need a new leader epoch if a replica leaves the ISR (KAFKA-15021).
ISR_SHRINK_KEEPS_EPOCH_SINCE = 12


class Target(NamedTuple):
    """What a partition is to be; `partition_change` chooses its leader and its eligible replicas."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    #: Known log directories by broker; a replica without one gets `default_directory`.
    directories: Mapping[int, bytes] = {}
    leader_recovery_state: int = LeaderRecoveryState.RECOVERED
    #: A broker that crashed: it may lack records that it acknowledged, so it is not eligible.
    lost: int | None = None


def as_it_is(partition: PartitionRegistration) -> Target:
    """The target of a partition that stays as it is."""
    return Target(
        partition.replicas,
        partition.isr,
        partition.removing,
        partition.adding,
        dict(zip(partition.replicas, directories_of(partition), strict=True)),
        partition.leader_recovery_state,
    )


def default_directory(state: ControllerState, broker_id: int) -> bytes:
    """The directory of a new replica on a broker: known only if the broker has one directory."""
    broker = state.image.brokers.get(broker_id)
    if broker is None:
        return DIRECTORY_UNASSIGNED
    if not broker.directories:
        return DIRECTORY_MIGRATING
    return broker.directories[0] if len(broker.directories) == 1 else DIRECTORY_UNASSIGNED


def default_directories(state: ControllerState, replicas: tuple[int, ...]) -> tuple[bytes, ...]:
    """The directories of a new partition's replicas; none if metadata.version has no directory ids."""
    if state.image.metadata_version < DIRECTORY_IDS_SINCE:
        return ()
    return tuple(default_directory(state, replica) for replica in replicas)


# -- one partition --------------------------------------------------------------------------------------


def partition_change(
    state: ControllerState,
    topic: TopicImage,
    partition: PartitionRegistration,
    target: Target,
    election: Election,
    is_acceptable: Callable[[int], bool] | None = None,
) -> m.PartitionChangeRecord | None:
    """The record that changes `partition` to `target`, None if nothing changes.

    `is_acceptable` says which brokers may lead; the default is the active ones.
    """
    target = completed(target)
    eligible = _eligible_replicas(state, topic, partition, target)
    may_lead = online_replica(state, target.replicas, target.directories, is_acceptable or state.is_active)
    candidates = target.isr or eligible
    leader, is_unclean = elect(state, partition, target.replicas, candidates, election, may_lead)
    record = m.PartitionChangeRecord(partition_id=partition.partition_id, topic_id=topic.topic_id)
    isr = target.isr
    recovery_state = target.leader_recovery_state
    if leader != partition.leader:
        record.leader = leader
        if leader in eligible:
            isr, eligible = (leader,), tuple(replica for replica in eligible if replica != leader)
        if is_unclean:
            isr, eligible, recovery_state = (leader,), (), LeaderRecoveryState.RECOVERING
    if eligible != partition.elr:
        record.eligible_leader_replicas = list(eligible)
    # Without ELR the last replica stays in the ISR even if its broker is gone: only it may lead.
    if isr != partition.isr and (isr or state.elr_enabled):
        record.isr = list(isr)
    if record.leader == NO_LEADER_CHANGE and _needs_new_epoch(state, partition, target, record):
        record.leader = partition.leader
    if state.elr_enabled:
        record.last_known_elr = _last_known_leader(partition, target, record)
    _note_assignment(state, partition, target, record)
    if recovery_state != partition.leader_recovery_state:
        record.leader_recovery_state = recovery_state
    return None if _changes_nothing(record) else record


def completed(target: Target) -> Target:
    """The target with its reassignment finished, if the replicas being added are in sync.

    If more replicas are removed than added, all that remain must be in sync.
    """
    removing, adding = target.removing, target.adding
    if not removing and not adding:
        return target
    replicas = tuple(replica for replica in target.replicas if replica not in removing)
    isr = tuple(replica for replica in target.isr if replica not in removing)
    if not replicas or (removing and not isr):
        return target
    awaited = replicas if len(adding) < len(removing) else adding
    if not set(awaited) <= set(isr) or not set(adding) <= set(isr):
        return target
    return target._replace(replicas=replicas, isr=isr, removing=(), adding=())


def _eligible_replicas(
    state: ControllerState, topic: TopicImage, partition: PartitionRegistration, target: Target
) -> tuple[int, ...]:
    """The replicas outside the ISR that have every committed record.

    An ISR below `min.insync.replicas` commits nothing, so replicas that leave it keep every committed record.
    """
    if not state.elr_enabled or len(target.isr) >= _min_isr(state, topic):
        return ()
    outside = {*target.isr, target.lost}
    # In the order of Apache Kafka's hash set, in which DescribeTopicPartitions shows them.
    candidates = walked(dict.fromkeys((*partition.elr, *partition.isr)), int_hash)
    return tuple(r for r in candidates if r not in outside and r in target.replicas)


def _needs_new_epoch(
    state: ControllerState,
    partition: PartitionRegistration,
    target: Target,
    record: m.PartitionChangeRecord,
) -> bool:
    """Whether a leader that stays gets a new leader epoch, because a replica has left."""
    if not set(partition.replicas) <= set(target.replicas):
        return True
    if state.image.metadata_version >= ISR_SHRINK_KEEPS_EPOCH_SINCE or record.isr is None:
        return False
    return not set(partition.isr) <= set(record.isr)


def _last_known_leader(
    partition: PartitionRegistration, target: Target, record: m.PartitionChangeRecord
) -> list[int] | None:
    """Record the last leader of a partition that becomes leaderless; clear it when a replica leads again."""
    known = partition.last_known_elr
    if record.leader == NO_LEADER and not known and partition.leader in target.replicas:
        return [partition.leader]
    return [] if known and (record.leader >= 0 or not set(known) <= set(target.replicas)) else None


def _note_assignment(
    state: ControllerState,
    partition: PartitionRegistration,
    target: Target,
    record: m.PartitionChangeRecord,
) -> None:
    if state.image.metadata_version >= DIRECTORY_IDS_SINCE:
        directories = tuple(
            target.directories.get(replica) or default_directory(state, replica)
            for replica in target.replicas
        )
        if directories != directories_of(partition):
            record.directories = list(directories)
    if target.replicas != partition.replicas:
        record.replicas = list(target.replicas)
    if target.removing != partition.removing:
        record.removing_replicas = list(target.removing)
    if target.adding != partition.adding:
        record.adding_replicas = list(target.adding)


def _changes_nothing(record: m.PartitionChangeRecord) -> bool:
    return record == m.PartitionChangeRecord(partition_id=record.partition_id, topic_id=record.topic_id)


def _min_isr(state: ControllerState, topic: TopicImage) -> int:
    configured = int(state.topic_config(topic.name, MIN_INSYNC_REPLICAS) or 1)
    return effective_min_isr(configured, len(topic.partitions[0].replicas))


# -- the partitions of brokers that come and go -------------------------------------------------------------


def leader_and_isr_changes(
    state: ControllerState,
    concerns: Callable[[PartitionRegistration], bool],
    *,
    removed: int | None = None,
    added: int | None = None,
    lost: int | None = None,
) -> list[object]:
    """The changes of all partitions that `concerns` picks, when brokers change.

    `removed` leaves every ISR; `added` may lead though its registration still says fenced; `lost` crashed and
    leaves every ISR and ELR, because it may lack records that it acknowledged.
    """

    def is_acceptable(replica: int) -> bool:
        return replica not in (removed, lost) and (replica == added or state.is_active(replica))

    changes: list[object] = []
    for topic in state.image.topics.values():
        for partition in topic.partitions.values():
            if concerns(partition):
                isr = tuple(replica for replica in partition.isr if replica not in (removed, lost))
                target = as_it_is(partition)._replace(isr=isr, lost=lost)
                election = election_allowed(state, topic)
                change = partition_change(state, topic, partition, target, election, is_acceptable)
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
    """The changes when a broker reports the directory of its replica, which may gain or lose leadership."""
    election = election_allowed(state, topic)
    target = as_it_is(partition)
    placed = target._replace(directories={**target.directories, broker_id: directory})
    change = partition_change(state, topic, partition, placed, election)
    changes: list[object] = []
    if change is not None:
        changes.append(change)
        partition = changed(partition, change)
    if not is_online_directory(state.image.brokers[broker_id], directory):
        placed = as_it_is(partition)
        placed = placed._replace(isr=tuple(replica for replica in placed.isr if replica != broker_id))
        removal = partition_change(state, topic, partition, placed, election)
        if removal is not None:
            changes.append(removal)
    return changes


def in_isr(broker_id: int) -> Callable[[PartitionRegistration], bool]:
    """Picks the partitions with the broker in the ISR."""
    return lambda partition: broker_id in partition.isr


def in_isr_or_elr(broker_id: int) -> Callable[[PartitionRegistration], bool]:
    """Picks the partitions with the broker in the ISR or the ELR."""
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

"""AlterPartition: the leader of a partition says which replicas are in sync (KIP-497, KIP-841, KIP-903).

Replicas that fall behind leave the ISR, and return when they have caught up. The change is made only if the
leader knows the newest state of the partition, and every broker in the new ISR is active and has the given
epoch. A reassignment ends when the last new replica joins the ISR. If the leader is not among the target
replicas, its request is answered with NEW_LEADER_ELECTED. The checks, their order and codes are Apache Kafka
4.3's.
"""

from __future__ import annotations

from pykafka_broker.cluster.image import (
    NO_LEADER_CHANGE,
    LeaderRecoveryState,
    PartitionRegistration,
    TopicImage,
    changed,
)
from pykafka_broker.controller.core.brokers import check_broker_epoch
from pykafka_broker.controller.core.elections import election_allowed
from pykafka_broker.controller.core.events import (
    AlterPartition,
    InSyncReplicas,
    IsrChange,
    IsrChangeResult,
    IsrMember,
)
from pykafka_broker.controller.core.partitions import as_it_is, partition_change
from pykafka_broker.controller.core.state import ControllerState, Decision
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records import metadata as m

_ANY_EPOCH = -1


def alter_partition(state: ControllerState, event: AlterPartition) -> Decision:
    """Change ISRs; each partition succeeds or fails on its own."""
    check_broker_epoch(state, event.broker_id, event.broker_epoch)
    records: list[object] = []
    results = []
    #: A partition that is named twice changes twice.
    newest: dict[tuple[bytes, int], PartitionRegistration] = {}
    for change in event.changes:
        topic = state.image.topic_by_id(change.topic_id)
        if topic is None:
            results.append(IsrChangeResult(ErrorCode.UNKNOWN_TOPIC_ID))
            continue
        key = (change.topic_id, change.partition)
        partition = newest.get(key) or topic.partitions.get(change.partition)
        if partition is None:
            results.append(IsrChangeResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        error = refusal(state, event.broker_id, partition, change)
        if error is not ErrorCode.NONE:
            results.append(IsrChangeResult(error))
            continue
        record = _change(state, topic, partition, change)
        if record is not None:
            records.append(record)
            partition = newest[key] = changed(partition, record)
        if record is not None and record.leader not in (event.broker_id, NO_LEADER_CHANGE):
            results.append(IsrChangeResult(ErrorCode.NEW_LEADER_ELECTED))
        else:
            results.append(IsrChangeResult(ErrorCode.NONE, _told(partition)))
    return Decision(tuple(records), tuple(results))


def _told(partition: PartitionRegistration) -> InSyncReplicas:
    return InSyncReplicas(
        partition.leader,
        partition.leader_epoch,
        partition.isr,
        partition.partition_epoch,
        partition.leader_recovery_state,
    )


def _change(
    state: ControllerState, topic: TopicImage, partition: PartitionRegistration, change: IsrChange
) -> m.PartitionChangeRecord | None:
    target = as_it_is(partition)._replace(
        isr=tuple(member.broker_id for member in change.isr),
        leader_recovery_state=change.leader_recovery_state,
    )
    return partition_change(state, topic, partition, target, election_allowed(state, topic))


def refusal(
    state: ControllerState, broker_id: int, partition: PartitionRegistration, change: IsrChange
) -> ErrorCode:
    """The error that refuses the change of a leader; NONE if it may be made."""
    # The leader knows newer epochs, so this controller is no longer the active one.
    if change.leader_epoch > partition.leader_epoch or change.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if change.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if change.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    isr = [member.broker_id for member in change.isr]
    if len(set(isr)) < len(isr) or not set(isr) <= set(partition.replicas) or broker_id not in isr:
        return ErrorCode.INVALID_REQUEST
    if change.leader_recovery_state != LeaderRecoveryState.RECOVERED and (
        len(isr) > 1 or partition.leader_recovery_state == LeaderRecoveryState.RECOVERED
    ):
        return ErrorCode.INVALID_REQUEST
    if not all(may_be_in_sync(state, member) for member in change.isr):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def may_be_in_sync(state: ControllerState, member: IsrMember) -> bool:
    """Whether the broker is active and has not registered again since the leader heard of it (KIP-841)."""
    broker = state.image.brokers.get(member.broker_id)
    return broker is not None and broker.active and member.broker_epoch in (_ANY_EPOCH, broker.epoch)

"""AlterPartition (API key 56): the leader of a partition asks for other in-sync replicas.

v2 topic ids, v3 the epoch of each in-sync broker (KIP-903).
"""

from __future__ import annotations

from collections.abc import Iterable

from pykafka_broker.cluster.image import LeaderRecoveryState
from pykafka_broker.controller.core.events import (
    AlterPartition,
    InSyncReplicas,
    IsrChange,
    IsrChangeResult,
    IsrMember,
)
from pykafka_broker.controller.wire import common
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, error_of
from pykafka_broker.protocol.messages import alter_partition as m

BROKER_EPOCHS_VERSION = 3


def request(event: AlterPartition, _: common.Terms) -> m.AlterPartitionRequest:
    """The request of a broker, for every version: v2 has only the brokers, v3 their epochs too."""
    by_topic: dict[bytes, list[m.AlterPartitionRequestPartitionData]] = {}
    for change in event.changes:
        by_topic.setdefault(change.topic_id, []).append(_told_change(change))
    return m.AlterPartitionRequest(
        broker_id=event.broker_id,
        broker_epoch=event.broker_epoch,
        topics=[
            m.AlterPartitionRequestTopicData(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in by_topic.items()
        ],
    )


def read_request(request: m.AlterPartitionRequest, version: int) -> AlterPartition:
    """The event of a request."""
    changes = tuple(
        IsrChange(
            topic.topic_id,
            asked.partition_index,
            asked.leader_epoch,
            asked.partition_epoch,
            _read_members(asked, version),
            asked.leader_recovery_state,
        )
        for topic in request.topics
        for asked in topic.partitions
    )
    return AlterPartition(request.broker_id, request.broker_epoch, changes)


def response(
    results: Iterable[IsrChangeResult], request: m.AlterPartitionRequest
) -> m.AlterPartitionResponse:
    """The response with the request's topics. The results are in the order of the request's partitions."""
    left = iter(results)
    return m.AlterPartitionResponse(
        error_code=0,
        topics=[
            m.AlterPartitionResponseTopicData(
                topic_id=topic.topic_id,
                partitions=[_told_result(asked.partition_index, next(left)) for asked in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def refused(_: m.AlterPartitionRequest, error: KafkaError) -> m.AlterPartitionResponse:
    """The answer that refuses a request as a whole."""
    return m.AlterPartitionResponse(error_code=int(error.code), topics=[])


def read_response(
    response: m.AlterPartitionResponse, event: AlterPartition
) -> tuple[IsrChangeResult | None, ...]:
    """An outcome for each change, None for a partition that the response lacks.

    Raises:
        KafkaError: all are refused.
    """
    common.raise_refusal(response.error_code)
    outcomes = {
        (topic.topic_id, partition.partition_index): _read_result(partition)
        for topic in response.topics
        for partition in topic.partitions
    }
    return tuple(outcomes.get((change.topic_id, change.partition)) for change in event.changes)


def _told_change(change: IsrChange) -> m.AlterPartitionRequestPartitionData:
    return m.AlterPartitionRequestPartitionData(
        partition_index=change.partition,
        leader_epoch=change.leader_epoch,
        new_isr=[member.broker_id for member in change.isr],
        new_isr_with_epochs=[
            m.BrokerState(broker_id=member.broker_id, broker_epoch=member.broker_epoch)
            for member in change.isr
        ],
        leader_recovery_state=int(change.leader_recovery_state),
        partition_epoch=change.partition_epoch,
    )


def _read_members(asked: m.AlterPartitionRequestPartitionData, version: int) -> tuple[IsrMember, ...]:
    if version < BROKER_EPOCHS_VERSION:
        return tuple(IsrMember(broker_id) for broker_id in asked.new_isr)
    return tuple(IsrMember(member.broker_id, member.broker_epoch) for member in asked.new_isr_with_epochs)


def _told_result(partition_index: int, result: IsrChangeResult) -> m.AlterPartitionResponsePartitionData:
    partition = result.partition
    if partition is None:
        return m.AlterPartitionResponsePartitionData(
            partition_index=partition_index,
            error_code=int(result.error),
            leader_id=0,
            leader_epoch=0,
            isr=[],
            partition_epoch=0,
        )
    return m.AlterPartitionResponsePartitionData(
        partition_index=partition_index,
        error_code=int(result.error),
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=int(partition.leader_recovery_state),
        partition_epoch=partition.partition_epoch,
    )


def _read_result(partition: m.AlterPartitionResponsePartitionData) -> IsrChangeResult:
    error = error_of(partition.error_code)
    if error is not ErrorCode.NONE:
        return IsrChangeResult(error)
    try:
        recovery_state = LeaderRecoveryState(partition.leader_recovery_state)
    except ValueError:
        return IsrChangeResult(ErrorCode.UNKNOWN_SERVER_ERROR)
    return IsrChangeResult(
        ErrorCode.NONE,
        InSyncReplicas(
            partition.leader_id,
            partition.leader_epoch,
            tuple(partition.isr),
            partition.partition_epoch,
            recovery_state,
        ),
    )

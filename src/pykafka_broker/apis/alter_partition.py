"""AlterPartition (API key 56): the leader of a partition asks the controller for other in-sync replicas.

v2 topic ids, v3 the epoch of each in-sync broker (KIP-903).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.cluster.events import AlterPartition, IsrChange, IsrChangeResult, IsrMember
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import ControllerContext

BROKER_EPOCHS_VERSION = 3


def _refused(request: AlterPartitionRequest, error: KafkaError) -> AlterPartitionResponse:
    return AlterPartitionResponse(error_code=int(error.code), topics=[])


@handles(
    AlterPartitionRequest,
    versions="2-3",
    needs=[on_cluster(AclOperation.CLUSTER_ACTION)],
    quota=Quota.EXEMPT,
    error_response=_refused,
)
async def alter_partition(request: AlterPartitionRequest, ctx: ControllerContext) -> AlterPartitionResponse:
    """Each partition succeeds or fails alone."""
    changes = tuple(
        IsrChange(
            topic.topic_id,
            asked.partition_index,
            asked.leader_epoch,
            asked.partition_epoch,
            _members(asked, ctx.version),
            asked.leader_recovery_state,
        )
        for topic in request.topics
        for asked in topic.partitions
    )
    results: tuple[IsrChangeResult, ...] = await ctx.node.active.result_of(
        partial(
            AlterPartition, broker_id=request.broker_id, broker_epoch=request.broker_epoch, changes=changes
        )
    )
    return AlterPartitionResponse(error_code=0, topics=_answers(request, iter(results)))


def _members(asked: AlterPartitionRequestPartitionData, version: int) -> tuple[IsrMember, ...]:
    if version < BROKER_EPOCHS_VERSION:
        return tuple(IsrMember(broker_id) for broker_id in asked.new_isr)
    return tuple(IsrMember(member.broker_id, member.broker_epoch) for member in asked.new_isr_with_epochs)


def _answers(
    request: AlterPartitionRequest, results: Iterator[IsrChangeResult]
) -> list[AlterPartitionResponseTopicData]:
    """The request's topics with the results of their partitions, which are in the same order."""
    return [
        AlterPartitionResponseTopicData(
            topic_id=topic.topic_id,
            partitions=[_answer(asked.partition_index, next(results)) for asked in topic.partitions],
        )
        for topic in request.topics
    ]


def _answer(partition_index: int, result: IsrChangeResult) -> AlterPartitionResponsePartitionData:
    partition = result.partition
    if partition is None:
        return AlterPartitionResponsePartitionData(
            partition_index=partition_index,
            error_code=int(result.error),
            leader_id=0,
            leader_epoch=0,
            isr=[],
            partition_epoch=0,
        )
    return AlterPartitionResponsePartitionData(
        partition_index=partition_index,
        error_code=int(result.error),
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=int(partition.leader_recovery_state),
        partition_epoch=partition.partition_epoch,
    )

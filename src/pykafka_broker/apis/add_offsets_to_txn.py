"""AddOffsetsToTxn (API key 25): add a group to the transaction, before its offsets are committed with it.

v2 PRODUCER_FENCED, v3 flexible, v4 TRANSACTION_ABORTABLE. Clients of transaction.version 2 do not send it:
their TxnOffsetCommit adds the group.

It adds the group's partition of `__consumer_offsets`, a topic that is created on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_group_of_request, on_transactional_id_of_request
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.transactional import OLD_CLIENT, known_error
from pykafka_broker.cluster.topic_names import OFFSETS_TOPIC
from pykafka_broker.coordinator.transactions import refusals
from pykafka_broker.coordinator.transactions.core import events
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from pykafka_broker.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(_request: AddOffsetsToTxnRequest, error: KafkaError) -> AddOffsetsToTxnResponse:
    """The answer to a request that failed as a whole."""
    return AddOffsetsToTxnResponse(error_code=int(error.code))


@handles(
    AddOffsetsToTxnRequest,
    versions="0-4",
    needs=[on_transactional_id_of_request(AclOperation.WRITE), on_group_of_request(AclOperation.READ)],
    error_response=failed,
)
async def add_offsets_to_txn(request: AddOffsetsToTxnRequest, ctx: RequestContext) -> AddOffsetsToTxnResponse:
    """Add the partition that has the group's offsets."""
    if not await ctx.node.topic_creation.ensure_offsets_topic():
        return AddOffsetsToTxnResponse(error_code=int(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    transactions = ctx.node.transactions
    offsets = TopicPartition(OFFSETS_TOPIC, ctx.node.groups.partition_for(request.group_id))
    error = await transactions.answer(
        request.transactional_id,
        lambda token: events.AddPartitions(
            token,
            transactions.now_ms(),
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            frozenset({offsets}),
            OLD_CLIENT,
        ),
        refused=refusals.add_partitions,
    )
    return AddOffsetsToTxnResponse(error_code=int(known_error(error, ctx)))

"""AddPartitionsToTxn (API key 24): add partitions to a transaction, or verify that they are part of it.

v2 PRODUCER_FENCED, v3 flexible, v4 several transactions at once and verification only (KIP-890: brokers send
it for their clients), v5 TRANSACTION_ABORTABLE. Clients of transaction.version 2 add partitions by writing.

All partitions of a transaction are added, or none. Apache Kafka never answers v4 without any transaction;
here the answer is empty.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Set
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_topics, denied_transactional_ids
from pykafka_broker.apis.needs import on_cluster, on_topics, on_transactional_ids
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.transactional import OLD_CLIENT, known_error
from pykafka_broker.cluster.topic_names import INTERNAL_TOPICS
from pykafka_broker.coordinator.transactions import refusals
from pykafka_broker.coordinator.transactions.core import events
from pykafka_broker.coordinator.transactions.remote_participation import BATCHED_VERSION
from pykafka_broker.machine.shard import Prompt
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from pykafka_broker.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(request: AddPartitionsToTxnRequest, error: KafkaError) -> AddPartitionsToTxnResponse:
    """The answer to a failed request: one error for all transactions, or one per partition up to v3."""
    if request.transactions:
        return AddPartitionsToTxnResponse(error_code=int(error.code))
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=_results(request.v3_and_below_topics, lambda _: error.code)
    )


@handles(
    AddPartitionsToTxnRequest,
    versions="0-5",
    needs=[
        on_cluster(AclOperation.CLUSTER_ACTION, lambda request: bool(request.transactions)),
        on_transactional_ids(AclOperation.WRITE).asked_by_handler(),
        on_topics(AclOperation.WRITE).asked_by_handler(),
    ],
    error_response=failed,
)
async def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, ctx: RequestContext
) -> AddPartitionsToTxnResponse:
    """One answer for each transaction, in the order asked."""
    if ctx.version >= BATCHED_VERSION:
        # Start all before awaiting the first answer, which may wait for replicas.
        answers = [_added(transaction, ctx) for transaction in request.transactions]
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=transaction.transactional_id,
                    topic_results=_results(transaction.topics, (await answer).__getitem__),
                )
                for transaction, answer in zip(request.transactions, answers, strict=True)
            ]
        )
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    if denied_transactional_ids(ctx, AclOperation.WRITE, (transaction.transactional_id,)):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    errors = await _added(transaction, ctx)
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=_results(transaction.topics, errors.__getitem__)
    )


def _added(
    transaction: AddPartitionsToTxnTransaction, ctx: RequestContext
) -> Awaitable[Mapping[TopicPartition, ErrorCode]]:
    """Ask the coordinator at once; returns its answer for each partition."""
    partitions = [
        TopicPartition(topic.name, partition)
        for topic in transaction.topics
        for partition in topic.partitions
    ]
    hidden: Set[str] = frozenset()
    if ctx.version < BATCHED_VERSION:
        # Newer versions come from brokers, which are authorized for all topics.
        topics = (topic.name for topic in transaction.topics if topic.name not in INTERNAL_TOPICS)
        hidden = denied_topics(ctx, AclOperation.WRITE, topics)
    refused = {
        each: error for each in partitions if (error := _refusal(each, hidden, ctx)) is not ErrorCode.NONE
    }
    if refused:
        return Prompt({each: refused.get(each, ErrorCode.OPERATION_NOT_ATTEMPTED) for each in partitions})
    if ctx.version >= BATCHED_VERSION:
        return ctx.node.participation.ask_here(
            transaction.transactional_id,
            transaction.producer_id,
            transaction.producer_epoch,
            frozenset(partitions),
            adds=not transaction.verify_only,
        )
    transactions = ctx.node.transactions
    added = transactions.answer(
        transaction.transactional_id,
        lambda token: events.AddPartitions(
            token,
            transactions.now_ms(),
            transaction.transactional_id,
            transaction.producer_id,
            transaction.producer_epoch,
            frozenset(partitions),
            OLD_CLIENT,
        ),
        refused=refusals.add_partitions,
    )
    return _of_each(partitions, added, ctx)


async def _of_each(
    partitions: list[TopicPartition], added: Awaitable[ErrorCode], ctx: RequestContext
) -> Mapping[TopicPartition, ErrorCode]:
    return dict.fromkeys(partitions, known_error(await added, ctx))


def _refusal(partition: TopicPartition, hidden: Set[str], ctx: RequestContext) -> ErrorCode:
    """Why a partition cannot be added: it is unknown, or a client names an internal or `hidden` topic."""
    if ctx.version < BATCHED_VERSION and (partition.topic in INTERNAL_TOPICS or partition.topic in hidden):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if ctx.node.metadata.image.partition(partition.topic, partition.partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _results(
    topics: Iterable[AddPartitionsToTxnTopic], error_of: Callable[[TopicPartition], ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=partition,
                    partition_error_code=int(error_of(TopicPartition(topic.name, partition))),
                )
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]

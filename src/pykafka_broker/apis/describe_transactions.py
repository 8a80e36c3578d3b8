"""DescribeTransactions (API key 65): state, producer and partitions of transactional ids coordinated here.

v0 only (KIP-664), flexible from the start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_topics, denied_transactional_ids
from pykafka_broker.apis.needs import on_topics, on_transactional_ids
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.coordinator.transactions import refusals
from pykafka_broker.coordinator.transactions.core import events
from pykafka_broker.coordinator.transactions.core.events import DescribedTransaction
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from pykafka_broker.protocol.topic_partition import by_topic

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.protocol.errors import KafkaError


def failed(request: DescribeTransactionsRequest, error: KafkaError) -> DescribeTransactionsResponse:
    """The answer to a request that failed as a whole."""
    return DescribeTransactionsResponse(
        transaction_states=[
            _state(name, DescribedTransaction(error.code)) for name in request.transactional_ids
        ]
    )


@handles(
    DescribeTransactionsRequest,
    versions="0",
    needs=[
        on_transactional_ids(AclOperation.DESCRIBE).asked_by_handler(),
        on_topics(AclOperation.DESCRIBE).asked_by_handler(),
    ],
    error_response=failed,
)
async def describe_transactions(
    request: DescribeTransactionsRequest, ctx: RequestContext
) -> DescribeTransactionsResponse:
    """Describe each id, with its own error, and without the topics that the client may not describe."""
    hidden = denied_transactional_ids(ctx, AclOperation.DESCRIBE, request.transactional_ids)
    refused = DescribedTransaction(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    states = [
        _state(name, refused if name in hidden else await _described(name, ctx))
        for name in request.transactional_ids
    ]
    names = (topic.topic for state in states for topic in state.topics)
    hidden_topics = denied_topics(ctx, AclOperation.DESCRIBE, names)
    for state in states:
        state.topics = [topic for topic in state.topics if topic.topic not in hidden_topics]
    return DescribeTransactionsResponse(transaction_states=states)


async def _described(transactional_id: str, ctx: RequestContext) -> DescribedTransaction:
    return await ctx.node.transactions.answer(
        transactional_id,
        lambda token: events.DescribeTransaction(token, transactional_id),
        refused=refusals.describe,
    )


def _state(transactional_id: str, found: DescribedTransaction) -> TransactionState:
    return TransactionState(
        error_code=int(found.error),
        transactional_id=transactional_id,
        transaction_state=found.state,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(sorted(found.partitions)).items()
        ],
    )

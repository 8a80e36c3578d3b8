"""FindCoordinator (API key 10): which broker coordinates a group or a transactional id.

v1 key types, v3 flexible, v4 batched (KIP-699: an array instead of the flat fields), v5 transaction errors
(KIP-890), v6 share groups. The coordinators' topics are created when the first coordinator of their kind is
looked for. Apache Kafka answers COORDINATOR_NOT_AVAILABLE meanwhile; here the answer waits for the topic,
which takes some milliseconds.

Share groups have no coordinator on this node: INVALID_REQUEST, as for unknown types, which stops Java clients
at once; librdkafka asks until its own timeout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.needs import on_groups, on_transactional_ids
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.cluster.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

GROUP, TRANSACTION = 0, 1
BATCHED_VERSION = 4


@handles(
    FindCoordinatorRequest,
    versions="0-6",
    needs=[on_groups(AclOperation.DESCRIBE), on_transactional_ids(AclOperation.DESCRIBE)],
)
async def find_coordinator(request: FindCoordinatorRequest, ctx: RequestContext) -> FindCoordinatorResponse:
    """Look up each key; one key's failure does not touch the others."""
    if ctx.version >= BATCHED_VERSION:
        return FindCoordinatorResponse(
            coordinators=[await _coordinator(request.key_type, key, ctx) for key in request.coordinator_keys]
        )
    found = await _coordinator(request.key_type, request.key, ctx)
    error = ErrorCode(found.error_code)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message="NONE" if error is ErrorCode.NONE else found.error_message or error.message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


async def _coordinator(key_type: int, key: str, ctx: RequestContext) -> Coordinator:
    try:
        topic, partition = await _place(key_type, key, ctx)
        registration = ctx.node.metadata.image.topics[topic].partitions[partition]
        address = ctx.node.metadata.advertised(registration.leader, ctx.connection)
        if address is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    except KafkaError as error:
        return Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=int(error.code), error_message=error.message
        )
    host, port = address
    return Coordinator(
        key=key, node_id=registration.leader, host=host, port=port, error_code=0, error_message=""
    )


async def _place(key_type: int, key: str, ctx: RequestContext) -> tuple[str, int]:
    """The partition whose leader is the coordinator.

    Raises:
        KafkaError: there is no coordinator of this type, or its topic cannot be had.
    """
    node = ctx.node
    if key_type == GROUP:
        if await node.topic_creation.ensure_offsets_topic():
            return OFFSETS_TOPIC, node.groups.partition_for(key)
    elif key_type == TRANSACTION:
        if await node.topic_creation.ensure_transactions_topic():
            return TRANSACTIONS_TOPIC, node.transactions.partition_for(key)
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

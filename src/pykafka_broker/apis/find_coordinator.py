"""FindCoordinator (API key 10): which broker coordinates a group or a transactional id.

v1 key types, v3 flexible, v4 batched (KIP-699: an array instead of the flat fields), v5 transaction errors
(KIP-890), v6 share groups. The coordinator is the leader of the id's partition, on whichever broker, by its
address on the client's listener.

The coordinators' topics are created when the first coordinator of their kind is looked for. Apache Kafka
answers COORDINATOR_NOT_AVAILABLE meanwhile; here the answer waits for the topic, which takes some
milliseconds, or two seconds at most where no controller can create it.

Share groups have no coordinator on this node: INVALID_REQUEST, as for unknown types, which stops Java clients
at once; librdkafka asks until its own timeout.
"""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.authorization import denied_groups, denied_transactional_ids
from pykafka_broker.apis.needs import on_groups, on_transactional_ids
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.cluster.image import NO_LEADER
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
    needs=[
        on_groups(AclOperation.DESCRIBE).asked_by_handler(),
        on_transactional_ids(AclOperation.DESCRIBE).asked_by_handler(),
    ],
)
async def find_coordinator(request: FindCoordinatorRequest, ctx: RequestContext) -> FindCoordinatorResponse:
    """Look up each key; one key's failure does not touch the others."""
    is_batched = ctx.version >= BATCHED_VERSION
    keys = request.coordinator_keys if is_batched else [request.key]
    hidden, refusal = _hidden(request.key_type, keys, ctx)
    try:
        topic = await _topic(request.key_type, ctx) if len(hidden) < len(set(keys)) else ""
    except KafkaError as error:
        coordinators = [_unknown(key, refusal if key in hidden else error) for key in keys]
    else:
        coordinators = [
            _unknown(key, refusal) if key in hidden else _coordinator(topic, key, ctx) for key in keys
        ]
    if is_batched:
        return FindCoordinatorResponse(coordinators=coordinators)
    [found] = coordinators
    error_code = ErrorCode(found.error_code)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message="NONE" if error_code is ErrorCode.NONE else found.error_message or error_code.message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _hidden(key_type: int, keys: list[str], ctx: RequestContext) -> tuple[Set[str], KafkaError]:
    """The keys that the client may not describe, and what it is told about them."""
    if key_type == GROUP:
        error = KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return denied_groups(ctx, AclOperation.DESCRIBE, keys), error
    error = KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if key_type == TRANSACTION:
        return denied_transactional_ids(ctx, AclOperation.DESCRIBE, keys), error
    return frozenset(), error


def _coordinator(topic: str, key: str, ctx: RequestContext) -> Coordinator:
    node = ctx.node
    try:
        coordinators = node.groups if topic == OFFSETS_TOPIC else node.transactions
        registration = node.metadata.image.partition(topic, coordinators.partition_for(key))
    except KafkaError as error:
        return _unknown(key, error)
    leader = NO_LEADER if registration is None else registration.leader
    broker = node.metadata.image.brokers.get(leader)
    address = node.metadata.advertised(leader, ctx.connection)
    if broker is None or broker.fenced or address is None:
        return _unknown(key, KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    host, port = address
    return Coordinator(key=key, node_id=leader, host=host, port=port, error_code=0, error_message="")


def _unknown(key: str, error: KafkaError) -> Coordinator:
    return Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=int(error.code), error_message=error.message
    )


async def _topic(key_type: int, ctx: RequestContext) -> str:
    """The topic that holds the ids of this type.

    Raises:
        KafkaError: there is no coordinator of this type, or its topic cannot be had.
    """
    creation = ctx.node.topic_creation
    if key_type == GROUP:
        if await creation.ensure_offsets_topic():
            return OFFSETS_TOPIC
    elif key_type == TRANSACTION:
        if await creation.ensure_transactions_topic():
            return TRANSACTIONS_TOPIC
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

"""FindCoordinator (API key 10): which broker coordinates a group, a transactional id or a share partition.

v1 key types, v3 flexible, v4 batched (KIP-699: an array instead of the flat fields), v5 transaction errors
(KIP-890), v6 share groups. The coordinator is the leader of the id's partition, with its address on the
client's listener.

A coordinator's topic is created at the first look-up of its kind. Apache Kafka answers
COORDINATOR_NOT_AVAILABLE meanwhile; here the answer waits for the topic, which takes some milliseconds, or at
most two seconds if no controller can create it.

Brokers look up share coordinators, from v6 on, with the key "group:topic id:partition". Other keys, and
unknown types, get INVALID_REQUEST, which stops Java clients at once; librdkafka retries until its own
timeout.
"""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_groups, denied_transactional_ids, may_on_cluster
from pykafka_broker.apis.needs import on_groups, on_transactional_ids, partly_on_cluster
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.cluster.topic_names import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from pykafka_broker.coordinator.share.keys import share_partition
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.apis.ports.node import NodePorts

GROUP, TRANSACTION, SHARE = 0, 1, 2
SHARE_KEYS_VERSION = 6
BATCHED_VERSION = 4


def failed(request: FindCoordinatorRequest, error: KafkaError) -> FindCoordinatorResponse:
    """The answer to a request that failed as a whole."""
    return FindCoordinatorResponse(
        error_code=int(error.code),
        error_message=error.message,
        node_id=-1,
        port=-1,
        coordinators=[_unknown(key, error) for key in request.coordinator_keys],
    )


@handles(
    FindCoordinatorRequest,
    versions="0-6",
    needs=[
        on_groups(AclOperation.DESCRIBE).asked_by_handler(),
        on_transactional_ids(AclOperation.DESCRIBE).asked_by_handler(),
        partly_on_cluster(AclOperation.CLUSTER_ACTION).asked_by_handler(),
    ],
    error_response=failed,
)
async def find_coordinator(request: FindCoordinatorRequest, ctx: RequestContext) -> FindCoordinatorResponse:
    """Look up each key, which succeeds or fails on its own."""
    is_batched = ctx.version >= BATCHED_VERSION
    keys = request.coordinator_keys if is_batched else [request.key]
    if (
        request.key_type == SHARE
        and ctx.version >= SHARE_KEYS_VERSION
        and keys
        and not may_on_cluster(ctx, AclOperation.CLUSTER_ACTION)
    ):
        return failed(request, KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
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
    """The keys that the client may not describe, or that are invalid, and their error."""
    if key_type == GROUP:
        error = KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return denied_groups(ctx, AclOperation.DESCRIBE, keys), error
    error = KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if key_type == TRANSACTION:
        return denied_transactional_ids(ctx, AclOperation.DESCRIBE, keys), error
    if key_type == SHARE:
        return {key for key in keys if not _is_share_partition(key)}, KafkaError(ErrorCode.INVALID_REQUEST)
    return frozenset(), error


def _is_share_partition(key: str) -> bool:
    try:
        share_partition(key)
    except ValueError:
        return False
    return True


def _coordinator(topic: str, key: str, ctx: RequestContext) -> Coordinator:
    node = ctx.node
    try:
        leader = node.metadata.image.leader_of(topic, _partition_for(topic, key, node))
    except KafkaError as error:
        return _unknown(key, error)
    broker = node.metadata.image.brokers.get(leader)
    address = node.metadata.advertised(leader, ctx.connection)
    if broker is None or broker.fenced or address is None:
        return _unknown(key, KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    host, port = address
    return Coordinator(key=key, node_id=leader, host=host, port=port, error_code=0, error_message="")


def _partition_for(topic: str, key: str, node: NodePorts) -> int:
    """The partition of a coordinator's topic that a key belongs to.

    Raises:
        KafkaError: NOT_COORDINATOR while there is no topic.
    """
    if topic == OFFSETS_TOPIC:
        return node.groups.partition_for(key)
    if topic == TRANSACTIONS_TOPIC:
        return node.transactions.partition_for(key)
    return node.shares.partition_for(share_partition(key))


def _unknown(key: str, error: KafkaError) -> Coordinator:
    return Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=int(error.code), error_message=error.message
    )


async def _topic(key_type: int, ctx: RequestContext) -> str:
    """The topic that holds the ids of this type.

    Raises:
        KafkaError: there is no coordinator of this type, or its topic is not available.
    """
    creation = ctx.node.topic_creation
    if key_type == GROUP:
        if await creation.ensure_offsets_topic():
            return OFFSETS_TOPIC
    elif key_type == TRANSACTION:
        if await creation.ensure_transactions_topic():
            return TRANSACTIONS_TOPIC
    elif key_type == SHARE and ctx.version >= SHARE_KEYS_VERSION:
        if await creation.ensure_share_state_topic():
            return SHARE_STATE_TOPIC
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

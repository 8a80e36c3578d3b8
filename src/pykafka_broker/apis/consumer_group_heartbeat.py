"""ConsumerGroupHeartbeat (API key 68): join, stay in and leave a group whose partitions the broker assigns
(KIP-848).

v0 flexible, v1 subscription by regular expression and member ids made by the client. Served if the feature
group.version is finalized and `group.coordinator.rebalance.protocols` has "consumer".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.consumer_groups import serves_consumer_groups
from pykafka_broker.apis.denials import denied_topics
from pykafka_broker.apis.needs import on_group_of_request, on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import uuid_text
from pykafka_broker.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(_request: ConsumerGroupHeartbeatRequest, error: KafkaError) -> ConsumerGroupHeartbeatResponse:
    """The answer to a request that failed as a whole."""
    return ConsumerGroupHeartbeatResponse(error_code=int(error.code), member_epoch=0, heartbeat_interval_ms=0)


@handles(
    ConsumerGroupHeartbeatRequest,
    versions="0-1",
    needs=[on_group_of_request(AclOperation.READ), on_topics(AclOperation.DESCRIBE).asked_by_handler()],
    error_response=failed,
)
async def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, ctx: RequestContext
) -> ConsumerGroupHeartbeatResponse:
    """The coordinator answers at once; the answer has an assignment only if it is new."""
    if not serves_consumer_groups(ctx):
        return ConsumerGroupHeartbeatResponse(
            error_code=int(ErrorCode.UNSUPPORTED_VERSION), member_epoch=0, heartbeat_interval_ms=0
        )
    groups = ctx.node.groups
    names, owned = request.subscribed_topic_names, request.topic_partitions
    # Resolving a regular expression leaves out topics that the member may not describe.
    if denied_topics(ctx, AclOperation.DESCRIBE, names or ()):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    result = await groups.answer(
        request.group_id,
        lambda token: events.ConsumerGroupHeartbeat(
            token=token,
            now_ms=groups.now_ms(),
            version=ctx.version,
            group_id=request.group_id,
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            client_id=ctx.client_id or "",
            client_host=ctx.client_host,
            principal=ctx.principal,
            # Making a UUID takes a seventh of a heartbeat's time, and only a joining member needs one.
            uuid="" if request.member_id else _in_base64(groups.new_uuid()),
            instance_id=request.instance_id,
            rack_id=request.rack_id,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            subscribed_topic_names=None if names is None else tuple(names),
            subscribed_topic_regex=request.subscribed_topic_regex,
            server_assignor=request.server_assignor,
            owned=None if owned is None else tuple((each.topic_id, tuple(each.partitions)) for each in owned),
        ),
        refused=refusals.consumer_group_heartbeat
        if request.group_id.strip()
        else refusals.consumer_group_heartbeat_without_group_id,
    )
    assignment = None
    if result.assignment is not None:
        assignment = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=list(partitions))
                for topic_id, partitions in result.assignment
            ]
        )
    return ConsumerGroupHeartbeatResponse(
        error_code=int(result.error),
        error_message=result.error_message,
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        assignment=assignment,
    )


def _in_base64(uuid: str) -> str:
    """A UUID in Kafka's form."""
    return uuid_text(bytes.fromhex(uuid.replace("-", "")))

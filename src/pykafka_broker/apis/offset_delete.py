"""OffsetDelete (API key 47): delete a group's offsets of topics that no member is subscribed to (KIP-496).

v0 only, and not flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_topics
from pykafka_broker.apis.needs import on_group_of_request, on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.told_changes import OFFSETS, tell
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.coordinator.groups.core.events import TopicPartitions
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext


def failed(_request: OffsetDeleteRequest, error: KafkaError) -> OffsetDeleteResponse:
    """The answer to a request that failed as a whole."""
    return OffsetDeleteResponse(error_code=int(error.code), topics=[])


@handles(
    OffsetDeleteRequest,
    versions="0",
    needs=[on_group_of_request(AclOperation.DELETE), on_topics(AclOperation.READ).asked_by_handler()],
    error_response=failed,
)
async def offset_delete(request: OffsetDeleteRequest, ctx: RequestContext) -> OffsetDeleteResponse:
    """Topics that the client may not read, and unknown partitions, are refused one by one; the coordinator
    decides on the rest.
    """
    hidden = denied_topics(ctx, AclOperation.READ, (topic.name for topic in request.topics))
    answers: dict[str, list[OffsetDeleteResponsePartition]] = {}
    known = []
    for topic in request.topics:
        described = ctx.node.metadata.image.topics.get(topic.name)
        existing = frozenset[int]() if described is None else frozenset(described.partitions)
        wanted = []
        for partition in topic.partitions:
            index = partition.partition_index
            if topic.name in hidden:
                _add(answers, topic.name, index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif index in existing:
                wanted.append(index)
            else:
                _add(answers, topic.name, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if wanted:
            known.append(TopicPartitions(topic.name, tuple(wanted)))
    result = await ctx.node.groups.answer_named(
        request.group_id,
        lambda token: events.DeleteOffsets(token, request.group_id, tuple(known)),
        refused=refusals.delete_offsets,
    )
    if result.error:
        return OffsetDeleteResponse(error_code=int(result.error), topics=[])
    gone = (
        f"{name}-{index}"
        for name, partitions in result.topics
        for index, error in partitions
        if error is ErrorCode.NONE
    )
    tell(ctx, OFFSETS, f"Deleted offsets of group {request.group_id}: ", gone)
    for name, partitions in result.topics:
        for index, error in partitions:
            _add(answers, name, index, error)
    return OffsetDeleteResponse(
        error_code=0,
        topics=[
            OffsetDeleteResponseTopic(name=name, partitions=partitions)
            for name, partitions in answers.items()
        ],
    )


def _add(
    answers: dict[str, list[OffsetDeleteResponsePartition]], topic: str, index: int, error: ErrorCode
) -> None:
    answers.setdefault(topic, []).append(
        OffsetDeleteResponsePartition(partition_index=index, error_code=int(error))
    )

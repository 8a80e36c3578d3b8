"""AlterShareGroupOffsets (API key 91): set the start offsets of a share group without members (KIP-932).

v0 is the only version, flexible. A missing group is created.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_groups, denied_topics
from pykafka_broker.apis.needs import on_groups, on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.sharing.groups import serves_share_groups
from pykafka_broker.apis.told_changes import OFFSETS, tell
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core.share.events import AlterShareOffsets
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Set

    from pykafka_broker.apis.context import RequestContext


def failed(_request: AlterShareGroupOffsetsRequest, error: KafkaError) -> AlterShareGroupOffsetsResponse:
    """The answer to a request that failed as a whole."""
    return _refused(error.code, error.message)


def _refused(error: ErrorCode, message: str | None) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=int(error), error_message=message, responses=[])


@handles(
    AlterShareGroupOffsetsRequest,
    versions="0",
    needs=[
        on_groups(AclOperation.READ).asked_by_handler(),
        on_topics(AclOperation.READ).asked_by_handler(),
    ],
    error_response=failed,
)
async def alter_share_group_offsets(
    request: AlterShareGroupOffsetsRequest, ctx: RequestContext
) -> AlterShareGroupOffsetsResponse:
    """Topics that the client may not read, and unknown ones, are refused one by one, and come first; the
    coordinator decides on the rest.
    """
    if not serves_share_groups(ctx):
        return failed(request, KafkaError(ErrorCode.UNSUPPORTED_VERSION))
    if denied_groups(ctx, AclOperation.READ, (request.group_id,)):
        return failed(request, KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    if not request.group_id:
        return failed(request, KafkaError(ErrorCode.INVALID_GROUP_ID))
    hidden = denied_topics(ctx, AclOperation.READ, (topic.topic_name for topic in request.topics))
    answers = _Answers(ctx)
    known = []
    for topic in request.topics:
        error = _error(topic, hidden, ctx)
        if error is ErrorCode.NONE:
            known.append(topic)
        elif topic.partitions:
            errors = ((each.partition_index, error, error.message) for each in topic.partitions)
            answers.add(topic.topic_name, errors)
    groups = ctx.node.groups
    altered = tuple(
        (topic.topic_name, tuple((each.partition_index, each.start_offset) for each in topic.partitions))
        for topic in known
    )
    result = await groups.answer(
        request.group_id,
        lambda token: AlterShareOffsets(token, groups.now_ms(), request.group_id, altered),
        refused=refusals.alter_share_offsets,
    )
    if result.error is not ErrorCode.NONE:
        return _refused(result.error, result.error_message)
    starts = {(name, index): offset for name, partitions in altered for index, offset in partitions}
    told = (
        f"{name}-{index} to {starts[name, index]}"
        for name, _, partitions in result.topics
        for index, error, _ in partitions
        if error is ErrorCode.NONE
    )
    tell(ctx, OFFSETS, f"Altered share offsets of group {request.group_id}: ", told)
    for name, _, partitions in result.topics:
        answers.add(name, partitions)
    return AlterShareGroupOffsetsResponse(error_code=0, responses=answers.topics)


def _error(topic: AlterShareGroupOffsetsRequestTopic, hidden: Set[str], ctx: RequestContext) -> ErrorCode:
    if topic.topic_name in hidden:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    exists = topic.topic_name in ctx.node.metadata.image.topics
    return ErrorCode.NONE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class _Answers:
    """The answers by topic, each topic once, with its current id."""

    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx
        self._by_name: dict[str, AlterShareGroupOffsetsResponseTopic] = {}

    @property
    def topics(self) -> list[AlterShareGroupOffsetsResponseTopic]:
        return list(self._by_name.values())

    def add(self, name: str, errors: Iterable[tuple[int, ErrorCode, str | None]]) -> None:
        """Add the outcomes of partitions of a topic: (partition, error, message)."""
        topic = self._by_name.get(name)
        if topic is None:
            found = self._ctx.node.metadata.image.topics.get(name)
            topic = self._by_name[name] = AlterShareGroupOffsetsResponseTopic(
                topic_name=name, topic_id=ZERO_UUID if found is None else found.topic_id, partitions=[]
            )
        topic.partitions += (
            AlterShareGroupOffsetsResponsePartition(
                partition_index=index, error_code=int(error), error_message=message
            )
            for index, error, message in errors
        )

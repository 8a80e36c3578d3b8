"""OffsetFetch (API key 9): read the committed offsets of groups.

v2 null topics mean all, v3 throttling, v5 leader epochs, v6 flexible, v7 require_stable (KIP-447), v8 several
groups (KIP-709), v9 member id and epoch (KIP-848), v10 topic ids.

A partition without a committed offset, or an unknown group, is no error: offset -1, leader epoch -1, empty
metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_groups, denied_topics
from pykafka_broker.apis.needs import on_groups, on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.coordinator.groups.core.events import FetchedOffset, FetchResult, TopicPartitions
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

SEVERAL_GROUPS_VERSION = 8
TOPIC_ID_VERSION = 10
TOP_LEVEL_ERROR_VERSION = 2

NOTHING_COMMITTED = -1


def failed(request: OffsetFetchRequest, error: KafkaError) -> OffsetFetchResponse:
    """The answer to a failed request: an error for each group. Before v8 the error is on the request and, as
    v1 has no other field, on each partition.
    """
    code = int(error.code)
    if request.groups:
        groups = [
            OffsetFetchResponseGroup(group_id=group.group_id, topics=[], error_code=code)
            for group in request.groups
        ]
        return OffsetFetchResponse(groups=groups)
    asked = [
        (topic.name, [FetchedOffset(index, error=error.code) for index in topic.partition_indexes])
        for topic in request.topics or ()
    ]
    return OffsetFetchResponse(error_code=code, topics=_old_topics(asked))


@handles(
    OffsetFetchRequest,
    versions="1-10",
    needs=[
        on_groups(AclOperation.DESCRIBE).asked_by_handler(),
        on_topics(AclOperation.DESCRIBE).asked_by_handler(),
    ],
    error_response=failed,
)
async def offset_fetch(request: OffsetFetchRequest, ctx: RequestContext) -> OffsetFetchResponse:
    """One answer for each group, with its own error."""
    if ctx.version < SEVERAL_GROUPS_VERSION:
        return await _one_group(request, ctx)
    answers = []
    hidden_groups = denied_groups(ctx, AclOperation.DESCRIBE, (group.group_id for group in request.groups))
    for group in request.groups:
        asked, refused = _asked(group, ctx)
        if group.group_id in hidden_groups:
            result = FetchResult(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        else:
            result = _visible(await _fetch(group, asked, request, ctx), asked, ctx)
        topics = [] if result.error else [*_topics(result, group.topics is None, ctx), *refused]
        answers.append(
            OffsetFetchResponseGroup(group_id=group.group_id, topics=topics, error_code=int(result.error))
        )
    return OffsetFetchResponse(groups=answers)


def _visible(
    result: FetchResult, asked: tuple[TopicPartitions, ...] | None, ctx: RequestContext
) -> FetchResult:
    """The result without topics that the client may not describe, if it asked for all of a group."""
    if asked is not None or not result.topics:
        return result
    names = (name for name, _, _ in result.topics)
    hidden = denied_topics(ctx, AclOperation.DESCRIBE, names, is_attempt=False)
    return result._replace(topics=tuple(each for each in result.topics if each[0] not in hidden))


async def _fetch(
    group: OffsetFetchRequestGroup,
    topics: tuple[TopicPartitions, ...] | None,
    request: OffsetFetchRequest,
    ctx: RequestContext,
) -> FetchResult:
    return await ctx.node.groups.answer(
        group.group_id,
        lambda token: events.FetchOffsets(
            token, group.group_id, topics, request.require_stable, group.member_id, group.member_epoch
        ),
        refused=refusals.fetch,
    )


def _asked(
    group: OffsetFetchRequestGroup, ctx: RequestContext
) -> tuple[tuple[TopicPartitions, ...] | None, list[OffsetFetchResponseTopics]]:
    """The topics to ask the coordinator for, and the answers for unknown topic ids and for topics that the
    client may not describe.
    """
    if group.topics is None:
        return None, []
    asked, unknown, refused = [], [], []
    hidden = denied_topics(ctx, AclOperation.DESCRIBE, (_name_of(topic, ctx) for topic in group.topics))
    for topic in group.topics:
        name, topic_id = topic.name, topic.topic_id
        if ctx.version >= TOPIC_ID_VERSION:
            described = ctx.node.metadata.image.topic_by_id(topic_id)
            if described is None:
                unknown.append(_refused("", topic_id, topic.partition_indexes, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            name = described.name
        if name in hidden:
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            refused.append(_refused(topic.name, topic_id, topic.partition_indexes, error))
            continue
        asked.append(TopicPartitions(name, tuple(topic.partition_indexes), topic_id))
    return tuple(asked), [*unknown, *refused]


def _name_of(topic: OffsetFetchRequestTopics, ctx: RequestContext) -> str:
    """The topic's name, looked up if the request has its id; "" for an unknown id."""
    if ctx.version < TOPIC_ID_VERSION:
        return topic.name
    described = ctx.node.metadata.image.topic_by_id(topic.topic_id)
    return "" if described is None else described.name


def _refused(
    name: str, topic_id: bytes, partitions: list[int], error: ErrorCode
) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=name,
        topic_id=topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=partition,
                committed_offset=NOTHING_COMMITTED,
                metadata="",
                error_code=int(error),
            )
            for partition in partitions
        ],
    )


def _topics(result: FetchResult, all_topics: bool, ctx: RequestContext) -> list[OffsetFetchResponseTopics]:
    answers = []
    for name, topic_id, offsets in result.topics:
        if ctx.version >= TOPIC_ID_VERSION and all_topics:
            described = ctx.node.metadata.image.topics.get(name)
            if described is None:
                continue
            topic_id = described.topic_id
        answers.append(
            OffsetFetchResponseTopics(
                name=name,
                topic_id=topic_id,
                partitions=[
                    OffsetFetchResponsePartitions(
                        partition_index=found.partition,
                        committed_offset=found.offset,
                        committed_leader_epoch=found.leader_epoch,
                        metadata=found.metadata,
                        error_code=int(found.error),
                    )
                    for found in offsets
                ],
            )
        )
    return answers


async def _one_group(request: OffsetFetchRequest, ctx: RequestContext) -> OffsetFetchResponse:
    """The answer before v8: one group, its topics at the top level."""
    asked = (
        None
        if request.topics is None
        else tuple(TopicPartitions(topic.name, tuple(topic.partition_indexes)) for topic in request.topics)
    )
    hidden = denied_topics(ctx, AclOperation.DESCRIBE, (topic.topic for topic in asked or ()))
    shown = None if asked is None else tuple(topic for topic in asked if topic.topic not in hidden)
    group = OffsetFetchRequestGroup(group_id=request.group_id, topics=None)
    if denied_groups(ctx, AclOperation.DESCRIBE, (request.group_id,)):
        result = FetchResult(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    else:
        result = _visible(await _fetch(group, shown, request, ctx), shown, ctx)
    topics: list[tuple[str, list[FetchedOffset]]]
    if result.error and ctx.version < TOP_LEVEL_ERROR_VERSION:
        # v1 can have a group's error only in each partition.
        topics = [
            (topic.topic, [FetchedOffset(partition, error=result.error) for partition in topic.partitions])
            for topic in asked or ()
        ]
    else:
        topics = [(name, list(offsets)) for name, _, offsets in result.topics]
        if not result.error:
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            topics += [
                (topic.topic, [FetchedOffset(partition, error=error) for partition in topic.partitions])
                for topic in asked or ()
                if topic.topic in hidden
            ]
    return OffsetFetchResponse(error_code=int(result.error), topics=_old_topics(topics))


def _old_topics(topics: list[tuple[str, list[FetchedOffset]]]) -> list[OffsetFetchResponseTopic]:
    """Topics in the form of answers before v8."""
    return [
        OffsetFetchResponseTopic(
            name=name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=found.partition,
                    committed_offset=found.offset,
                    committed_leader_epoch=found.leader_epoch,
                    metadata=found.metadata,
                    error_code=int(found.error),
                )
                for found in offsets
            ],
        )
        for name, offsets in topics
    ]

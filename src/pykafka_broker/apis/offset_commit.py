"""OffsetCommit (API key 8): commit a group's offsets.

v2 is the first served; v2-4 carry a retention time, v5 leaves retention to the broker (KIP-211), v6 leader
epochs, v7 static members, v8 flexible, v9 new group protocol errors (KIP-848), v10 topic ids.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_topics
from pykafka_broker.apis.needs import on_group_of_request, on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.told_changes import line
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.coordinator.groups.core.events import CommitResult, PartitionCommit, TopicCommit
from pykafka_broker.machine.shard import Prompt
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

TOPIC_ID_VERSION = 10
#: The answers of refused topics, by name and id.
Refused = dict[tuple[str, bytes], OffsetCommitResponseTopic]
_NO_PARTITIONS: Mapping[int, object] = MappingProxyType({})


def failed(request: OffsetCommitRequest, error: KafkaError) -> OffsetCommitResponse:
    """The answer to a request that failed as a whole."""
    results = tuple(
        (topic.name, topic.topic_id, tuple((each.partition_index, error.code) for each in topic.partitions))
        for topic in request.topics
    )
    return _response(results, {})


@handles(
    OffsetCommitRequest,
    versions="2-10",
    needs=[on_group_of_request(AclOperation.READ), on_topics(AclOperation.READ).asked_by_handler()],
    error_response=failed,
)
def offset_commit(request: OffsetCommitRequest, ctx: RequestContext) -> Any:
    """Offsets of topics that the client may not read, and of unknown partitions, are refused one by one; the
    coordinator decides on the rest together.
    """
    refused: Refused = {}
    commits = []
    named = filter(None, (_name_of(topic, ctx) for topic in request.topics))
    hidden = denied_topics(ctx, AclOperation.READ, named)
    for topic in request.topics:
        if hidden and _name_of(topic, ctx) in hidden:
            for partition in topic.partitions:
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                _add(refused, topic.name, topic.topic_id, partition.partition_index, error)
            continue
        commit = _known_partitions(topic, refused, ctx)
        if commit.partitions:
            commits.append(commit)
    if not commits:
        return OffsetCommitResponse(topics=list(refused.values()))
    groups = ctx.node.groups
    topics = tuple(commits)
    results = groups.answer(
        request.group_id,
        lambda token: events.CommitOffsets(
            token,
            groups.now_ms(),
            ctx.version,
            request.group_id,
            topics,
            request.member_id,
            request.generation_id_or_member_epoch,
            request.group_instance_id,
            request.retention_time_ms,
        ),
        refused=lambda error: refusals.commit(topics, error),
    )

    def response(results: CommitResult) -> OffsetCommitResponse:
        if not request.member_id and request.generation_id_or_member_epoch < 0:
            _tell(request.group_id, topics, results, ctx)
        return _response(results, refused)

    return response(results.result()) if isinstance(results, Prompt) else _later(results, response)


def _tell(group_id: str, topics: Iterable[TopicCommit], results: CommitResult, ctx: RequestContext) -> None:
    """Log offsets set by an administrator, or by a consumer without a group protocol."""

    def text() -> str:
        named = [
            f"{topic.topic}-{commit.partition} to {commit.offset}"
            for topic, (_, _, partitions) in zip(topics, results, strict=True)
            for commit, (_, error) in zip(topic.partitions, partitions, strict=True)
            if error is ErrorCode.NONE
        ]
        return line(ctx, f"Set offsets of group {group_id} without being a member: ", named)

    if any(error is ErrorCode.NONE for _, _, partitions in results for _, error in partitions):
        # A client may commit like this thousands of times a second: few of the lines are written, or made.
        ctx.node.groups.commit_lines.log(logging.INFO, "commit", f"{group_id} {ctx.requester}", text)


async def _later(
    results: Awaitable[CommitResult], response: Callable[[CommitResult], OffsetCommitResponse]
) -> OffsetCommitResponse:
    return response(await results)


def _response(results: CommitResult, refused: Refused) -> OffsetCommitResponse:
    if not refused:
        # As in Kafka, a topic named twice is answered twice unless there were errors to merge with.
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=name,
                    topic_id=topic_id,
                    partitions=[
                        OffsetCommitResponsePartition(partition_index=partition, error_code=int(error))
                        for partition, error in partitions
                    ],
                )
                for name, topic_id, partitions in results
            ]
        )
    for name, topic_id, partitions in results:
        for partition, error in partitions:
            _add(refused, name, topic_id, partition, error)
    return OffsetCommitResponse(topics=list(refused.values()))


def _name_of(topic: OffsetCommitRequestTopic, ctx: RequestContext) -> str:
    """The topic's name, looked up if the request has its id; "" for an unknown id."""
    if ctx.version < TOPIC_ID_VERSION:
        return topic.name
    described = ctx.node.metadata.image.topic_by_id(topic.topic_id)
    return "" if described is None else described.name


def _known_partitions(
    topic: OffsetCommitRequestTopic,
    answers: Refused,
    ctx: RequestContext,
) -> TopicCommit:
    """The offsets of partitions that exist; unknown partitions are answered here."""
    image = ctx.node.metadata.image
    if ctx.version >= TOPIC_ID_VERSION:
        described = image.topic_by_id(topic.topic_id)
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
    else:
        described = image.topics.get(topic.name)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if described is None:
        name, topic_id, existing = topic.name, topic.topic_id, _NO_PARTITIONS
    else:
        name, topic_id, existing = described.name, described.topic_id, described.partitions
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    commits = []
    for partition in topic.partitions:
        if partition.partition_index not in existing:
            _add(answers, name, topic_id, partition.partition_index, unknown)
            continue
        commits.append(
            PartitionCommit(
                partition.partition_index,
                partition.committed_offset,
                partition.committed_leader_epoch,
                partition.committed_metadata,
            )
        )
    return TopicCommit(name, tuple(commits), topic_id)


def _add(
    answers: Refused,
    name: str,
    topic_id: bytes,
    partition: int,
    error: ErrorCode,
) -> None:
    answer = answers.get((name, topic_id))
    if answer is None:
        answer = answers[(name, topic_id)] = OffsetCommitResponseTopic(
            name=name, topic_id=topic_id, partitions=[]
        )
    answer.partitions.append(OffsetCommitResponsePartition(partition_index=partition, error_code=int(error)))

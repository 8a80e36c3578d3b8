"""TxnOffsetCommit (API key 28): commit a group's offsets with the transaction.

v1 throttling, v2 leader epochs, v3 flexible, and the group's member and generation (KIP-447), v4
TRANSACTION_ABORTABLE, v5 also adds the group to the transaction (transaction.version 2, KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_topics
from pykafka_broker.apis.needs import (
    on_group_of_request,
    on_topics,
    on_transactional_id_of_request,
)
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.apis.producing.verification import participation
from pykafka_broker.cluster.topic_names import OFFSETS_TOPIC
from pykafka_broker.coordinator.groups import refusals
from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.coordinator.groups.core.events import CommitResult, PartitionCommit, TopicCommit
from pykafka_broker.coordinator.transactions.add_or_verify import FirstWrite
from pykafka_broker.log.partition.transaction_guards import NO_GUARD
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from pykafka_broker.protocol.records.batch import NO_SEQUENCE
from pykafka_broker.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

#: Clients of earlier versions do not handle COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296).
FIRST_VERSION_WITH_LOAD_IN_PROGRESS = 2
FIRST_VERSION_WITH_TRANSACTION_ABORTABLE = 4
FIRST_VERSION_THAT_ADDS = 5

Answers = dict[str, TxnOffsetCommitResponseTopic]


def failed(request: TxnOffsetCommitRequest, error: KafkaError) -> TxnOffsetCommitResponse:
    """The answer to a request that failed as a whole."""
    answers: Answers = {}
    for topic in request.topics:
        for partition in topic.partitions:
            _add(answers, topic.name, partition.partition_index, error.code)
    return TxnOffsetCommitResponse(topics=list(answers.values()))


@handles(
    TxnOffsetCommitRequest,
    versions="0-5",
    needs=[
        on_transactional_id_of_request(AclOperation.WRITE),
        on_group_of_request(AclOperation.READ),
        on_topics(AclOperation.READ).asked_by_handler(),
    ],
    error_response=failed,
)
async def txn_offset_commit(request: TxnOffsetCommitRequest, ctx: RequestContext) -> TxnOffsetCommitResponse:
    """Offsets of topics that the client may not read, and of unknown partitions, are refused one by one; the
    coordinators decide on the rest together.
    """
    answers: Answers = {}
    commits = []
    hidden = denied_topics(ctx, AclOperation.READ, (topic.name for topic in request.topics))
    for topic in request.topics:
        if topic.name in hidden:
            for partition in topic.partitions:
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                _add(answers, topic.name, partition.partition_index, error)
        elif (commit := _known(topic, answers, ctx)).partitions:
            commits.append(commit)
    if commits:
        try:
            guard = await _guard(request, ctx)
        except KafkaError as error:
            _refuse(answers, commits, error.code)
        else:
            for name, _, partitions in await _committed(request, tuple(commits), guard, ctx):
                for index, error_code in partitions:
                    _add(answers, name, index, error_code)
    if ctx.version < FIRST_VERSION_WITH_LOAD_IN_PROGRESS:
        for answered in answers.values():
            for answer in answered.partitions:
                if answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    answer.error_code = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return TxnOffsetCommitResponse(topics=list(answers.values()))


async def _committed(
    request: TxnOffsetCommitRequest, topics: tuple[TopicCommit, ...], guard: int, ctx: RequestContext
) -> CommitResult:
    groups = ctx.node.groups
    return await groups.answer(
        request.group_id,
        lambda token: events.CommitTransactionalOffsets(
            token=token,
            now_ms=groups.now_ms(),
            group_id=request.group_id,
            topics=topics,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            guard=guard,
            member_id=request.member_id,
            generation=request.generation_id,
            group_instance_id=request.group_instance_id,
        ),
        refused=lambda error: refusals.commit(topics, error),
    )


async def _guard(request: TxnOffsetCommitRequest, ctx: RequestContext) -> int:
    """The guard to append under; the transaction coordinator verifies that the group is in the transaction.

    Raises:
        KafkaError: the group is not, or the coordinator does not answer.
    """
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    place = TopicPartition(OFFSETS_TOPIC, ctx.node.groups.partition_for(request.group_id))
    partition = ctx.node.partitions.led(*place)
    if partition is None:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)
    adds = ctx.version >= FIRST_VERSION_THAT_ADDS
    if not adds and not ctx.node.configs.current["transaction.partition.verification.enable"]:
        return NO_GUARD
    guard = partition.log.writer.start_verification(
        request.producer_id,
        request.producer_epoch,
        NO_SEQUENCE,
        bumps_epoch=adds,
        now_ms=ctx.node.clock.now_ms(),
    )
    if guard != NO_GUARD:
        write = FirstWrite(
            request.transactional_id, request.producer_id, request.producer_epoch, frozenset({place})
        )
        how = participation(ctx.version, FIRST_VERSION_WITH_TRANSACTION_ABORTABLE, FIRST_VERSION_THAT_ADDS)
        errors = await ctx.node.participation.ask(write, how, retries=False)
        if errors:
            error = errors[place]
            # The coordinator's broker did not answer: this error makes the client retry at the same broker.
            is_unanswered = error is ErrorCode.NETWORK_EXCEPTION
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_unanswered else error)
    return guard


def _known(topic: TxnOffsetCommitRequestTopic, answers: Answers, ctx: RequestContext) -> TopicCommit:
    """The offsets of partitions that exist; unknown partitions are answered here."""
    described = ctx.node.metadata.image.topics.get(topic.name)
    commits = []
    for partition in topic.partitions:
        if described is None or partition.partition_index not in described.partitions:
            _add(answers, topic.name, partition.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            continue
        commits.append(
            PartitionCommit(
                partition=partition.partition_index,
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=partition.committed_metadata,
            )
        )
    return TopicCommit(topic.name, tuple(commits))


def _refuse(answers: Answers, commits: list[TopicCommit], error: ErrorCode) -> None:
    for topic in commits:
        for commit in topic.partitions:
            _add(answers, topic.topic, commit.partition, error)


def _add(answers: Answers, topic: str, partition: int, error: ErrorCode) -> None:
    if topic not in answers:
        answers[topic] = TxnOffsetCommitResponseTopic(name=topic, partitions=[])
    answers[topic].partitions.append(
        TxnOffsetCommitResponsePartition(partition_index=partition, error_code=int(error))
    )

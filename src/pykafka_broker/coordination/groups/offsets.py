"""What is asked of committed offsets: to store, to read and to forget them, within transactions or not."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import NamedTuple

from pykafka_broker.coordination.groups.group_shards import GroupShards
from pykafka_broker.coordinator.group import events
from pykafka_broker.coordinator.group.events import (
    CommitResult,
    DeleteOffsetsResult,
    FetchResult,
    TopicCommit,
    TopicPartitions,
)
from pykafka_broker.coordinator.markers import Marker
from pykafka_broker.machine.shard import Prompt
from pykafka_broker.protocol.errors import ErrorCode, KafkaError


class GroupOffsets(NamedTuple):
    """One group of an OffsetFetch request; `topics` None asks for all."""

    group_id: str
    topics: tuple[TopicPartitions, ...] | None
    member_id: str | None = None
    member_epoch: int = -1


class Offsets:
    """The requests about offsets."""

    def __init__(self, shards: GroupShards) -> None:
        self._shards = shards

    def commit(
        self,
        *,
        version: int,
        group_id: str,
        topics: tuple[TopicCommit, ...],
        member_id: str = "",
        generation: int = -1,
        group_instance_id: str | None = None,
        retention_ms: int = -1,
    ) -> Prompt[CommitResult] | Awaitable[CommitResult]:
        """OffsetCommit; nearly always answered at once."""
        return self._shards.answer(
            group_id,
            lambda token: events.CommitOffsets(
                token,
                self._shards.now_ms(),
                version,
                group_id,
                topics,
                member_id,
                generation,
                group_instance_id,
                retention_ms,
            ),
            refused=lambda error: _all_refused(topics, error.code),
        )

    def commit_in_transaction(
        self,
        *,
        group_id: str,
        topics: tuple[TopicCommit, ...],
        producer_id: int,
        producer_epoch: int,
        guard: int,
        member_id: str = "",
        generation: int = -1,
        group_instance_id: str | None = None,
    ) -> Awaitable[CommitResult]:
        """TxnOffsetCommit, once the transaction coordinator has given its leave."""
        return self._shards.answer(
            group_id,
            lambda token: events.CommitTransactionalOffsets(
                token,
                self._shards.now_ms(),
                group_id,
                topics,
                producer_id,
                producer_epoch,
                guard,
                member_id,
                generation,
                group_instance_id,
            ),
            refused=lambda error: _all_refused(topics, error.code),
        )

    async def complete_transaction(self, partition: int, marker: Marker) -> ErrorCode:
        """Write a transaction's marker into a partition of `__consumer_offsets`."""
        try:
            error: ErrorCode = await self._shards.shard_of(partition).ask(
                lambda token: events.EndTransaction(token, marker)
            )
        except KafkaError as failure:
            # A transaction coordinator knows partitions and their leaders, and no other coordinators.
            if failure.code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
            return failure.code
        return error

    def fetch(self, group: GroupOffsets, *, require_stable: bool = False) -> Awaitable[FetchResult]:
        """OffsetFetch, for one of its groups."""
        return self._shards.answer(
            group.group_id,
            lambda token: events.FetchOffsets(
                token, group.group_id, group.topics, require_stable, group.member_id, group.member_epoch
            ),
            refused=_fetch_refused,
        )

    def delete(self, *, group_id: str, topics: tuple[TopicPartitions, ...]) -> Awaitable[DeleteOffsetsResult]:
        """OffsetDelete."""
        return self._shards.answer(
            group_id,
            lambda token: events.DeleteOffsets(token, group_id, topics),
            refused=lambda error: DeleteOffsetsResult(error.code),
        )


def _fetch_refused(error: KafkaError) -> FetchResult:
    # Consumers before 3.9 do not know what to do with COORDINATOR_NOT_AVAILABLE here.
    waits = error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    return FetchResult(ErrorCode.NOT_COORDINATOR if waits else error.code)


def _all_refused(topics: Iterable[TopicCommit], code: ErrorCode) -> CommitResult:
    """The answer to a commit that did not reach its group."""
    return tuple(
        (topic.topic, topic.topic_id, tuple((commit.partition, code) for commit in topic.partitions))
        for topic in topics
    )

"""Does the work of share groups: initializes, deletes and reads share states, and finds high watermarks.

The requests for all partitions of a `ShareWork` are sent at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Protocol, TypeVar, assert_never

from pykafka_broker.coordinator.groups.core.share.events import (
    DeleteShareState,
    EndOffsetsListed,
    ErrorsByPartition,
    InitializeShareState,
    ListEndOffsets,
    ReadShareSummary,
    ShareOutcome,
    ShareStateDeleted,
    ShareStateInitialized,
    ShareSummary,
    ShareSummaryRead,
    ShareWork,
)
from pykafka_broker.coordinator.share.core.events import StateResult, SummaryResult
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.topic_partition import SharePartitionKey

Result = TypeVar("Result")


class ShareGroupStates(Protocol):
    """The share coordinators of the cluster."""

    def initialize(
        self, key: SharePartitionKey, *, state_epoch: int, start_offset: int
    ) -> Awaitable[StateResult]:
        """Begin the state of a share partition; -1 leaves the start offset to the leader."""
        ...

    def delete(self, key: SharePartitionKey) -> Awaitable[StateResult]:
        """Forget a share partition."""
        ...

    def read_summary(self, key: SharePartitionKey) -> Awaitable[SummaryResult]:
        """The progress of the group in a share partition."""
        ...


#: For each (topic, partition): an error and the high watermark.
EndOffsets = Callable[[Iterable[tuple[str, int]]], Awaitable[Mapping[tuple[str, int], tuple[ErrorCode, int]]]]


class ShareWorker:
    """Event loop only."""

    def __init__(self, states: ShareGroupStates, end_offsets: EndOffsets, now_ms: Callable[[], int]) -> None:
        self._states = states
        self._end_offsets = end_offsets
        self._now_ms = now_ms

    async def outcome_of(self, work: ShareWork) -> ShareOutcome:
        """Do it; errors are in the outcome."""
        match work:
            case InitializeShareState():
                return await self._initialize(work)
            case DeleteShareState():
                return await self._delete(work)
            case ReadShareSummary():
                return await self._read_summary(work)
            case ListEndOffsets():
                return await self._list_end_offsets(work)
            case _:
                assert_never(work)

    async def _initialize(self, work: InitializeShareState) -> ShareOutcome:
        def initialize(topic_id: bytes, partition: int, start_offset: int) -> Awaitable[StateResult]:
            key = SharePartitionKey(work.group_id, topic_id, partition)
            return self._states.initialize(key, state_epoch=work.state_epoch, start_offset=start_offset)

        results = await _answers(
            (topic_id, partition, partial(initialize, topic_id, partition, start_offset))
            for topic_id, partitions in work.topics
            for partition, start_offset in partitions
        )
        return ShareStateInitialized(self._now_ms(), work, _errors(results))

    async def _delete(self, work: DeleteShareState) -> ShareOutcome:
        results = await _answers(
            (topic_id, partition, _about(self._states.delete, work.group_id, topic_id, partition))
            for topic_id, partitions in work.topics
            for partition in partitions
        )
        return ShareStateDeleted(self._now_ms(), work, _errors(results))

    async def _read_summary(self, work: ReadShareSummary) -> ShareOutcome:
        results = await _answers(
            (topic_id, partition, _about(self._states.read_summary, work.group_id, topic_id, partition))
            for _, topic_id, partitions in work.topics
            for partition in partitions
        )
        topics = (
            (topic_id, tuple(_summary(partition, result) for partition, result in told))
            for topic_id, told in results
        )
        return ShareSummaryRead(work, tuple(topics))

    async def _list_end_offsets(self, work: ListEndOffsets) -> ShareOutcome:
        ends = await self._end_offsets(work.partitions)
        return EndOffsetsListed(work, tuple((*place, *ends[place]) for place in work.partitions))


def _about(
    ask: Callable[[SharePartitionKey], Awaitable[Result]], group_id: str, topic_id: bytes, partition: int
) -> Callable[[], Awaitable[Result]]:
    return partial(ask, SharePartitionKey(group_id, topic_id, partition))


async def _answers(
    questions: Iterable[tuple[bytes, int, Callable[[], Awaitable[Result]]]],
) -> list[tuple[bytes, list[tuple[int, Result]]]]:
    """All answers, by topic id and by partition; each partition is asked about once."""
    asked: dict[bytes, dict[int, Callable[[], Awaitable[Result]]]] = {}
    for topic_id, partition, question in questions:
        asked.setdefault(topic_id, {}).setdefault(partition, question)
    places = [(topic_id, partition) for topic_id, partitions in asked.items() for partition in partitions]
    answers = await asyncio.gather(*(asked[topic_id][partition]() for topic_id, partition in places))
    results: dict[bytes, list[tuple[int, Result]]] = {}
    for (topic_id, partition), answer in zip(places, answers, strict=True):
        results.setdefault(topic_id, []).append((partition, answer))
    return list(results.items())


def _errors(
    results: Iterable[tuple[bytes, Iterable[tuple[int, StateResult]]]],
) -> tuple[tuple[bytes, ErrorsByPartition], ...]:
    return tuple(
        (topic_id, tuple(_error(partition, result) for partition, result in told))
        for topic_id, told in results
    )


def _error(partition: int, result: StateResult) -> tuple[int, ErrorCode, str | None]:
    if result.refusal is None:
        return partition, ErrorCode.NONE, None
    return partition, result.refusal.error, result.refusal.message


def _summary(partition: int, result: SummaryResult) -> ShareSummary:
    if result.refusal is not None:
        return ShareSummary(partition, result.refusal.error)
    return ShareSummary(
        partition,
        ErrorCode.NONE,
        result.start_offset,
        result.leader_epoch,
        result.delivery_complete_count,
    )

"""What a share coordinator, on any broker, can be asked about one share partition.

Each kind of question is a row: the event for the coordinator of this node, the parts of the request for one
on another broker (KIP-932, API keys 83 to 87), and how the answer is read from the response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from pykafka_broker.coordinator.share import refusals
from pykafka_broker.coordinator.share.core import events
from pykafka_broker.coordinator.share.core.batches import StateBatch
from pykafka_broker.coordinator.share.core.events import (
    Event,
    ReadResult,
    Refusal,
    StateResult,
    SummaryResult,
)
from pykafka_broker.coordinator.share.core.state import NO_COUNT, NO_EPOCH, NO_START_OFFSET
from pykafka_broker.coordinator.share.keys import coordinator_key
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, error_of
from pykafka_broker.protocol.messages import delete_share_group_state as deleting
from pykafka_broker.protocol.messages import initialize_share_group_state as initializing
from pykafka_broker.protocol.messages import read_share_group_state as reading
from pykafka_broker.protocol.messages import read_share_group_state_summary as summing
from pykafka_broker.protocol.messages import write_share_group_state as writing
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from pykafka_broker.system.named_tuple import NamedTuple


class _Answer(Protocol):
    @property
    def refusal(self) -> Refusal | None: ...


Answer = TypeVar("Answer", bound=_Answer)


class Question(NamedTuple):
    """The fields of all kinds of questions; each kind uses some of them."""

    key: SharePartitionKey
    state_epoch: int = NO_EPOCH
    leader_epoch: int = NO_EPOCH
    start_offset: int = NO_START_OFFSET
    delivery_complete_count: int = NO_COUNT
    batches: tuple[StateBatch, ...] = ()


class Kind(NamedTuple, Generic[Answer]):
    """A kind of question."""

    #: What is asked for, in the words of Kafka's messages.
    deed: str
    #: The answer with this refusal.
    refused: Callable[[Refusal], Answer]
    #: (token, now_ms, question, partitions of its topic) -> the event for the coordinator of this node.
    event: Callable[[int, int, Question, int], Event]
    #: The answer where no shard takes the event.
    not_here: Callable[[KafkaError], Answer]
    #: The types of the request, and of its topics.
    request: Callable[..., object]
    topic: Callable[..., object]
    #: The question in a request.
    partition: Callable[[Question], object]
    #: (the refusal, if there is one; the partition of a response) -> the answer.
    answer: Callable[[Refusal | None, Any], Answer]


def request_of(kind: Kind[Any], group_id: str, questions: Iterable[Question]) -> object:
    """The request that asks these questions about one group."""
    topics: dict[bytes, list[object]] = {}
    for question in questions:
        topics.setdefault(question.key.topic_id, []).append(kind.partition(question))
    return kind.request(
        group_id=group_id,
        topics=[kind.topic(topic_id=topic_id, partitions=asked) for topic_id, asked in topics.items()],
    )


def answers_in(kind: Kind[Answer], group_id: str, response: Any) -> dict[SharePartitionKey, Answer]:
    """The answers in a response about one group."""
    return {
        SharePartitionKey(group_id, topic.topic_id, each.partition): kind.answer(_refusal(each), each)
        for topic in response.results
        for each in topic.partitions
    }


def left_out(kind: Kind[Answer], question: Question) -> Answer:
    """The answer about a share partition that the response does not have."""
    text = f"Failed to {kind.deed} for share partition {coordinator_key(question.key)}"
    return kind.refused(Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, text))


def _refusal(result: Any) -> Refusal | None:
    error = error_of(result.error_code)
    return None if error is ErrorCode.NONE else Refusal(error, result.error_message or error.message)


# ---- the kinds ----


def _state_result(refusal: Refusal | None, _: Any) -> StateResult:
    return StateResult(refusal)


INITIALIZE: Kind[StateResult] = Kind(
    "initialize state",
    StateResult,
    lambda token, now_ms, asked, count: events.InitializeState(
        token, now_ms, asked.key, asked.state_epoch, asked.start_offset, count
    ),
    refusals.initialize,
    initializing.InitializeShareGroupStateRequest,
    initializing.InitializeStateData,
    lambda asked: initializing.PartitionData(
        partition=asked.key.partition, state_epoch=asked.state_epoch, start_offset=asked.start_offset
    ),
    _state_result,
)


def _read_result(refusal: Refusal | None, found: Any) -> ReadResult:
    if refusal is not None:
        return ReadResult(refusal)
    batches = tuple(
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state)
        for batch in found.state_batches
    )
    return ReadResult(None, found.state_epoch, found.start_offset, batches)


READ: Kind[ReadResult] = Kind(
    "read state",
    ReadResult,
    lambda token, now_ms, asked, count: events.ReadState(token, now_ms, asked.key, asked.leader_epoch, count),
    refusals.read,
    reading.ReadShareGroupStateRequest,
    reading.ReadStateData,
    lambda asked: reading.PartitionData(partition=asked.key.partition, leader_epoch=asked.leader_epoch),
    _read_result,
)


def _write_event(token: int, now_ms: int, asked: Question, partition_count: int) -> Event:
    return events.WriteState(
        token,
        now_ms,
        asked.key,
        asked.state_epoch,
        asked.leader_epoch,
        asked.start_offset,
        asked.delivery_complete_count,
        asked.batches,
        partition_count,
    )


def _write_partition(asked: Question) -> object:
    return writing.PartitionData(
        partition=asked.key.partition,
        state_epoch=asked.state_epoch,
        leader_epoch=asked.leader_epoch,
        start_offset=asked.start_offset,
        delivery_complete_count=asked.delivery_complete_count,
        state_batches=[
            writing.StateBatch(
                first_offset=batch.first_offset,
                last_offset=batch.last_offset,
                delivery_state=batch.delivery_state,
                delivery_count=batch.delivery_count,
            )
            for batch in asked.batches
        ],
    )


WRITE: Kind[StateResult] = Kind(
    "write state",
    StateResult,
    _write_event,
    refusals.write,
    writing.WriteShareGroupStateRequest,
    writing.WriteStateData,
    _write_partition,
    _state_result,
)

DELETE: Kind[StateResult] = Kind(
    "delete state",
    StateResult,
    lambda token, now_ms, asked, count: events.DeleteState(token, asked.key, count),
    refusals.delete,
    deleting.DeleteShareGroupStateRequest,
    deleting.DeleteStateData,
    lambda asked: deleting.PartitionData(partition=asked.key.partition),
    _state_result,
)


def _summary_result(refusal: Refusal | None, found: Any) -> SummaryResult:
    if refusal is not None:
        return SummaryResult(refusal)
    return SummaryResult(
        None, found.state_epoch, found.leader_epoch, found.start_offset, found.delivery_complete_count
    )


READ_SUMMARY: Kind[SummaryResult] = Kind(
    "read state summary",
    SummaryResult,
    lambda token, now_ms, asked, count: events.ReadSummary(token, asked.key, count),
    refusals.summary,
    summing.ReadShareGroupStateSummaryRequest,
    summing.ReadStateSummaryData,
    lambda asked: summing.PartitionData(partition=asked.key.partition, leader_epoch=asked.leader_epoch),
    _summary_result,
)

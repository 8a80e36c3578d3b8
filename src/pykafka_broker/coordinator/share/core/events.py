"""The events of the share partitions of a shard, the answers to the callers, and the work that is started.

Requests are those of the protocol for one share partition. `partition_count` is the number of partitions that
its topic has in the cluster's metadata, 0 if there is no such topic.
"""

from __future__ import annotations

from typing import Union

from pykafka_broker.coordinator.share.core.batches import StateBatch
from pykafka_broker.coordinator.share.core.state import NO_COUNT
from pykafka_broker.machine.step import Loaded as Loaded
from pykafka_broker.machine.step import TimerFired as TimerFired
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.topic_partition import SharePartitionKey
from pykafka_broker.system.named_tuple import NamedTuple


class InitializeState(NamedTuple):
    """A share group begins to consume a partition, or begins again. Answered with a `StateResult`."""

    token: int
    now_ms: int
    key: SharePartitionKey
    state_epoch: int
    start_offset: int
    partition_count: int


class ReadState(NamedTuple):
    """A new leader reads the state; its epoch fences older leaders. Answered with a `ReadResult`."""

    token: int
    now_ms: int
    key: SharePartitionKey
    leader_epoch: int
    partition_count: int


class WriteState(NamedTuple):
    """The leader of a partition stores changes. Answered with a `StateResult`."""

    token: int
    now_ms: int
    key: SharePartitionKey
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]
    partition_count: int


class DeleteState(NamedTuple):
    """A share group is deleted, or forgets a topic. Answered with a `StateResult`."""

    token: int
    key: SharePartitionKey
    partition_count: int


class ReadSummary(NamedTuple):
    """The progress of the group in this partition. Answered with a `SummaryResult`."""

    token: int
    key: SharePartitionKey
    partition_count: int


class TopicsDeleted(NamedTuple):
    """Topics were deleted from the cluster: their share partitions are forgotten."""

    topic_ids: frozenset[bytes]


Event = Union[
    InitializeState,
    ReadState,
    WriteState,
    DeleteState,
    ReadSummary,
    TopicsDeleted,
    Loaded,
    TimerFired,
]


# ---- answers ----


class Refusal(NamedTuple):
    """Why a request is not carried out; the message stands in the answer."""

    error: ErrorCode
    message: str


class StateResult(NamedTuple):
    """The answer to InitializeState, WriteState and DeleteState: done, or why not."""

    refusal: Union[Refusal, None] = None


class ReadResult(NamedTuple):
    """The answer to ReadState; with a refusal the other fields say nothing."""

    refusal: Union[Refusal, None] = None
    state_epoch: int = 0
    start_offset: int = 0
    batches: tuple[StateBatch, ...] = ()


class SummaryResult(NamedTuple):
    """The answer to ReadSummary; with a refusal the other fields say nothing."""

    refusal: Union[Refusal, None] = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = NO_COUNT


# ---- work that is started ----


class PruneLog(NamedTuple):
    """Delete the records of the shard's log before an offset."""

    before_offset: int

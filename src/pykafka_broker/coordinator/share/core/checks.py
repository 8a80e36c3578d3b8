"""Why a request is refused, in the order of the checks of Apache Kafka's `ShareCoordinatorShard`.

A share partition must have been initialised before its leader reads or writes it. An epoch lower than a
recorded one is fenced; -1 is not checked. The topic is checked last.

State batches that no leader writes are refused after that. Apache Kafka loops without end on a batch that
ends before it begins, and the time for overlapping batches grows with the square of their number.
"""

from __future__ import annotations

from pykafka_broker.coordinator.share.core.batches import StateBatch
from pykafka_broker.coordinator.share.core.events import (
    DeleteState,
    InitializeState,
    ReadState,
    ReadSummary,
    Refusal,
    WriteState,
)
from pykafka_broker.coordinator.share.core.state import NO_EPOCH, ShareEntry
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.topic_partition import SharePartitionKey

NEGATIVE_PARTITION = Refusal(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")
READ_UNINITIALIZED = Refusal(
    ErrorCode.INVALID_REQUEST, "Read operation on uninitialized share partition not allowed."
)
WRITE_UNINITIALIZED = Refusal(
    ErrorCode.INVALID_REQUEST, "Write operation on uninitialized share partition not allowed."
)
#: The most batches in one request: twice the records that a share partition may have in flight.
MAX_STATE_BATCHES = 20_000
#: The most batches of one request that may contain one offset. Leaders send batches that do not overlap.
MAX_OVERLAPS = 10
INVALID_STATE_BATCHES = Refusal(ErrorCode.INVALID_REQUEST, "The state batches are not valid.")


def why_not_initialize(entry: ShareEntry | None, event: InitializeState) -> Refusal | None:
    """The refusal of InitializeState; None if it may go on."""
    if event.key.partition < 0:
        return NEGATIVE_PARTITION
    if entry is not None and is_fenced(event.state_epoch, entry.highest_state_epoch):
        return _general(ErrorCode.FENCED_STATE_EPOCH)
    return _why_no_topic(event.key, event.partition_count)


def why_not_read(entry: ShareEntry | None, event: ReadState) -> Refusal | None:
    """The refusal of ReadState; None if it may go on."""
    if event.key.partition < 0:
        return NEGATIVE_PARTITION
    if entry is None:
        return READ_UNINITIALIZED
    if is_fenced(event.leader_epoch, entry.highest_leader_epoch):
        return _general(ErrorCode.FENCED_LEADER_EPOCH)
    return _why_no_topic(event.key, event.partition_count)


def why_not_write(entry: ShareEntry | None, event: WriteState) -> Refusal | None:
    """The refusal of WriteState; None if it may go on."""
    if event.key.partition < 0:
        return NEGATIVE_PARTITION
    if entry is None:
        return WRITE_UNINITIALIZED
    if is_fenced(event.leader_epoch, entry.highest_leader_epoch):
        return _general(ErrorCode.FENCED_LEADER_EPOCH)
    if is_fenced(event.state_epoch, entry.highest_state_epoch):
        return _general(ErrorCode.FENCED_STATE_EPOCH)
    refusal = _why_no_topic(event.key, event.partition_count)
    return refusal if refusal is not None else _why_not_laid(event.batches)


def why_unknown(event: DeleteState | ReadSummary) -> Refusal | None:
    """The refusal of DeleteState and ReadSummary; None if they may go on."""
    if event.key.partition < 0:
        return NEGATIVE_PARTITION
    return _why_no_topic(event.key, event.partition_count)


def is_fenced(requested_epoch: int, highest_epoch: int) -> bool:
    """Whether a request is of an earlier epoch than the highest; one without an epoch is not."""
    return requested_epoch != NO_EPOCH and highest_epoch > requested_epoch


def _why_no_topic(key: SharePartitionKey, partition_count: int) -> Refusal | None:
    return None if key.partition < partition_count else _general(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _why_not_laid(batches: tuple[StateBatch, ...]) -> Refusal | None:
    is_valid = len(batches) <= MAX_STATE_BATCHES and all(
        batch.first_offset <= batch.last_offset for batch in batches
    )
    return None if is_valid and _overlaps(batches) <= MAX_OVERLAPS else INVALID_STATE_BATCHES


def _overlaps(batches: tuple[StateBatch, ...]) -> int:
    """The most batches that contain one offset; the number of batches if that is within the limit."""
    if len(batches) <= MAX_OVERLAPS:
        return len(batches)
    ends = sorted(batch.last_offset for batch in batches)
    ended = most = 0
    for begun, first_offset in enumerate(sorted(batch.first_offset for batch in batches), 1):
        while ends[ended] < first_offset:
            ended += 1
        most = max(most, begun - ended)
    return most


def _general(error: ErrorCode) -> Refusal:
    return Refusal(error, error.message)

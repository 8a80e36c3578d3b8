"""The requests of the group coordinator and of the leaders of partitions, for one share partition each.

A write does not change the epochs: the last Initialize has set the state epoch, the last read the leader
epoch. After `updates_per_snapshot` updates a snapshot is written instead of an update.
"""

from __future__ import annotations

from pykafka_broker.coordinator.share.core.batches import StateBatch, combined
from pykafka_broker.coordinator.share.core.checks import (
    why_not_initialize,
    why_not_read,
    why_not_write,
    why_unknown,
)
from pykafka_broker.coordinator.share.core.events import (
    DeleteState,
    InitializeState,
    ReadResult,
    ReadState,
    ReadSummary,
    StateResult,
    SummaryResult,
    WriteState,
)
from pykafka_broker.coordinator.share.core.records import Record, Snapshot, Update
from pykafka_broker.coordinator.share.core.state import (
    NO_COUNT,
    NO_EPOCH,
    NO_START_OFFSET,
    ShareEntry,
    Shares,
    ShareState,
)
from pykafka_broker.coordinator.share.core.turn import Log, answer, written
from pykafka_broker.machine.step import Reply, Step
from pykafka_broker.protocol.topic_partition import SharePartitionKey

#: The epochs of a share partition that has had none yet.
FIRST_EPOCH = 0


def on_initialize(state: Shares, event: InitializeState, log: Log) -> Step[Shares]:
    """Initialize the state of a share partition, also an existing one: without batches or a leader."""
    entry = state.by_key.get(event.key)
    refusal = why_not_initialize(entry, event)
    if refusal is not None:
        return answer(state, event.token, StateResult(refusal))
    begun = ShareState(
        snapshot_epoch=0 if entry is None else entry.state.snapshot_epoch + 1,
        state_epoch=event.state_epoch,
        leader_epoch=FIRST_EPOCH,
        start_offset=event.start_offset,
        delivery_complete_count=NO_COUNT if event.start_offset == NO_START_OFFSET else 0,
        batches=(),
        create_timestamp_ms=event.now_ms,
        write_timestamp_ms=event.now_ms,
    )
    return written(state, log, [Snapshot(event.key, begun)], Reply(event.token, StateResult()))


def on_read(state: Shares, event: ReadState, log: Log) -> Step[Shares]:
    """Answer with the state; the epoch of a new leader is recorded first."""
    entry = state.by_key.get(event.key)
    refusal = why_not_read(entry, event)
    if entry is None or refusal is not None:
        return answer(state, event.token, ReadResult(refusal))
    found = entry.state
    result = ReadResult(None, found.state_epoch, found.start_offset, found.batches)
    if event.leader_epoch in (NO_EPOCH, entry.highest_leader_epoch):
        return answer(state, event.token, result)
    record = _changed(
        event.key,
        entry,
        log,
        now_ms=event.now_ms,
        leader_epoch=event.leader_epoch,
        start_offset=found.start_offset,
        delivery_complete_count=found.delivery_complete_count,
        batches=(),
    )
    return written(state, log, [record], Reply(event.token, result))


def on_write(state: Shares, event: WriteState, log: Log) -> Step[Shares]:
    """Apply changes to the state."""
    entry = state.by_key.get(event.key)
    refusal = why_not_write(entry, event)
    if entry is None or refusal is not None:
        return answer(state, event.token, StateResult(refusal))
    record = _changed(
        event.key,
        entry,
        log,
        now_ms=event.now_ms,
        leader_epoch=entry.state.leader_epoch,
        start_offset=event.start_offset,
        delivery_complete_count=event.delivery_complete_count,
        batches=event.batches,
    )
    return written(state, log, [record], Reply(event.token, StateResult()))


def on_delete(state: Shares, event: DeleteState, log: Log) -> Step[Shares]:
    """Forget a share partition; it is no error if nothing is known of it."""
    refusal = why_unknown(event)
    if refusal is not None or event.key not in state.by_key:
        return answer(state, event.token, StateResult(refusal))
    return written(state, log, [Snapshot(event.key, None)], Reply(event.token, StateResult()))


def on_read_summary(state: Shares, event: ReadSummary) -> Step[Shares]:
    """The group's progress, for administrators; without state there is no start offset."""
    refusal = why_unknown(event)
    if refusal is not None:
        return answer(state, event.token, SummaryResult(refusal))
    entry = state.by_key.get(event.key)
    if entry is None:
        return answer(
            state,
            event.token,
            SummaryResult(None, FIRST_EPOCH, FIRST_EPOCH, NO_START_OFFSET, NO_COUNT),
        )
    found = entry.state
    result = SummaryResult(
        None, found.state_epoch, found.leader_epoch, found.start_offset, found.delivery_complete_count
    )
    return answer(state, event.token, result)


def _changed(
    key: SharePartitionKey,
    entry: ShareEntry,
    log: Log,
    *,
    now_ms: int,
    leader_epoch: int,
    start_offset: int,
    delivery_complete_count: int,
    batches: tuple[StateBatch, ...],
) -> Record:
    """The record of a change: an update, or a snapshot if one is due.

    The batches of one request may overlap each other; the record's do not.
    """
    before = entry.state
    if entry.update_count < log.updates_per_snapshot:
        laid = combined((), batches, start_offset)
        return Update(key, before.snapshot_epoch, leader_epoch, start_offset, delivery_complete_count, laid)
    start_offset = before.start_offset if start_offset == NO_START_OFFSET else start_offset
    snapshot = ShareState(
        snapshot_epoch=before.snapshot_epoch + 1,
        state_epoch=before.state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=delivery_complete_count,
        batches=combined(before.batches, batches, start_offset),
        create_timestamp_ms=now_ms,
        write_timestamp_ms=now_ms,
    )
    return Snapshot(key, snapshot)

"""Work without a request: snapshots of idle share partitions, cuts of the log, deleted topics.

The records before the newest snapshots of all share partitions are deleted at an interval. An idle share
partition would keep all later records, so it also gets a new snapshot at an interval. Both happen only while
share groups are enabled.
"""

from __future__ import annotations

from pykafka_broker.coordinator.share.core.events import Loaded, PruneLog, TimerFired, TopicsDeleted
from pykafka_broker.coordinator.share.core.records import Record, Snapshot
from pykafka_broker.coordinator.share.core.state import ShareCoordinatorConfig, Shares, ShareState
from pykafka_broker.coordinator.share.core.turn import Log, written
from pykafka_broker.machine.step import AT_ONCE_MS, Effect, SetTimer, Start, Step
from pykafka_broker.system.named_tuple import NamedTuple

COLD_TIMER = ("snapshot idle share partitions",)
PRUNE_TIMER = ("prune the log",)
#: Idle share partitions get their snapshots in batches of about this size.
COLD_BATCH_BYTES = 256 * 1024
#: The most bytes of a snapshot without the group's name, and of one state batch.
_SNAPSHOT_BYTES, _STATE_BATCH_BYTES = 120, 20


class _MoreCold(NamedTuple):
    """The timer key for snapshots that did not fit into one batch: those not written since `latest_ms`."""

    latest_ms: int


def on_loaded(state: Shares, event: Loaded, config: ShareCoordinatorConfig) -> Step[Shares]:
    """Start the timers of snapshots and cuts."""
    return Step(state, effects=(_next_cold(event.now_ms, config), _next_prune(event.now_ms, config)))


def on_timer(state: Shares, event: TimerFired, log: Log, config: ShareCoordinatorConfig) -> Step[Shares]:
    """Write the snapshots that are due, or have the log cut."""
    if event.key == COLD_TIMER:
        # If this timer wrote all the last snapshots, new ones would not let the log be cut further.
        if not config.is_enabled or all(_is_idle(entry.state) for entry in state.by_key.values()):
            return Step(state, effects=(_next_cold(event.now_ms, config),))
        latest_ms = event.now_ms - config.cold_partition_snapshot_interval_ms
        return _snapshot_cold(state, event.now_ms, latest_ms, log, config)
    if isinstance(event.key, _MoreCold):
        return _snapshot_cold(state, event.now_ms, event.key.latest_ms, log, config)
    assert event.key == PRUNE_TIMER, event.key
    effects: list[Effect] = [_next_prune(event.now_ms, config)]
    offset = state.redundant_offset()
    if config.is_enabled and offset is not None:
        effects.append(Start(PruneLog(offset)))
    return Step(state, effects=tuple(effects))


def on_topics_deleted(state: Shares, event: TopicsDeleted, log: Log) -> Step[Shares]:
    """Forget the share partitions of deleted topics."""
    records: list[Record] = [Snapshot(key, None) for key in state.by_key if key.topic_id in event.topic_ids]
    return written(state, log, records)


def _next_cold(now_ms: int, config: ShareCoordinatorConfig) -> SetTimer:
    return SetTimer(COLD_TIMER, now_ms + config.cold_partition_snapshot_interval_ms)


def _next_prune(now_ms: int, config: ShareCoordinatorConfig) -> SetTimer:
    return SetTimer(PRUNE_TIMER, now_ms + config.state_topic_prune_interval_ms)


def _snapshot_cold(
    state: Shares, now_ms: int, latest_ms: int, log: Log, config: ShareCoordinatorConfig
) -> Step[Shares]:
    """Write new snapshots of share partitions whose last one is from `latest_ms` or earlier."""
    records: list[Record] = []
    size = 0
    for key, entry in state.by_key.items():
        before = entry.state
        if before.write_timestamp_ms > latest_ms:
            continue
        if size > COLD_BATCH_BYTES:
            return written(state, log, records, SetTimer(_MoreCold(latest_ms), AT_ONCE_MS))
        snapshot = before._replace(snapshot_epoch=before.snapshot_epoch + 1, write_timestamp_ms=now_ms)
        records.append(Snapshot(key, snapshot))
        size += _SNAPSHOT_BYTES + len(key.group_id) + _STATE_BATCH_BYTES * len(before.batches)
    return written(state, log, records, _next_cold(now_ms, config))


def _is_idle(state: ShareState) -> bool:
    """Whether the last snapshot was written because the share partition was idle."""
    return state.create_timestamp_ms != state.write_timestamp_ms

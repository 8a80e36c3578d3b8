"""Timers: abort timed out transactions, and forget unused transactional ids.

Both run at fixed intervals, as in Kafka, so a transaction may last its timeout plus an interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from pykafka_broker.coordinator.transactions.core.ending import fence_and_abort
from pykafka_broker.coordinator.transactions.core.events import FindProducerId, Loaded, TimerFired
from pykafka_broker.coordinator.transactions.core.records import Record, metadata_record, tombstone
from pykafka_broker.coordinator.transactions.core.state import (
    NO_TIMEOUT_MS,
    TransactionConfig,
    TransactionMetadata,
    Transactions,
    TransactionState,
)
from pykafka_broker.coordinator.transactions.core.turn import markers_of
from pykafka_broker.machine.step import AT_ONCE_MS, Effect, SetTimer, Start, Step
from pykafka_broker.protocol.records.batch import NO_PRODUCER_ID

ABORT_TIMER = ("abort timed out transactions",)
EXPIRY_TIMER = ("forget unused ids",)
#: The most transactions aborted at once, and about the most bytes of their records: they share one batch of
#: the log, which refuses a batch larger than `max.message.bytes`.
MAX_ABORTED_AT_ONCE = 100
MAX_ABORTED_BYTES = 256 * 1024
#: The bytes of a record beside its names, and of a partition beside its topic's name.
_RECORD_BYTES, _PARTITION_BYTES = 100, 10
#: The most unused ids forgotten in one slice, which takes 2 ms.
MAX_FORGOTTEN_AT_ONCE = 1_000


def on_loaded(state: Transactions, event: Loaded, config: TransactionConfig) -> Step[Transactions]:
    """Finish decided transactions, and start both timers."""
    unfinished = [markers_of(metadata) for metadata in state.by_id.values() if metadata.state.is_decided]
    timers = (_next_abort(event.now_ms, config), _next_expiry(event.now_ms, config))
    return Step(state, effects=(*unfinished, *timers))


def on_timer(state: Transactions, event: TimerFired, config: TransactionConfig) -> Step[Transactions]:
    if event.key == ABORT_TIMER:
        return _abort_timed_out(state, event.now_ms, config)
    assert event.key == EXPIRY_TIMER, event.key
    return _forget_unused(state, event.now_ms, config)


def _next_abort(now_ms: int, config: TransactionConfig) -> SetTimer:
    return SetTimer(ABORT_TIMER, now_ms + config.transaction_abort_timed_out_interval_ms)


def _next_expiry(now_ms: int, config: TransactionConfig) -> SetTimer:
    return SetTimer(EXPIRY_TIMER, now_ms + config.transaction_remove_expired_interval_ms)


def _abort_timed_out(state: Transactions, now_ms: int, config: TransactionConfig) -> Step[Transactions]:
    overdue = [metadata for metadata in state.by_id.values() if _is_overdue(metadata, now_ms)]
    aborted: list[TransactionMetadata] = []
    effects: list[Effect] = []
    taken = _that_fit(overdue[:MAX_ABORTED_AT_ONCE])
    for metadata in overdue[:taken]:
        after = fence_and_abort(metadata, now_ms, config, NO_PRODUCER_ID)
        if after is None:
            effects.append(
                Start(
                    FindProducerId(metadata.transactional_id, metadata.producer_id, metadata.producer_epoch)
                )
            )
        else:
            aborted.append(after)
            effects.append(markers_of(after))
    has_more = len(overdue) > taken
    effects.append(SetTimer(ABORT_TIMER, now_ms) if has_more and aborted else _next_abort(now_ms, config))
    by_id = state.by_id.with_changes({metadata.transactional_id: metadata for metadata in aborted})
    records = tuple(metadata_record(metadata, config.transaction_version) for metadata in aborted)
    return Step(Transactions(by_id), records, tuple(effects))


def _that_fit(overdue: Sequence[TransactionMetadata]) -> int:
    """How many of these transactions are aborted in one batch: at least one, if there is one."""
    size_bytes = 0
    for count, metadata in enumerate(overdue, 1):
        size_bytes += _RECORD_BYTES + len(metadata.transactional_id)
        size_bytes += sum(_PARTITION_BYTES + len(each.topic) for each in metadata.partitions)
        if size_bytes >= MAX_ABORTED_BYTES:
            return count
    return len(overdue)


def _is_overdue(metadata: TransactionMetadata, now_ms: int) -> bool:
    return (
        metadata.state is TransactionState.ONGOING
        and metadata.timeout_ms != NO_TIMEOUT_MS
        and metadata.start_ms + metadata.timeout_ms < now_ms
    )


def _forget_unused(state: Transactions, now_ms: int, config: TransactionConfig) -> Step[Transactions]:
    latest_ms = now_ms - config.transactional_id_expiration_ms
    all_unused = (
        transactional_id
        for transactional_id, metadata in state.by_id.items()
        if metadata.state.is_over and metadata.last_update_ms <= latest_ms
    )
    unused = list(islice(all_unused, MAX_FORGOTTEN_AT_ONCE))
    records: tuple[Record, ...] = tuple(tombstone(transactional_id) for transactional_id in unused)
    left = Transactions(state.by_id.with_changes({}, unused)) if unused else state
    may_have_more = len(unused) == MAX_FORGOTTEN_AT_ONCE
    timer = SetTimer(EXPIRY_TIMER, AT_ONCE_MS) if may_have_more else _next_expiry(now_ms, config)
    return Step(left, records, (timer,))

"""The entry into the core: hands each event to the file that handles it."""

from __future__ import annotations

from typing import assert_never

from pykafka_broker.coordinator.transactions.core import admin, ending, init_producer_id, partitions, timers
from pykafka_broker.coordinator.transactions.core.events import (
    AbortTimedOut,
    AddPartitions,
    DescribeTransaction,
    EndTransaction,
    Event,
    InitProducerId,
    ListTransactions,
    Loaded,
    MarkersWritten,
    TimerFired,
    VerifyPartitions,
)
from pykafka_broker.coordinator.transactions.core.state import TransactionConfig, Transactions
from pykafka_broker.machine.step import Step


def transition(state: Transactions, event: Event, config: TransactionConfig) -> Step[Transactions]:
    """Handle `event`; the frequent events come first."""
    match event:
        case AddPartitions():
            return partitions.on_add_partitions(state, event, config)
        case VerifyPartitions():
            return partitions.on_verify_partitions(state, event)
        case EndTransaction():
            return ending.on_end(state, event, config)
        case MarkersWritten():
            return ending.on_markers_written(state, event, config)
        case InitProducerId():
            return init_producer_id.on_init_producer_id(state, event, config)
        case TimerFired():
            return timers.on_timer(state, event, config)
        case AbortTimedOut():
            return ending.on_abort_timed_out(state, event, config)
        case DescribeTransaction():
            return admin.on_describe(state, event)
        case ListTransactions():
            return admin.on_list(state, event)
        case Loaded():
            return timers.on_loaded(state, event, config)
        case _:
            assert_never(event)

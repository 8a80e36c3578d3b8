"""The entry into the core: hands each event to the file that handles it."""

from __future__ import annotations

from typing import assert_never

from pykafka_broker.coordinator.share.core import housekeeping, requests
from pykafka_broker.coordinator.share.core.events import (
    DeleteState,
    Event,
    InitializeState,
    Loaded,
    ReadState,
    ReadSummary,
    TimerFired,
    TopicsDeleted,
    WriteState,
)
from pykafka_broker.coordinator.share.core.state import ShareCoordinatorConfig, Shares
from pykafka_broker.coordinator.share.core.turn import Log
from pykafka_broker.machine.step import Step


def transition(state: Shares, event: Event, config: ShareCoordinatorConfig, end_offset: int) -> Step[Shares]:
    """Handle `event`; the frequent events come first. `end_offset` is that of the next record in the log."""
    log = Log(end_offset, config.snapshot_update_records_per_snapshot)
    match event:
        case WriteState():
            return requests.on_write(state, event, log)
        case ReadState():
            return requests.on_read(state, event, log)
        case ReadSummary():
            return requests.on_read_summary(state, event)
        case InitializeState():
            return requests.on_initialize(state, event, log)
        case DeleteState():
            return requests.on_delete(state, event, log)
        case TimerFired():
            return housekeeping.on_timer(state, event, log, config)
        case TopicsDeleted():
            return housekeeping.on_topics_deleted(state, event, log)
        case Loaded():
            return housekeeping.on_loaded(state, event, config)
        case _:
            assert_never(event)

"""The entry into the core: hands each event to the file that handles it."""

from __future__ import annotations

from typing import assert_never

from pykafka_broker.machine.step import Step
from pykafka_broker.share.core import acknowledge, acquire, fetching, loading, release, start_offset, writing
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import (
    Acknowledge,
    Acquire,
    BeginFetch,
    EndFetch,
    Event,
    Fence,
    Initialize,
    LogStartMoved,
    ReleaseMember,
    StartOffsetFound,
    StateRead,
    TimerFired,
    WriteDone,
)
from pykafka_broker.share.core.state import SharePartition


def transition(state: SharePartition, event: Event, config: ShareConfig) -> Step[SharePartition]:
    """Handle `event`; the frequent events come first."""
    match event:
        case Acknowledge():
            return acknowledge.on_acknowledge(state, event, config)
        case WriteDone():
            return writing.on_write_done(state, event, config)
        case BeginFetch():
            return fetching.on_begin_fetch(state, event, config)
        case Acquire():
            return acquire.on_acquire(state, event, config)
        case EndFetch():
            return fetching.on_end_fetch(state, event)
        case TimerFired():
            return release.on_timer(state, event, config)
        case ReleaseMember():
            return release.on_release_member(state, event, config)
        case LogStartMoved():
            return start_offset.on_log_start_moved(state, event, config)
        case Initialize():
            return loading.on_initialize(state, event)
        case StateRead():
            return loading.on_state_read(state, event, config)
        case StartOffsetFound():
            return loading.on_start_offset_found(state, event)
        case Fence():
            return loading.on_fence(state)
        case _:
            assert_never(event)

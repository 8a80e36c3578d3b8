"""Reads the state from the share coordinator when the first request comes to the leader.

As in Kafka, the first request gets the outcome, and others get LEADER_NOT_AVAILABLE meanwhile. A share
partition that could not be loaded stays failed; the shell drops it, and the next request makes a new one.
"""

from __future__ import annotations

from typing import Optional

from pykafka_broker.machine.step import Reply, Start, Step
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.share.core.batch import whole
from pykafka_broker.share.core.config import ShareConfig
from pykafka_broker.share.core.events import (
    OK,
    FindStartOffset,
    Initialize,
    ReadPersistedState,
    Result,
    StartOffsetFound,
    StateRead,
)
from pykafka_broker.share.core.in_flight import InFlightState
from pykafka_broker.share.core.start_offset import move_behind_done
from pykafka_broker.share.core.state import UNINITIALIZED_START_OFFSET, GapWindow, Phase, SharePartition
from pykafka_broker.share.core.turn import Turn

_REFUSALS = {
    Phase.FAILED: Result(ErrorCode.UNKNOWN_SERVER_ERROR, "Share partition failed to load"),
    Phase.INITIALIZING: Result(ErrorCode.LEADER_NOT_AVAILABLE, "Share partition is already initializing"),
    Phase.FENCED: Result(ErrorCode.LEADER_NOT_AVAILABLE, "Share partition is fenced"),
}
_BROKEN = Result(ErrorCode.UNKNOWN_SERVER_ERROR, "Failed to initialize the share partition")

_RETRIED_LATER = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
_FENCED = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH})
_AS_THEY_ARE = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
_NOT_FOR_CLIENTS = frozenset({ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_VERSION})


def on_initialize(state: SharePartition, event: Initialize) -> Step[SharePartition]:
    """The first request starts the read of the state."""
    if state.phase is Phase.EMPTY:
        opening = state._replace(phase=Phase.INITIALIZING, opener=event.token)
        return Step(opening, effects=(Start(ReadPersistedState()),))
    return Step(state, effects=(Reply(event.token, _REFUSALS.get(state.phase, OK)),))


def on_state_read(state: SharePartition, event: StateRead, config: ShareConfig) -> Step[SharePartition]:
    """Rebuild the in-flight batches; a group without state looks for its start offset first."""
    if state.phase is not Phase.INITIALIZING:
        return Step(state)
    if event.error is not ErrorCode.NONE:
        return _opened(state, Phase.FAILED, told(event.error, event.message))
    if event.start_offset == UNINITIALIZED_START_OFFSET:
        return Step(state._replace(state_epoch=event.state_epoch), effects=(Start(FindStartOffset()),))
    turn = Turn(state._replace(state_epoch=event.state_epoch), config)
    turn.start_offset = turn.end_offset = event.start_offset
    gap: Optional[int] = None
    expected = event.start_offset
    for found in event.batches:
        if found.first_offset < expected or found.last_offset < found.first_offset:
            return _opened(state, Phase.FAILED, _BROKEN)
        if gap is None and found.first_offset > expected:
            gap = expected
        batch = whole(
            found.first_offset, found.last_offset, InFlightState(found.delivery, found.delivery_count)
        )
        turn.batches.append(batch)
        if batch.state.is_done:
            turn.delivery_complete_count += batch.size
        expected = found.last_offset + 1
    if turn.batches:
        turn.look_for_available = True
        turn.end_offset = expected - 1
        if gap is not None:
            turn.gap_window = GapWindow(gap, turn.end_offset)
        move_behind_done(turn)
    return _opened(turn.step().state, Phase.ACTIVE, OK)


def on_start_offset_found(state: SharePartition, event: StartOffsetFound) -> Step[SharePartition]:
    """Begin where `share.auto.offset.reset` says; the offset is written with the first states."""
    if state.phase is not Phase.INITIALIZING:
        return Step(state)
    if event.error is not ErrorCode.NONE:
        return _opened(state, Phase.FAILED, Result(event.error))
    begun = state._replace(start_offset=event.offset, end_offset=event.offset)
    return _opened(begun, Phase.ACTIVE, OK)


def _opened(state: SharePartition, phase: Phase, result: Result) -> Step[SharePartition]:
    effects = () if state.opener is None else (Reply(state.opener, result),)
    return Step(state._replace(phase=phase, opener=None), effects=effects)


def on_fence(state: SharePartition) -> Step[SharePartition]:
    """Nothing is acquired any more; the shell drops the share partition."""
    return _opened(state, Phase.FENCED, _REFUSALS[Phase.FENCED])


def told(error: ErrorCode, message: Optional[str]) -> Result:
    """The error that a client gets for an error of the share coordinator."""
    if error in _RETRIED_LATER:
        return Result(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
    if error in _FENCED:
        return Result(ErrorCode.NOT_LEADER_OR_FOLLOWER, message)
    if error in _AS_THEY_ARE:
        return Result(error, message)
    if error in _NOT_FOR_CLIENTS:
        return Result(ErrorCode.UNKNOWN_SERVER_ERROR, "Unable to complete operation due to server error.")
    return Result(ErrorCode.UNKNOWN_SERVER_ERROR, message)

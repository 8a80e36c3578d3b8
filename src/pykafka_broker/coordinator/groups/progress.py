"""Logs the progress of classic groups from one generation to the next."""

from __future__ import annotations

import logging

from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Phase
from pykafka_broker.coordinator.groups.core.events import Event
from pykafka_broker.coordinator.groups.core.state import Groups

logger = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")


def log_progress(before: Groups, event: Event, after: Groups) -> None:
    """Log it if `event` has brought its classic group into another state."""
    group_id = _group_of(event)
    if group_id is None:
        return
    group, was = after.classic(group_id), before.classic(group_id)
    if group is not None and (was is None or group.phase is not was.phase):
        _log_phase(group, event)


def _group_of(event: Event) -> str | None:
    """The group whose membership `event` may change."""
    match event:
        case events.Heartbeat() | events.CommitOffsets() | events.FetchOffsets():
            return None
        case events.ConsumerGroupHeartbeat():
            return event.group_id
        case events.JoinGroup() | events.SyncGroup() | events.LeaveGroup():
            return event.group_id
        case events.TimerFired(key=(_, str(group_id), *_)):
            return group_id
        case _:
            return None


def _log_phase(group: ClassicGroup, event: Event) -> None:
    cause = f"timer {event.key}" if isinstance(event, events.TimerFired) else type(event).__name__
    match group.phase:
        case Phase.PREPARING_REBALANCE:
            logger.info(
                "Preparing to rebalance group %s with old generation %d (%s).",
                group.group_id,
                group.generation,
                cause,
            )
        case Phase.COMPLETING_REBALANCE:
            logger.info(
                "Stabilized group %s generation %d with %d members.",
                group.group_id,
                group.generation,
                len(group.members),
            )
        case Phase.STABLE:
            logger.info("Group %s generation %d has its assignment.", group.group_id, group.generation)
        case Phase.EMPTY | Phase.DEAD:
            logger.info("Group %s with generation %d is now empty.", group.group_id, group.generation)

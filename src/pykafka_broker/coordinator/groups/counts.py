"""What the group coordinator counts for its metrics, where Apache Kafka's counts it."""

from __future__ import annotations

from collections.abc import Sequence

from pykafka_broker.coordinator.groups.core import events
from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Phase
from pykafka_broker.coordinator.groups.core.events import Event
from pykafka_broker.coordinator.groups.core.kinds import kind_of
from pykafka_broker.coordinator.groups.core.state import Group


class Counts:
    """Counts since the start of the node."""

    def __init__(self) -> None:
        #: Offsets, also those of transactions that have not ended.
        self.offset_commits = 0
        #: Generations of classic groups that have got their assignment.
        self.completed_rebalances = 0
        #: New epochs of groups, by their kind: not those that begin because a member has gone.
        self.rebalances = {"consumer": 0, "share": 0, "streams": 0}

    def count_commit(self, event: Event, records: Sequence[object]) -> None:
        """Count the offsets that the records of an event commit."""
        if isinstance(event, (events.CommitOffsets, events.CommitTransactionalOffsets)):
            self.offset_commits += len(records)

    def count_rebalance(self, was: Group | None, event: Event, now: Group | None) -> None:
        """Count what an event has done to its group."""
        if was is now or now is None:
            return
        if isinstance(now, ClassicGroup):
            if now.phase is Phase.STABLE and isinstance(was, ClassicGroup):
                self.completed_rebalances += was.phase is Phase.COMPLETING_REBALANCE
            return
        if (
            was is None
            or isinstance(was, ClassicGroup)
            or (was.group_epoch != now.group_epoch and len(was.members) <= len(now.members))
        ):
            self.rebalances[kind_of(now).name] += 1
